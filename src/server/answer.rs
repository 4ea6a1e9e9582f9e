//! The answer of a call on its way out. A stream of answers can outlive its call's time and the server's: it is watched
//! until its last byte, and ended with a status in its trailers where it must be.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use http::{HeaderMap, Response};
use hyper::body::{Body as _, Frame, SizeHint};
use tonic::Status;
use tonic::body::Body;

use super::calls::InFlight;
use super::deadline::Deadline;
use super::life::{Life, Phase};
use super::status;
use crate::telemetry::{CallRecord, Served, catalogue};

/// `Code::OutOfRange` as it travels.
const OUT_OF_RANGE: &str = "11";

/// How long a call may take: until its deadline, and no longer than the server's drain.
#[derive(Clone)]
pub struct Allowed {
    pub deadline: Deadline,
    pub life: Life,
}

impl Allowed {
    /// Resolves when the call must end, to what it is told.
    pub async fn over(self, record: CallRecord) -> Status {
        tokio::select! {
            biased;
            () = self.deadline.passed() => status::late(),
            () = self.life.reached(Phase::Over) => {
                catalogue::SHED.increment([record.lane(), "draining"]);
                status::stopping()
            }
        }
    }

    fn is_late(&self) -> bool {
        self.deadline.0.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

type Data = <Body as hyper::body::Body>::Data;

/// What a call that must end is told, when it must.
type Over = Pin<Box<dyn Future<Output = Status> + Send>>;

/// The body of an answer, with its call.
pub struct Answer {
    body: Body,
    /// None from the status on.
    served: Option<Served>,
    allowed: Allowed,
    /// Made when the body is waited for, which that of a single message never is.
    over: Option<Over>,
    /// Whether something has been sent.
    begun: bool,
    _call: InFlight,
}

impl Answer {
    /// The response with its body watched. One whose headers name its status ends the call.
    pub fn of(response: Response<Body>, served: Served, allowed: Allowed, call: InFlight) -> Response<Self> {
        let mut served = told(served, response.headers());
        // Nobody will ask an empty body for the status.
        if response.body().is_end_stream()
            && let Some(served) = served.take()
        {
            served.end("UNKNOWN");
        }
        response.map(|body| Self { body, served, allowed, over: None, begun: false, _call: call })
    }

    /// The last frame of an answer that must end now.
    fn cut_off(&mut self, status: Status) -> Poll<Option<Result<Frame<Data>, Status>>> {
        // Stops the work that would have made the rest.
        self.body = Body::empty();
        let mut trailers = HeaderMap::new();
        status.add_header(&mut trailers)?;
        self.served = self.served.take().and_then(|served| told(served, &trailers));
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }
}

/// Ends a call with the status in its headers or trailers, if there is one.
fn told(served: Served, block: &HeaderMap) -> Option<Served> {
    // tonic refuses a message that is too large before we see it, and has no other use for this code.
    if block.get("grpc-status").is_some_and(|code| code == OUT_OF_RANGE) {
        catalogue::LIMIT_REFUSALS.increment(["message_bytes"]);
    }
    served.told(block)
}

impl hyper::body::Body for Answer {
    type Data = Data;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let this = &mut *self;
        let frame = match Pin::new(&mut this.body).poll_frame(context) {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                let Some(served) = &this.served else { return Poll::Pending };
                let over = || -> Over { Box::pin(this.allowed.clone().over(served.record().clone())) };
                let over = this.over.get_or_insert_with(over);
                return match over.as_mut().poll(context) {
                    Poll::Ready(status) => this.cut_off(status),
                    Poll::Pending => Poll::Pending,
                };
            }
        };
        match frame.as_ref().map(|frame| frame.as_ref().map(Frame::trailers_ref)) {
            // A stream that never has to be waited for.
            Some(Ok(None)) if this.begun && this.allowed.is_late() => return this.cut_off(status::late()),
            Some(Ok(None)) => this.begun = true,
            Some(Ok(Some(trailers))) => this.served = this.served.take().and_then(|served| told(served, trailers)),
            // Without a status: the call was given up.
            Some(Err(_)) | None => this.served = None,
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
