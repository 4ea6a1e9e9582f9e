//! A detector of the FMS guardrails orchestrator, `/api/v1/text/contents`. The orchestrator keeps detections whose score
//! reaches its own threshold, so that a score says how far a reply is from the persona: 1 - evidence.
//!
//! There is no form for a text that could not be judged: its error is that of the whole request. A text without words has
//! nothing to detect.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Json;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{DIMENSIONS, dimensions};
use crate::prism::Label;
use crate::server::grpc::Scorer;
use crate::server::http::Http;
use crate::server::http::batch::Item;
use crate::server::http::call::Ask;
use crate::server::http::chat::Prompt;
use crate::server::http::clean::{self, Switches};
use crate::server::http::error::Failure;
use crate::server::http::route::Route;
use crate::server::http::who::{Hints, Who};
use crate::server::pb;

/// The detector's name in the orchestrator's settings; a persona may be called so.
const DETECTOR: &str = "detector-id";

#[derive(Deserialize)]
pub struct Body {
    contents: Vec<String>,
    #[serde(default)]
    detector_params: Option<Map<String, Value>>,
}

pub async fn contents<S: Scorer>(State(http): State<Arc<Http<S>>>, request: Request) -> Result<Json<Value>, Failure> {
    let (ask, Body { contents, detector_params }) = Ask::read::<Body>(Route::TextContents, request).await?;
    let params = detector_params.unwrap_or_default();
    let mut own = None;
    for name in ["persona_id", "persona"] {
        let who = params.get(name).map(|value| Who::of(value, &format!("detector_params.{name}")));
        own = own.or(who.transpose()?.flatten());
    }
    let strip = ask.query.strip(Switches::NONE);
    let prompt = params.get("prompt").map(Prompt::deserialize).transpose();
    let prompt = prompt.map_err(|error| Failure::invalid("detector_params.prompt", error.to_string()))?;
    let context = prompt.unwrap_or_default().conversation(strip.think).turns;

    let spoken = |text: &String| !text.trim().is_empty();
    let mut items = Vec::new();
    for text in contents.iter().filter(|text| spoken(text)) {
        let hints = Hints { own: own.clone(), field: "detector_params.persona_id", model: ask.header(DETECTOR) };
        let reply = clean::reply(text, strip).to_owned();
        items.push(Ok(Item { who: http.who(&ask, hints)?, context: context.clone(), reply }));
    }
    let mut judged = http.judge(&ask, pb::Lane::Guard, items).await?.into_iter();
    let mut answer = Vec::with_capacity(contents.len());
    for (at, text) in contents.iter().enumerate() {
        answer.push(match spoken(text).then(|| judged.next()).flatten() {
            None => json!([]),
            Some(Ok(verdict)) => detections(text, &verdict),
            Some(Err(error)) => {
                return Err(Failure::of_reply(error, &format!("contents[{at}]"), "detector_params.prompt"));
            }
        });
    }
    Ok(Json(Value::Array(answer)))
}

/// One detection for each dimension: what is found is the likeliest label. Places are counted in characters.
fn detections(text: &str, verdict: &pb::Verdict) -> Value {
    let end = text.chars().count();
    let found = DIMENSIONS.iter().zip(dimensions(verdict)).map(|(dimension, found)| {
        let labels = [
            (Label::Aligned, found.aligned),
            (Label::Indeterminate, found.indeterminate),
            (Label::Contradictory, found.contradictory),
        ];
        let likeliest = labels.iter().max_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(label, _)| label.name());
        json!({
            "start": 0,
            "end": end,
            "text": text,
            "detection": likeliest,
            "detection_type": dimension.name(),
            "score": 1.0 - found.evidence,
        })
    });
    Value::Array(found.collect())
}
