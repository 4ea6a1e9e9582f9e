//! The classifiers of vLLM: NeMo Guardrails asks one about a reply, verl takes one for a reward model. Three classes; the
//! probability of each is the mean over the dimensions, so that that of `aligned`, the last, is S.
//!
//! verl sends a whole conversation in one text and says `use_activation` (or `activation`); it is a trainer, whose texts
//! are split and cleaned. It gives up on every 4xx, so that a full lane is 503 here.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::{Request, State};
use axum::response::Json;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::llama_factory::split;
use super::{ItemError, Texts, dimensions, fresh_id};
use crate::prism::Label;
use crate::server::grpc::Scorer;
use crate::server::http::Http;
use crate::server::http::batch::Item;
use crate::server::http::call::Ask;
use crate::server::http::clean::Switches;
use crate::server::http::error::Failure;
use crate::server::http::route::Route;
use crate::server::http::who::Hints;
use crate::server::pb;

#[derive(Deserialize)]
pub struct Body {
    #[serde(default)]
    model: String,
    input: Texts,
    #[serde(default)]
    use_activation: Option<IgnoredAny>,
    #[serde(default)]
    activation: Option<IgnoredAny>,
}

/// The classes, in the order of their probabilities.
const CLASSES: [Label; 3] = [Label::Contradictory, Label::Indeterminate, Label::Aligned];

pub async fn classify<S: Scorer>(State(http): State<Arc<Http<S>>>, request: Request) -> Result<Json<Value>, Failure> {
    answer(http, request).await.map_err(Failure::full_is_unavailable)
}

async fn answer<S: Scorer>(http: Arc<Http<S>>, request: Request) -> Result<Json<Value>, Failure> {
    let (ask, body) = Ask::read::<Body>(Route::Classify, request).await?;
    let trains = body.use_activation.is_some() || body.activation.is_some();
    let (lane, strip) = if trains { (pb::Lane::Train, http.options.strip) } else { (pb::Lane::Guard, Switches::NONE) };
    let strip = ask.query.strip(strip);
    let alone = matches!(body.input, Texts::One(_));
    let mut items = Vec::new();
    for text in body.input.into_list() {
        let who = http.who(&ask, Hints { own: None, field: "model", model: Some(&body.model) })?;
        let (context, reply) = split(&text, strip);
        items.push(Ok(Item { who, context, reply }));
    }
    let judged = http.judge(&ask, lane, items).await?;
    let (mut data, mut tokens) = (Vec::with_capacity(judged.len()), 0);
    for (index, result) in judged.into_iter().enumerate() {
        match result {
            Ok(verdict) => {
                tokens += verdict.tokens.map_or(0, |tokens| tokens.prompt);
                data.push(class(index, &verdict));
            }
            Err(error) if alone => return Err(Failure::of_reply(error, "input", "input")),
            Err(error) => {
                let error = ItemError::of(index, &error, "input");
                let none = Value::Null;
                data.push(json!({"index": index, "label": none, "probs": none, "num_classes": 3, "error": error}));
            }
        }
    }
    let created = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    Ok(Json(json!({
        "id": fresh_id("classify"),
        "object": "list",
        "created": created,
        "model": body.model,
        "data": data,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens, "completion_tokens": 0},
    })))
}

fn class(index: usize, verdict: &pb::Verdict) -> Value {
    let dimensions = dimensions(verdict);
    let mean = |of: fn(&pb::DimensionVerdict) -> f64| dimensions.iter().map(of).sum::<f64>() / 3.0;
    // S itself, to the last bit.
    let probs = [mean(|d| d.contradictory), mean(|d| d.indeterminate), verdict.s_prism];
    let likeliest = CLASSES.iter().zip(probs).max_by(|(_, a), (_, b)| a.total_cmp(b));
    let label = likeliest.map(|(label, _)| label.name());
    json!({"index": index, "label": label, "probs": probs, "num_classes": 3})
}
