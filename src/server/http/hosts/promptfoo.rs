//! promptfoo, assertions of type `webhook`. The persona is a variable of the test (`persona_id` or `persona`), or in the
//! address.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Json;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::server::grpc::Scorer;
use crate::server::http::Http;
use crate::server::http::batch::Item;
use crate::server::http::call::Ask;
use crate::server::http::chat::{Message, Prompt};
use crate::server::http::clean::{self, Switches};
use crate::server::http::error::Failure;
use crate::server::http::guard::{self, Ruling};
use crate::server::http::route::Route;
use crate::server::http::who::{Hints, Who};
use crate::server::pb;

#[derive(Deserialize)]
pub struct Body {
    /// A text, or what promptfoo parsed of one.
    output: Value,
    #[serde(default)]
    context: Context,
}

#[derive(Default, Deserialize)]
struct Context {
    #[serde(default)]
    prompt: Prompt,
    #[serde(default)]
    vars: Map<String, Value>,
}

pub async fn webhook<S: Scorer>(State(http): State<Arc<Http<S>>>, request: Request) -> Result<Json<Value>, Failure> {
    let (ask, Body { output, context }) = Ask::read::<Body>(Route::Promptfoo, request).await?;
    let mut own = None;
    for name in ["persona_id", "persona"] {
        let who = context.vars.get(name).map(|value| Who::of(value, &format!("context.vars.{name}")));
        own = own.or(who.transpose()?.flatten());
    }
    let who = http.who(&ask, Hints { own, field: "context.vars.persona_id", model: None })?;
    let strip = ask.query.strip(Switches::NONE);
    let output = match output {
        Value::String(text) => text,
        parsed => parsed.to_string(),
    };
    let reply = clean::reply(&output, strip).to_owned();
    let item = Item { who, context: prompt(context.prompt).conversation(strip.think).turns, reply };
    let judged = http.judge_one(&ask, pb::Lane::Batch, item).await?;
    let (pass, reason) = match guard::rule(&judged, &ask.query) {
        Ruling::Allow => (true, "in persona".to_owned()),
        Ruling::Block(reason) => (false, reason),
    };
    let verdict = judged.map_err(|error| Failure::of_reply(error, "output", "context.prompt"))?;
    Ok(Json(json!({"pass": pass, "score": verdict.s_prism, "reason": reason})))
}

/// Chat prompts are messages in a text.
fn prompt(prompt: Prompt) -> Prompt {
    match &prompt {
        Prompt::Text(text) if text.trim_start().starts_with('[') => {
            serde_json::from_str::<Vec<Message>>(text).map_or(prompt, Prompt::Messages)
        }
        _ => prompt,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chat_prompt_is_the_messages_that_it_holds() {
        let chat = prompt(Prompt::Text("[{\"role\": \"user\", \"content\": \"Hi!\"}]".into()));
        let turns = chat.conversation(false).turns;
        assert_eq!(turns, [pb::Turn { speaker: "User".into(), text: "Hi!".into() }]);
        for text in ["[INST] x", "[1, 2]", "Hi!"] {
            assert_eq!(prompt(Prompt::Text(text.into())), Prompt::Text(text.into()));
        }
    }
}
