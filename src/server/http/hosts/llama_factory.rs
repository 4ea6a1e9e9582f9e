//! LLaMA-Factory, PPO with `reward_model_type: api`. It sends no field for a persona and the model's name is always
//! `model`: the address says `?persona_id=`, or the server has a default.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Json;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Scores, fresh_id};
use crate::server::grpc::Scorer;
use crate::server::http::Http;
use crate::server::http::batch::Item;
use crate::server::http::call::Ask;
use crate::server::http::chat::Conversation;
use crate::server::http::clean::{self, Switches};
use crate::server::http::error::Failure;
use crate::server::http::route::Route;
use crate::server::http::who::Hints;
use crate::server::pb;

#[derive(Deserialize)]
pub struct Body {
    #[serde(default)]
    model: String,
    /// Prompt and reply in one text, with special tokens.
    messages: Vec<String>,
}

pub async fn evaluation<S: Scorer>(State(http): State<Arc<Http<S>>>, request: Request) -> Result<Json<Value>, Failure> {
    let (ask, Body { model, messages }) = Ask::read(Route::ScoreEvaluation, request).await?;
    let strip = ask.query.strip(http.options.strip);
    let mut items = Vec::with_capacity(messages.len());
    for message in &messages {
        let who = http.who(&ask, Hints { own: None, field: "model", model: Some(&model) })?;
        let (context, reply) = split(message, strip);
        items.push(Ok(Item { who, context, reply }));
    }
    let judged = http.judge(&ask, pb::Lane::Train, items).await?;
    let scores = Scores::of(&judged, "messages", ask.query.error_score);
    let id = fresh_id("scoreval");
    let answer = json!({"id": id, "object": "score.evaluation", "model": model, "scores": scores.scores});
    Ok(Json(scores.explain(answer)))
}

/// The context and the reply of a conversation in one text.
pub fn split(text: &str, strip: Switches) -> (Vec<pb::Turn>, String) {
    let (conversation, reply) = match strip.markers {
        true => Conversation::with_reply(text, strip.think),
        false => (Conversation::default(), text),
    };
    (conversation.turns, clean::reply(reply, strip).to_owned())
}
