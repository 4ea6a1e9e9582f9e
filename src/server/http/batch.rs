//! The replies of one request, judged by the same method as over gRPC: neighbours under one persona and after one context
//! as a group, all groups at once.

use std::sync::Arc;

use axum::http::Extensions;
use tokio::task::JoinSet;
use tonic::Code;

use super::Http;
use super::call::Ask;
use super::error::Failure;
use super::who::Who;
use crate::server::grpc::Scorer;
use crate::server::pb;
use crate::server::pb::candidate_result::Result as Wire;
use crate::server::pb::judge_service_server::JudgeService;

/// A reply to judge.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    pub who: Who,
    pub context: Vec<pb::Turn>,
    pub reply: String,
}

/// What became of one reply. The field of an error is `reply`, or begins with `context`.
pub type Judged = Result<pb::Verdict, pb::JudgeError>;

/// Neighbours that share persona and context.
struct Group {
    who: Who,
    context: Vec<pb::Turn>,
    /// With their places in the request.
    replies: Vec<(usize, String)>,
}

/// A group, and its replies' results or what was wrong with all of it.
type Done = (Group, Result<Vec<Judged>, Failure>);

impl<S: Scorer> Http<S> {
    /// Judges replies, some of which may have failed before; one result each, in order.
    ///
    /// # Errors
    /// What is wrong with more than one reply: the persona, the lane, the judge. A caller that gets this has lost nothing
    /// by trying again.
    pub async fn judge(
        self: &Arc<Self>,
        ask: &Ask,
        lane: pb::Lane,
        items: Vec<Result<Item, pb::JudgeError>>,
    ) -> Result<Vec<Judged>, Failure> {
        let mut judged = Vec::with_capacity(items.len());
        let mut groups: Vec<Group> = Vec::new();
        for (at, item) in items.into_iter().enumerate() {
            match item {
                Err(error) => judged.push(Some(Err(error))),
                Ok(Item { who, context, reply }) => {
                    judged.push(None);
                    match groups.last_mut() {
                        Some(last) if last.who == who && last.context == context => last.replies.push((at, reply)),
                        _ => groups.push(Group { who, context, replies: vec![(at, reply)] }),
                    }
                }
            }
        }
        let mut running = JoinSet::new();
        for group in groups {
            self.start(ask, lane, group, &mut running);
        }
        // Groups for which there was no room beside the others of this request.
        let mut waiting = Vec::new();
        while let Some(done) = running.join_next().await {
            let (group, results) = done.map_err(|_| Failure::internal("the judge failed on this request"))?;
            match results {
                Ok(results) => {
                    for ((at, _), result) in group.replies.into_iter().zip(results) {
                        judged[at] = Some(result);
                    }
                    for group in waiting.drain(..) {
                        self.start(ask, lane, group, &mut running);
                    }
                }
                // A request must not be refused for ever because of its own size.
                Err(failure) if failure.is(Code::ResourceExhausted) && !running.is_empty() => waiting.push(group),
                Err(failure) => return Err(failure),
            }
        }
        let lost = || Failure::internal("the judge gave another number of results than there are replies");
        judged.into_iter().map(|result| result.ok_or_else(lost)).collect()
    }

    fn start(self: &Arc<Self>, ask: &Ask, lane: pb::Lane, group: Group, running: &mut JoinSet<Done>) {
        let (http, extensions) = (Arc::clone(self), ask.extensions().clone());
        running.spawn(async move {
            let results = http.group(&group, lane, extensions).await;
            (group, results)
        });
    }

    /// Judges the only reply of a request.
    ///
    /// # Errors
    /// Those of [`Http::judge`].
    pub async fn judge_one(self: &Arc<Self>, ask: &Ask, lane: pb::Lane, item: Item) -> Result<Judged, Failure> {
        let mut judged = self.judge(ask, lane, vec![Ok(item)]).await?;
        judged.pop().ok_or_else(|| Failure::internal("the judge gave no result"))
    }

    async fn group(&self, group: &Group, lane: pb::Lane, extensions: Extensions) -> Result<Vec<Judged>, Failure> {
        let (persona, persona_id) = match group.who.clone() {
            Who::Id(id) => (None, id),
            Who::Inline(persona) => (Some(persona), String::new()),
        };
        let candidate = |(_, reply): &(usize, String)| pb::Candidate { id: String::new(), response: reply.clone() };
        let mut request = tonic::Request::new(pb::ScoreGroupRequest {
            persona,
            persona_id,
            context: group.context.clone(),
            candidates: group.replies.iter().map(candidate).collect(),
            lane: lane.into(),
            ..pb::ScoreGroupRequest::default()
        });
        *request.extensions_mut() = extensions;
        match JudgeService::score_group(&self.grpc, request).await {
            Ok(response) => Ok(response.into_inner().results.into_iter().map(judged).collect()),
            Err(status) => {
                let failure = Failure::from(status);
                // A context that is too long fails its own replies; everything else is about the request.
                let own = failure.is(Code::InvalidArgument)
                    && failure.field().is_some_and(|field| field.starts_with("context"));
                if own { Ok(vec![Err(failure.of_item()); group.replies.len()]) } else { Err(failure) }
            }
        }
    }
}

fn judged(result: pb::CandidateResult) -> Judged {
    match result.result {
        Some(Wire::Verdict(verdict)) => Ok(verdict),
        Some(Wire::Error(error)) => {
            let in_reply = error.field.starts_with("candidates");
            Err(pb::JudgeError { field: if in_reply { "reply".to_owned() } else { error.field }, ..error })
        }
        None => Err(pb::JudgeError {
            code: pb::ErrorCode::Internal.into(),
            message: "the judge gave no result".to_owned(),
            ..pb::JudgeError::default()
        }),
    }
}
