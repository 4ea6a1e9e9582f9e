//! NeMo-Gym: a resources server's `/verify`. The request comes back with the reward and its components, which NeMo-RL
//! adds up and compares.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Json;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{by_dimension, evidence};
use crate::server::grpc::Scorer;
use crate::server::http::Http;
use crate::server::http::batch::Item;
use crate::server::http::call::Ask;
use crate::server::http::chat::{Content, Conversation, Prompt};
use crate::server::http::clean;
use crate::server::http::error::Failure;
use crate::server::http::route::Route;
use crate::server::http::who::{Hints, Who};
use crate::server::pb;

const INPUT: &str = "responses_create_params.input";
const OUTPUT: &str = "response.output";

/// An item of the Responses API. Those that are no messages (thoughts, calls of tools and their results) are not judged.
#[derive(Deserialize)]
struct Entry {
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    role: String,
    #[serde(default)]
    content: Content,
}

pub async fn verify<S: Scorer>(State(http): State<Arc<Http<S>>>, request: Request) -> Result<Json<Value>, Failure> {
    let (ask, mut row) = Ask::read::<Map<String, Value>>(Route::Verify, request).await?;
    let who = http.who(&ask, Hints { own: persona(&row)?, field: "persona_id", model: None })?;
    let strip = ask.query.strip(http.options.strip);
    let input = row.get("responses_create_params").and_then(|asked| asked.get("input"));
    let mut conversation = match input {
        Some(Value::Array(_)) => {
            let mut conversation = Conversation::default();
            for Entry { role, content, .. } in messages(input, INPUT)? {
                conversation.add(&role, &content.0, strip.think);
            }
            conversation
        }
        input => part::<Prompt>(input, INPUT)?.conversation(strip.think),
    };
    let mut output = messages(row.get("response").and_then(|response| response.get("output")), OUTPUT)?;
    // Without a message the model said nothing.
    let last = output.pop().map_or(String::new(), |message| message.content.0);
    for Entry { role, content, .. } in output {
        conversation.add(&role, &content.0, strip.think);
    }
    let item = Item { who, context: conversation.turns, reply: clean::reply(&last, strip).to_owned() };
    let (reward, evidence) = match (http.judge_one(&ask, pb::Lane::Train, item).await?, ask.query.error_score) {
        (Ok(verdict), _) => (verdict.s_prism, evidence(&verdict)),
        (Err(_), Some(stand_in)) => (stand_in, [stand_in; 3]),
        (Err(error), None) => return Err(Failure::of_reply(error, OUTPUT, INPUT)),
    };
    row.insert("reward".to_owned(), json!(reward));
    row.insert("reward_components".to_owned(), Value::Object(by_dimension(evidence.map(|evidence| evidence / 3.0))));
    // Its aggregate metrics look at top-level numbers alone.
    row.extend(by_dimension(evidence));
    Ok(Json(Value::Object(row)))
}

/// Whose persona a row means.
fn persona(row: &Map<String, Value>) -> Result<Option<Who>, Failure> {
    let metadata = row.get("verifier_metadata").and_then(|metadata| metadata.get("persona_id"));
    for (name, value) in [
        ("persona_id", row.get("persona_id")),
        ("persona", row.get("persona")),
        ("verifier_metadata.persona_id", metadata),
    ] {
        if let Some(who) = value.map(|value| Who::of(value, name)).transpose()?.flatten() {
            return Ok(Some(who));
        }
    }
    Ok(None)
}

fn messages(value: Option<&Value>, field: &str) -> Result<Vec<Entry>, Failure> {
    let mut entries: Vec<Entry> = part(value, field)?;
    entries.retain(|entry| entry.kind.as_deref().is_none_or(|kind| kind == "message"));
    Ok(entries)
}

fn part<T: DeserializeOwned>(value: Option<&Value>, field: &str) -> Result<T, Failure> {
    let value = value.ok_or_else(|| Failure::invalid(field, "is missing"))?;
    T::deserialize(value).map_err(|error| Failure::invalid(field, error.to_string()))
}
