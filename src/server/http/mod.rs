//! The HTTP port: the routes that trainers and guardrails call as they are, and our own. Each is a translation to the
//! methods of `grpc`, so that an item has the same bits whichever way it comes. No route judges by a rule of its own.
//!
//! A request: `front` (who calls, until when) -> `call` (parameters, body) -> a file of `hosts`, or `own` -> `batch` ->
//! `grpc`. What hosts send is read by `chat`, `markers` and `clean`.

mod batch;
mod call;
mod chat;
mod clean;
mod error;
mod front;
mod guard;
mod hosts;
mod markers;
mod openapi;
mod own;
mod page;
mod query;
mod route;
mod who;

#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{MethodRouter, get, post};
use serde_json::json;
use tokio::sync::watch;

use self::error::Failure;
use self::hosts::{classify, fms, litellm, llama_factory, memory, moderations, nemo_gym, openrlhf, promptfoo, slime};
use self::route::Route;
use super::grpc::{Grpc, Scorer};
use super::{ServerOptions, readiness};

pub use clean::Switches;
pub use front::HttpFront;

/// What the port does where a request does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpOptions {
    /// Whose persona is meant where nobody says.
    pub default_persona: Option<String>,
    /// What is taken off the replies that trainers send.
    pub strip: Switches,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self { default_persona: None, strip: Switches::ALL }
    }
}

/// What the routes share.
pub struct Http<S> {
    grpc: Grpc<S>,
    options: HttpOptions,
    memory: memory::Memory,
    state: watch::Receiver<readiness::State>,
}

/// The routes. A path that is none of them, and a method that a route does not take, are told in our own form.
fn router<S: Scorer>(
    judge: Arc<OnceLock<Arc<S>>>,
    options: &ServerOptions,
    state: watch::Receiver<readiness::State>,
) -> Router {
    let grpc = Grpc::new(judge).guided_by(options.policies.clone());
    let http = Http { grpc, options: options.http.clone(), memory: memory::Memory::new(), state };
    let router = Route::ALL.into_iter().fold(Router::new(), |router, route| router.route(route.path(), handler(route)));
    router
        .fallback(async || Failure::no_route(&Route::list()))
        .method_not_allowed_fallback(wrong_method)
        .with_state(Arc::new(http))
}

fn handler<S: Scorer>(route: Route) -> MethodRouter<Arc<Http<S>>> {
    match route {
        Route::Score => post(own::score::<S>),
        Route::ScoreGroup => post(own::score_group::<S>),
        Route::ScoreDialogue => post(own::score_dialogue::<S>),
        Route::Check => post(own::check::<S>),
        Route::Rank => post(own::rank::<S>),
        Route::Info => get(own::info::<S>),
        Route::Personas => get(own::personas::<S>),
        Route::GetReward => post(openrlhf::get_reward::<S>),
        Route::Reward => post(slime::reward::<S>),
        Route::ScoreEvaluation => post(llama_factory::evaluation::<S>),
        Route::Verify => post(nemo_gym::verify::<S>),
        Route::BasicGuardrail => post(litellm::guardrail::<S>),
        Route::Classify => post(classify::classify::<S>),
        Route::TextContents => post(fms::contents::<S>),
        Route::Moderations => post(moderations::moderations::<S>),
        Route::Promptfoo => post(promptfoo::webhook::<S>),
        Route::Health => get(health::<S>),
        Route::OpenApi => get(openapi::document),
        Route::Page => get(page::index),
        Route::PageFile => get(page::named),
    }
}

async fn wrong_method(request: Request) -> Response {
    let allowed = Route::of(request.uri().path()).map_or(String::new(), |route| route.verb().to_string());
    let mut response = Failure::wrong_method(&allowed).into_response();
    if let Ok(allowed) = HeaderValue::from_str(&allowed) {
        response.headers_mut().insert(header::ALLOW, allowed);
    }
    response
}

/// Whether calls are served, for probes that know this port alone. `status` is as FMS writes it.
async fn health<S: Scorer>(State(http): State<Arc<Http<S>>>) -> Response {
    let state = *http.state.borrow();
    let (status, said) = match state.is_ready() {
        true => (StatusCode::OK, "HEALTHY"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "UNHEALTHY"),
    };
    (status, Json(json!({"status": said, "reason": state.lines().trim_end()}))).into_response()
}
