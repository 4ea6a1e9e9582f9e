//! ScoreStream: requests come one by one and are judged beside each other; results leave as they are done.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use tokio::task::JoinSet;
use tokio_stream::Stream;
use tonic::{Code, Request, Status, Streaming};
use tonic_types::FieldViolation;

use super::call::Found;
use super::{Answers, Refused, Scorer, score};
use crate::server::life::{Life, Phase};
use crate::server::{pb, status};
use crate::telemetry::catalogue::{STREAM_ITEM_SECONDS, STREAM_ITEMS};

/// Requests of one stream that are judged at a time. While there are so many the next one is not read, and HTTP/2 holds
/// the caller back. The catalogue of metrics tells the number.
const AHEAD: usize = 64;

pub fn stream<S: Scorer>(
    judge: &Arc<S>,
    request: Request<Streaming<pb::ScoreStreamRequest>>,
) -> Answers<pb::ScoreStreamResponse> {
    let (_, extensions, requests) = request.into_parts();
    let life = extensions.get::<Life>().cloned();
    let draining = async move {
        match life {
            Some(life) => life.reached(Phase::Draining).await,
            None => std::future::pending().await,
        }
    };
    Box::pin(Results {
        judge: Arc::clone(judge),
        found: Found::of(&extensions),
        requests: Some(requests),
        read: 0,
        judging: JoinSet::new(),
        broken: None,
        draining: Box::pin(draining),
    })
}

/// The results of a stream. Dropped, it stops all of its work.
struct Results<S> {
    judge: Arc<S>,
    found: Found,
    /// None when no more requests are read.
    requests: Option<Streaming<pb::ScoreStreamRequest>>,
    /// Requests that were read.
    read: u64,
    judging: JoinSet<pb::ScoreStreamResponse>,
    /// Why no more can be read, for the caller to hear when the others have their results.
    broken: Option<Status>,
    draining: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl<S: Scorer> Results<S> {
    /// Reads requests while there is room for them.
    fn read(&mut self, context: &mut Context<'_>) {
        while self.judging.len() < AHEAD
            && let Some(requests) = &mut self.requests
            && let Poll::Ready(next) = Pin::new(requests).poll_next(context)
        {
            match next {
                Some(Ok(request)) => self.begin(request),
                Some(Err(status)) => {
                    self.broken = Some(unreadable(self.read, status));
                    self.requests = None;
                }
                None => self.requests = None,
            }
        }
    }

    fn begin(&mut self, request: pb::ScoreStreamRequest) {
        let (judge, index) = (Arc::clone(&self.judge), self.read);
        self.read += 1;
        let record = self.found.record.part();
        let found = Found { record: record.clone(), ..self.found.clone() };
        let item = STREAM_ITEMS.hold([]);
        self.judging.spawn(async move {
            let _item = item;
            let started = Instant::now();
            let response = result(&*judge, request, index, found).await;
            STREAM_ITEM_SECONDS.record([record.lane()], started.elapsed().as_secs_f64());
            record.spent_outside(started.elapsed());
            response
        });
    }
}

impl<S: Scorer> Stream for Results<S> {
    type Item = Result<pb::ScoreStreamResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.read(context);
        match ready!(self.judging.poll_join_next(context)) {
            Some(Ok(response)) => return Poll::Ready(Some(Ok(response))),
            Some(Err(error)) => {
                tracing::error!("a judgement of a stream ended early: {error}");
                return Poll::Ready(Some(Err(Status::internal("the judge failed on a request of this stream"))));
            }
            None => {}
        }
        // Every request that was read has its result.
        if self.requests.is_none() {
            return Poll::Ready(self.broken.take().map(Err));
        }
        ready!(self.draining.as_mut().poll(context));
        self.requests = None;
        Poll::Ready(Some(Err(status::stopping())))
    }
}

/// The result of the request at `index`.
async fn result<S: Scorer>(
    judge: &S,
    request: pb::ScoreStreamRequest,
    index: u64,
    found: Found,
) -> pb::ScoreStreamResponse {
    use pb::score_stream_response::Result as Wire;
    let Some(request) = request.score else {
        let missing = Refused::Fields(vec![FieldViolation::new("score", "is missing")]);
        return pb::ScoreStreamResponse { index, result: Some(Wire::Error(missing.error())), ..Default::default() };
    };
    let mut request_id = request.request_id.clone();
    let result = match score::judged(judge, "ScoreStream", request, found).await {
        Ok(response) => Wire::Response(response),
        Err(refused) => {
            let error = refused.error();
            if error.field == "request_id" {
                // It may be as large as a message.
                request_id.clear();
            }
            Wire::Error(error)
        }
    };
    pb::ScoreStreamResponse { request_id, index, result: Some(result) }
}

/// What is told of a request that cannot be read: nothing that comes after it can.
fn unreadable(index: u64, status: Status) -> Status {
    match status.code() {
        // tonic's word for bytes that are no message.
        Code::Internal => {
            let reason = status.message().trim_end_matches('.');
            let message = format!("the request at index {index} of the stream cannot be read: {reason}");
            status::invalid(vec![FieldViolation::new("", message)])
        }
        _ => status,
    }
}
