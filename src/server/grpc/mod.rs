//! `prism.judge.v1.JudgeService`: unpack, judge, pack; a file for each kind of call. A call that the verdict cache answers
//! never leaves its task. The HTTP port calls the same methods.

mod call;
mod check;
mod check_stream;
mod dialogue;
mod personas;
mod rank;
mod refused;
mod score;
mod stream;

use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use tokio::sync::watch;
use tokio_stream::Stream;
use tonic::{Request, Response, Status, Streaming};

use super::pb::judge_service_server::JudgeService;
use super::{PolicyFile, convert, pb, status};
use crate::persona::{Persona, Registry, RegistryError};
use crate::prism::{Candidate, Group};
use crate::service::{
    Call, Dialogue, Health, Judge, JudgeError, JudgeInfo, Load, OptionOverrides, Scored, ScoredDialogue,
};
use crate::telemetry::catalogue;

use refused::Refused;

/// What the server needs of a judge; tests bring their own.
pub trait Scorer: Send + Sync + 'static {
    /// See [`Judge::score`]. The work stops when the future is dropped, which tonic does when the caller goes away.
    fn score(&self, group: Group, overrides: &OptionOverrides, call: &Call) -> impl Future<Output = Scored> + Send;

    /// See [`Judge::response_tokens`].
    fn response_tokens(
        &self,
        group: &Group,
        overrides: &OptionOverrides,
        call: &Call,
    ) -> impl Future<Output = Result<Vec<usize>, JudgeError>> + Send;

    /// See [`Judge::check_candidate`].
    fn check_candidate(&self, candidate: &Candidate) -> Result<(), JudgeError>;

    /// See [`Judge::score_dialogue`]; stops as [`Scorer::score`] does.
    fn score_dialogue(
        &self,
        dialogue: Dialogue,
        overrides: &OptionOverrides,
        call: &Call,
    ) -> impl Future<Output = Result<ScoredDialogue, JudgeError>> + Send;

    /// See [`Judge::persona`].
    fn persona(&self, id: &str) -> Result<Persona, JudgeError>;

    /// See [`Judge::personas`].
    fn personas(&self) -> Arc<Registry>;

    /// See [`Judge::reload_personas`].
    fn reload_personas(&self) -> Option<Result<bool, RegistryError>>;

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

    fn response_tokens(
        &self,
        group: &Group,
        overrides: &OptionOverrides,
        call: &Call,
    ) -> impl Future<Output = Result<Vec<usize>, JudgeError>> + Send {
        Judge::response_tokens(self, group, overrides, call)
    }

    fn check_candidate(&self, candidate: &Candidate) -> Result<(), JudgeError> {
        Judge::check_candidate(self, candidate)
    }

    fn score_dialogue(
        &self,
        dialogue: Dialogue,
        overrides: &OptionOverrides,
        call: &Call,
    ) -> impl Future<Output = Result<ScoredDialogue, JudgeError>> + Send {
        Judge::score_dialogue(self, dialogue, overrides, call)
    }

    fn persona(&self, id: &str) -> Result<Persona, JudgeError> {
        Judge::persona(self, id)
    }

    fn personas(&self) -> Arc<Registry> {
        Judge::personas(self)
    }

    fn reload_personas(&self) -> Option<Result<bool, RegistryError>> {
        Judge::reload_personas(self)
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

/// The answers of a call that has several.
type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// The service. Its judge appears when the model is loaded.
pub struct Grpc<S> {
    judge: Arc<OnceLock<Arc<S>>>,
    policies: Option<Arc<PolicyFile>>,
}

impl<S: Scorer> Grpc<S> {
    pub fn new(judge: Arc<OnceLock<Arc<S>>>) -> Self {
        Self { judge, policies: None }
    }

    /// The same service, whose checks may name these policies.
    pub fn guided_by(self, policies: Option<Arc<PolicyFile>>) -> Self {
        Self { policies, ..self }
    }

    /// Whether a persona is called so.
    pub fn knows(&self, persona: &str) -> bool {
        self.judge.get().is_some_and(|judge| judge.persona(persona).is_ok())
    }

    /// The name of the model, once it is loaded.
    pub fn model(&self) -> String {
        self.judge.get().map(|judge| judge.info().model).unwrap_or_default()
    }

    fn judge(&self) -> Result<&Arc<S>, Status> {
        self.judge.get().ok_or_else(|| {
            catalogue::SHED.increment(["none", "loading"]);
            status::loading()
        })
    }
}

#[tonic::async_trait]
impl<S: Scorer> JudgeService for Grpc<S> {
    type ScoreStreamStream = Answers<pb::ScoreStreamResponse>;
    type CheckStreamStream = Answers<pb::CheckStreamResponse>;

    async fn score(&self, request: Request<pb::ScoreRequest>) -> Result<Response<pb::ScoreResponse>, Status> {
        score::one(&**self.judge()?, request).await
    }

    async fn score_group(
        &self,
        request: Request<pb::ScoreGroupRequest>,
    ) -> Result<Response<pb::ScoreGroupResponse>, Status> {
        score::group(&**self.judge()?, request).await
    }

    async fn score_stream(
        &self,
        request: Request<Streaming<pb::ScoreStreamRequest>>,
    ) -> Result<Response<Self::ScoreStreamStream>, Status> {
        Ok(Response::new(stream::stream(self.judge()?, request)))
    }

    async fn score_dialogue(
        &self,
        request: Request<pb::ScoreDialogueRequest>,
    ) -> Result<Response<pb::ScoreDialogueResponse>, Status> {
        dialogue::dialogue(&**self.judge()?, request).await
    }

    async fn check(&self, request: Request<pb::CheckRequest>) -> Result<Response<pb::CheckResponse>, Status> {
        check::one(&**self.judge()?, self.policies.as_deref(), request).await
    }

    async fn check_stream(
        &self,
        request: Request<Streaming<pb::CheckStreamRequest>>,
    ) -> Result<Response<Self::CheckStreamStream>, Status> {
        Ok(check_stream::growing(Arc::clone(self.judge()?), self.policies.clone(), request))
    }

    async fn rank(&self, request: Request<pb::RankRequest>) -> Result<Response<pb::RankResponse>, Status> {
        rank::rank(&**self.judge()?, request).await
    }

    async fn list_personas(
        &self,
        _request: Request<pb::ListPersonasRequest>,
    ) -> Result<Response<pb::ListPersonasResponse>, Status> {
        Ok(Response::new(personas::list(&**self.judge()?)))
    }

    async fn get_judge_info(
        &self,
        _request: Request<pb::GetJudgeInfoRequest>,
    ) -> Result<Response<pb::GetJudgeInfoResponse>, Status> {
        Ok(Response::new(convert::info(self.judge()?.info())))
    }
}
