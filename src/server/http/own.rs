//! Our own routes: the JSON mapping of the gRPC messages, and the same methods. Unknown fields are refused.
//!
//! What a caller sends here is judged as it is, unless it asks for a clean-up.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;

use super::Http;
use super::call::{Ask, answer, bare};
use super::clean::{self, Switches};
use super::error::Failure;
use super::route::Route;
use crate::server::grpc::Scorer;
use crate::server::pb;
use crate::server::pb::judge_service_server::JudgeService;

type Answer = Result<Response, Failure>;

pub async fn score<S: Scorer>(State(http): State<Arc<Http<S>>>, request: Request) -> Answer {
    let (ask, mut message) = Ask::read::<pb::ScoreRequest>(Route::Score, request).await?;
    clean(&ask, &mut message.candidate);
    answer(http.grpc.score(ask.of(message)).await)
}

pub async fn score_group<S: Scorer>(State(http): State<Arc<Http<S>>>, request: Request) -> Answer {
    let (ask, mut message) = Ask::read::<pb::ScoreGroupRequest>(Route::ScoreGroup, request).await?;
    clean(&ask, &mut message.candidates);
    answer(http.grpc.score_group(ask.of(message)).await)
}

pub async fn score_dialogue<S: Scorer>(State(http): State<Arc<Http<S>>>, request: Request) -> Answer {
    let (ask, message) = Ask::read::<pb::ScoreDialogueRequest>(Route::ScoreDialogue, request).await?;
    answer(http.grpc.score_dialogue(ask.of(message)).await)
}

pub async fn check<S: Scorer>(State(http): State<Arc<Http<S>>>, request: Request) -> Answer {
    let (ask, mut message) = Ask::read::<pb::CheckRequest>(Route::Check, request).await?;
    clean(&ask, &mut message.candidate);
    answer(http.grpc.check(ask.of(message)).await)
}

pub async fn rank<S: Scorer>(State(http): State<Arc<Http<S>>>, request: Request) -> Answer {
    let (ask, mut message) = Ask::read::<pb::RankRequest>(Route::Rank, request).await?;
    clean(&ask, &mut message.candidates);
    answer(http.grpc.rank(ask.of(message)).await)
}

pub async fn info<S: Scorer>(State(http): State<Arc<Http<S>>>, request: Request) -> Answer {
    answer(http.grpc.get_judge_info(bare(request, pb::GetJudgeInfoRequest {})?).await)
}

pub async fn personas<S: Scorer>(State(http): State<Arc<Http<S>>>, request: Request) -> Answer {
    answer(http.grpc.list_personas(bare(request, pb::ListPersonasRequest {})?).await)
}

fn clean<'a>(ask: &Ask, candidates: impl IntoIterator<Item = &'a mut pb::Candidate>) {
    let strip = ask.query.strip(Switches::NONE);
    if strip == Switches::NONE {
        return;
    }
    for candidate in candidates {
        candidate.response = clean::reply(&candidate.response, strip).to_owned();
    }
}
