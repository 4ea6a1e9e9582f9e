//! slime, `--rm-url`: one reply a request, thousands of them at once.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Json;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{by_dimension, evidence};
use crate::server::grpc::Scorer;
use crate::server::http::Http;
use crate::server::http::batch::Item;
use crate::server::http::call::Ask;
use crate::server::http::chat::Prompt;
use crate::server::http::clean;
use crate::server::http::error::Failure;
use crate::server::http::route::Route;
use crate::server::http::who::{Hints, Who};
use crate::server::pb;

#[derive(Deserialize)]
pub struct Body {
    #[serde(default)]
    prompt: Prompt,
    response: String,
    /// Whose persona.
    #[serde(default)]
    label: Value,
}

pub async fn reward<S: Scorer>(State(http): State<Arc<Http<S>>>, request: Request) -> Result<Json<Value>, Failure> {
    let (ask, Body { prompt, response, label }) = Ask::read(Route::Reward, request).await?;
    let who = http.who(&ask, Hints { own: Who::of(&label, "label")?, field: "label", model: None })?;
    let strip = ask.query.strip(http.options.strip);
    let conversation = prompt.conversation(strip.think);
    let reply = clean::reply(&format!("{}{response}", conversation.begun), strip).to_owned();
    let item = Item { who, context: conversation.turns, reply };
    let (score, evidence) = match (http.judge_one(&ask, pb::Lane::Train, item).await?, ask.query.error_score) {
        (Ok(verdict), _) => (verdict.s_prism, evidence(&verdict)),
        (Err(_), Some(stand_in)) => (stand_in, [stand_in; 3]),
        (Err(error), None) => return Err(Failure::of_reply(error, "response", "prompt")),
    };
    if !ask.query.dict {
        return Ok(Json(json!(score)));
    }
    let mut answer = by_dimension(evidence);
    answer.insert("score".to_owned(), json!(score));
    Ok(Json(Value::Object(answer)))
}
