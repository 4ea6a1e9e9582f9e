//! `prism.judge.v1.JudgeService`: unpack, judge on a blocking thread, pack.

use std::sync::{Arc, OnceLock};

use tonic::{Extensions, Request, Response, Status};

use super::convert::{self, Violations, Wire};
use super::deadline::Deadline;
use super::pb::judge_service_server::JudgeService;
use super::{MESSAGE_LIMIT, pb, status};
use crate::prism::{Group, Verdict};
use crate::service::{Cancel, ErrorCode, Judge, JudgeError, JudgeInfo, OptionOverrides};

/// What the server needs of a judge; tests bring their own.
pub trait Scorer: Send + Sync + 'static {
    /// See [`Judge::score`].
    fn score(
        &self,
        group: &Group,
        overrides: &OptionOverrides,
        cancel: &Cancel,
    ) -> Result<Vec<Result<Verdict, JudgeError>>, JudgeError>;

    /// See [`Judge::info`].
    fn info(&self) -> JudgeInfo;
}

impl Scorer for Judge {
    fn score(
        &self,
        group: &Group,
        overrides: &OptionOverrides,
        cancel: &Cancel,
    ) -> Result<Vec<Result<Verdict, JudgeError>>, JudgeError> {
        Judge::score(self, group, overrides, cancel)
    }

    fn info(&self) -> JudgeInfo {
        Judge::info(self)
    }
}

/// The service. Its judge appears when the model is loaded.
pub struct Grpc<S> {
    judge: Arc<OnceLock<Arc<S>>>,
}

impl<S: Scorer> Grpc<S> {
    pub fn new(judge: Arc<OnceLock<Arc<S>>>) -> Self {
        Self { judge }
    }

    fn judge(&self) -> Result<Arc<S>, Status> {
        self.judge.get().cloned().ok_or_else(status::loading)
    }

    /// Judges a group. The work is cancelled when this future is dropped, which tonic does when the caller goes away.
    async fn score_group(
        &self,
        group: Group,
        overrides: OptionOverrides,
        extensions: &Extensions,
    ) -> Result<Vec<Result<Verdict, JudgeError>>, JudgeError> {
        let judge = self.judge.get().cloned();
        let judge = judge.ok_or_else(|| JudgeError::new(ErrorCode::Internal, "the judge is gone"))?;
        let deadline = extensions.get::<Deadline>().and_then(|deadline| deadline.0);
        let cancel = Cancel::with_deadline(deadline);
        let _cancelled_on_drop = CancelOnDrop(cancel.clone());
        let work = tokio::task::spawn_blocking(move || judge.score(&group, &overrides, &cancel));
        tokio::select! {
            done = work => done.unwrap_or_else(|error| {
                tracing::error!(%error, "a judgement panicked");
                Err(JudgeError::new(ErrorCode::Internal, "the judge failed on this request"))
            }),
            () = passed(deadline) => Err(JudgeError::new(ErrorCode::DeadlineExceeded, "the caller's timeout passed")),
        }
    }
}

#[tonic::async_trait]
impl<S: Scorer> JudgeService for Grpc<S> {
    async fn score(&self, request: Request<pb::ScoreRequest>) -> Result<Response<pb::ScoreResponse>, Status> {
        self.judge()?;
        let (_, extensions, request) = request.into_parts();
        let mut violations = Violations::default();
        let candidates = convert::one_candidate(request.candidate, &mut violations);
        let wire = Wire { persona: request.persona, context: request.context, options: request.options };
        let (group, overrides) = wire.group(candidates, violations).map_err(status::invalid)?;
        let results = self.score_group(group, overrides, &extensions).await;
        let verdict = results
            .and_then(|mut results| results.pop().unwrap_or_else(|| Err(no_result())))
            .map_err(|error| status::of_error(&of_one_candidate(error)))?;
        let verdict = Some(convert::verdict(verdict));
        Ok(Response::new(pb::ScoreResponse { request_id: request.request_id, verdict }))
    }

    async fn score_group(
        &self,
        request: Request<pb::ScoreGroupRequest>,
    ) -> Result<Response<pb::ScoreGroupResponse>, Status> {
        self.judge()?;
        let (_, extensions, request) = request.into_parts();
        let mut violations = Violations::default();
        let candidates = convert::candidates(request.candidates, MESSAGE_LIMIT, &mut violations);
        let wire = Wire { persona: request.persona, context: request.context, options: request.options };
        let (group, overrides) = wire.group(candidates, violations).map_err(status::invalid)?;
        let ids: Vec<String> = group.candidates.iter().map(|candidate| candidate.id.clone()).collect();
        let results = Grpc::score_group(self, group, overrides, &extensions)
            .await
            .and_then(|results| if results.len() == ids.len() { Ok(results) } else { Err(no_result()) })
            .map_err(|error| status::of_error(&error))?;
        let results = ids.into_iter().zip(results).enumerate();
        let results = results.map(|(index, (id, result))| convert::result(id, index, result)).collect();
        Ok(Response::new(pb::ScoreGroupResponse { request_id: request.request_id, results }))
    }

    async fn get_judge_info(
        &self,
        _request: Request<pb::GetJudgeInfoRequest>,
    ) -> Result<Response<pb::GetJudgeInfoResponse>, Status> {
        Ok(Response::new(convert::info(self.judge()?.info())))
    }
}

/// Cancels work that nobody waits for.
struct CancelOnDrop(Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

async fn passed(deadline: Option<std::time::Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}

fn no_result() -> JudgeError {
    JudgeError::new(ErrorCode::Internal, "the judge gave another number of results than there are candidates")
}

/// The service numbers candidates; a Score request has one `candidate`.
fn of_one_candidate(error: JudgeError) -> JudgeError {
    let field = error.field.map(|field| match field.strip_prefix("candidates[0]") {
        Some(rest) => format!("candidate{rest}"),
        None => field,
    });
    JudgeError { field, ..error }
}
