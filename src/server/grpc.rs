//! `prism.judge.v1.JudgeService`: unpack, judge, pack. A call that the verdict cache answers never leaves its task.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::Poll;

use tokio::sync::watch;
use tonic::{Extensions, Request, Response, Status};

use super::convert::{self, Asked, Violations, Wire};
use super::deadline::Deadline;
use super::pb::judge_service_server::JudgeService;
use super::{Caller, MESSAGE_LIMIT, pb, status};
use crate::prism::Group;
use crate::service::{Call, Cancel, ErrorCode, Health, Judge, JudgeError, JudgeInfo, Load, OptionOverrides, Scored};
use crate::telemetry::{CallRecord, catalogue};

/// What the server needs of a judge; tests bring their own.
pub trait Scorer: Send + Sync + 'static {
    /// See [`Judge::score`]. The work stops when the future is dropped, which tonic does when the caller goes away.
    fn score(&self, group: Group, overrides: &OptionOverrides, call: &Call) -> impl Future<Output = Scored> + Send;

    /// See [`Judge::info`].
    fn info(&self) -> JudgeInfo;

    /// See [`Judge::health`].
    fn health(&self) -> watch::Receiver<Health>;

    /// See [`Judge::observe`].
    fn observe(&self);

    /// See [`Judge::load`].
    fn load(&self) -> Load;
}

impl Scorer for Judge {
    fn score(&self, group: Group, overrides: &OptionOverrides, call: &Call) -> impl Future<Output = Scored> + Send {
        Judge::score(self, group, overrides, call)
    }

    fn info(&self) -> JudgeInfo {
        Judge::info(self)
    }

    fn health(&self) -> watch::Receiver<Health> {
        Judge::health(self)
    }

    fn observe(&self) {
        Judge::observe(self);
    }

    fn load(&self) -> Load {
        Judge::load(self)
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

    fn judge(&self) -> Result<&S, Status> {
        self.judge.get().map(Arc::as_ref).ok_or_else(|| {
            catalogue::SHED.increment(["none", "loading"]);
            status::loading()
        })
    }
}

#[tonic::async_trait]
impl<S: Scorer> JudgeService for Grpc<S> {
    async fn score(&self, request: Request<pb::ScoreRequest>) -> Result<Response<pb::ScoreResponse>, Status> {
        let judge = self.judge()?;
        let (_, extensions, request) = request.into_parts();
        let mut violations = Violations::default();
        convert::request_id(&request.request_id, &mut violations);
        let candidates = convert::one_candidate(request.candidate, &mut violations);
        let wire = Wire {
            persona: request.persona,
            context: request.context,
            options: request.options,
            lane: request.lane,
            cache: request.cache,
        };
        let asked = wire.asked(candidates, violations).map_err(status::invalid)?;
        let call = call("Score", &asked, &request.request_id, &extensions)?;
        let verdict = scored(judge, asked, &call)
            .await
            .and_then(|mut results| results.pop().unwrap_or_else(|| Err(no_result())))
            .map_err(|error| status::of_error(&of_one_candidate(error)))?;
        let verdict = Some(convert::verdict(verdict));
        Ok(Response::new(pb::ScoreResponse { request_id: request.request_id, verdict }))
    }

    async fn score_group(
        &self,
        request: Request<pb::ScoreGroupRequest>,
    ) -> Result<Response<pb::ScoreGroupResponse>, Status> {
        let judge = self.judge()?;
        let (_, extensions, request) = request.into_parts();
        let mut violations = Violations::default();
        convert::request_id(&request.request_id, &mut violations);
        let candidates = convert::candidates(request.candidates, MESSAGE_LIMIT, &mut violations);
        let wire = Wire {
            persona: request.persona,
            context: request.context,
            options: request.options,
            lane: request.lane,
            cache: request.cache,
        };
        let asked = wire.asked(candidates, violations).map_err(status::invalid)?;
        let ids: Vec<String> = asked.group.candidates.iter().map(|candidate| candidate.id.clone()).collect();
        let call = call("ScoreGroup", &asked, &request.request_id, &extensions)?;
        let results = scored(judge, asked, &call)
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

/// How the call is served: what it asks for, and what the front found out about its caller.
fn call(method: &'static str, asked: &Asked, request_id: &str, extensions: &Extensions) -> Result<Call, Status> {
    let caller = extensions.get::<Caller>().cloned().unwrap_or_default();
    let record = extensions.get::<CallRecord>().cloned().unwrap_or_default();
    record.set_lane(asked.lane.name());
    record.set_request_id(request_id);
    caller.enter(asked.lane).map_err(|lanes| {
        catalogue::AUTH_FAILURES.increment(["lane"]);
        status::wrong_lane(asked.lane, &lanes)
    })?;
    let deadline = extensions.get::<Deadline>().and_then(|deadline| deadline.0);
    Ok(Call {
        lane: asked.lane,
        cache: asked.cache,
        tenant: caller.tenant.to_string(),
        quota: caller.quota,
        request_id: request_id.to_owned(),
        method,
        cancel: Cancel::with_deadline(deadline),
        record,
    })
}

/// Judges. A panic is an error of this call alone.
async fn scored<S: Scorer>(judge: &S, asked: Asked, call: &Call) -> Scored {
    let mut work = pin!(judge.score(asked.group, &asked.overrides, call));
    std::future::poll_fn(|context| {
        catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))).unwrap_or_else(|_| {
            tracing::error!("a judgement panicked");
            Poll::Ready(Err(JudgeError::new(ErrorCode::Internal, "the judge failed on this request")))
        })
    })
    .await
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
