//! LiteLLM, the generic guardrail API. A call comes twice: with the conversation before the model answers, and with the
//! answer alone after it, or several times while it streams. The first is remembered by `litellm_call_id`.
//!
//! The persona of an answer, the first that says something: what every route goes by first (`who`), a header of the
//! proxied request, the system message of the remembered conversation, `additional_provider_specific_params`, the model.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Json;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::ItemError;
use super::memory::Remembered;
use crate::server::Caller;
use crate::server::grpc::Scorer;
use crate::server::http::Http;
use crate::server::http::batch::Item;
use crate::server::http::call::Ask;
use crate::server::http::chat::{Conversation, Message};
use crate::server::http::clean::{self, Switches};
use crate::server::http::error::Failure;
use crate::server::http::guard::{self, Ruling};
use crate::server::http::query::{Parameter, Query};
use crate::server::http::route::Route;
use crate::server::http::who::{Hints, Who};
use crate::server::pb;

/// Headers of the proxied request that name a persona. The second kind is forwarded unasked; the first must be in the
/// guardrail's `extra_headers`.
const HEADERS: [&str; 2] = ["x-persona-id", "x-litellm-persona-id"];

/// What stands in place of the value of a header that is not forwarded.
const WITHHELD: &str = "[present]";

#[derive(Deserialize)]
pub struct Body {
    input_type: InputType,
    #[serde(default)]
    texts: Option<Vec<String>>,
    #[serde(default)]
    structured_messages: Option<Vec<Message>>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    litellm_call_id: Option<String>,
    #[serde(default)]
    request_headers: Option<Map<String, Value>>,
    #[serde(default)]
    additional_provider_specific_params: Option<Map<String, Value>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum InputType {
    Request,
    Response,
}

pub async fn guardrail<S: Scorer>(State(http): State<Arc<Http<S>>>, request: Request) -> Result<Json<Value>, Failure> {
    let (mut ask, body) = Ask::read::<Body>(Route::BasicGuardrail, request).await?;
    let params = body.additional_provider_specific_params.unwrap_or_default();
    ask.query = parameters(&params, ask.pairs())?;
    let tenant = ask.extensions().get::<Caller>().map(|caller| Arc::clone(&caller.tenant)).unwrap_or_default();
    let call = body.litellm_call_id.unwrap_or_default();
    if let InputType::Request = body.input_type {
        if let (Some(messages), false) = (&body.structured_messages, call.is_empty()) {
            http.memory.keep(&tenant, &call, remembered(messages));
        }
        return Ok(Json(allowed()));
    }
    // Nobody reads a text without words.
    let texts = body.texts.unwrap_or_default();
    let texts: Vec<_> = texts.iter().enumerate().filter(|(_, text)| !text.trim().is_empty()).collect();
    if texts.is_empty() {
        return Ok(Json(allowed()));
    }
    let before = match &body.structured_messages {
        Some(messages) if !messages.is_empty() => Arc::new(remembered(messages)),
        _ => http.memory.recall(&tenant, &call).unwrap_or_default(),
    };
    let own = match (header(body.request_headers.as_ref()), &before.who) {
        (Some(id), _) => Some(Who::Id(id)),
        (None, Some(described)) => Some(described.clone()),
        (None, None) => persona(&params, body.model.as_deref())?,
    };
    let field = "additional_provider_specific_params.persona_id";
    let who = http.who(&ask, Hints { own, field, model: body.model.as_deref() })?;
    let strip = ask.query.strip(Switches::NONE);
    let items = texts.iter().map(|(_, text)| {
        let reply = clean::reply(text, strip).to_owned();
        Ok(Item { who: who.clone(), context: before.turns.clone(), reply })
    });
    let judged = http.judge(&ask, pb::Lane::Guard, items.collect()).await?;
    let mut answer = allowed();
    if let Some(reason) = judged.iter().find_map(|result| match guard::rule(result, &ask.query) {
        Ruling::Block(reason) => Some(reason),
        Ruling::Allow => None,
    }) {
        answer = json!({"action": "BLOCKED", "blocked_reason": reason});
    }
    let failed = texts.iter().zip(&judged).filter_map(|((at, _), result)| Some((*at, result.as_ref().err()?)));
    let errors: Vec<ItemError> = failed.map(|(at, error)| ItemError::of(at, error, "texts")).collect();
    if !errors.is_empty() {
        answer["errors"] = json!(errors);
    }
    Ok(Json(answer))
}

fn allowed() -> Value {
    json!({"action": "NONE", "blocked_reason": null})
}

/// A conversation: its turns, and the persona that its system message describes.
fn remembered(messages: &[Message]) -> Remembered {
    let (mut conversation, mut described) = (Conversation::default(), String::new());
    for Message { role, content } in messages {
        if matches!(role.as_str(), "system" | "developer") {
            described = [described.as_str(), content.0.trim()].join("\n").trim().to_owned();
        } else {
            conversation.add(role, &content.0, true);
        }
    }
    let persona = (!described.is_empty()).then(|| pb::Persona { description: described, ..pb::Persona::default() });
    Remembered { who: persona.map(Who::Inline), turns: conversation.turns }
}

/// The id in a header of the proxied request.
fn header(headers: Option<&Map<String, Value>>) -> Option<String> {
    let value = |name: &str| {
        let found = headers?.iter().find(|(header, _)| header.eq_ignore_ascii_case(name));
        found?.1.as_str().filter(|value| !value.is_empty() && *value != WITHHELD)
    };
    HEADERS.into_iter().find_map(value).map(str::to_owned)
}

/// What the guardrail's own settings say: `persona_id`, `persona`, or `personas` with an id for each model.
fn persona(params: &Map<String, Value>, model: Option<&str>) -> Result<Option<Who>, Failure> {
    let of_model = params.get("personas").zip(model).and_then(|(personas, model)| personas.get(model));
    for (name, value) in
        [("persona_id", params.get("persona_id")), ("persona", params.get("persona")), ("personas", of_model)]
    {
        let field = format!("additional_provider_specific_params.{name}");
        if let Some(who) = value.map(|value| Who::of(value, &field)).transpose()?.flatten() {
            return Ok(Some(who));
        }
    }
    Ok(None)
}

/// The route's parameters, which a guardrail's settings can hold too; those after the `?` go first.
fn parameters(params: &Map<String, Value>, asked: &[(String, String)]) -> Result<Query, Failure> {
    let allowed = Route::BasicGuardrail.parameters();
    let known = allowed.iter().filter(|parameter| **parameter != Parameter::PersonaId).map(|known| known.name());
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let set: Vec<_> = known.filter_map(|name| Some((name.to_owned(), text(params.get(name)?)))).collect();
    Query::default().read(&set, allowed)?.read(asked, allowed)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn a_withheld_header_names_nobody() {
        let of = |value: Value| header(value.as_object());
        assert_eq!(of(json!({"X-Persona-Id": "teodor"})).as_deref(), Some("teodor"));
        assert_eq!(of(json!({"x-persona-id": "[present]"})), None);
        assert_eq!(of(json!({"x-persona-id": "[present]", "x-litellm-persona-id": "t"})).as_deref(), Some("t"));
        assert_eq!(header(None), None);
    }

    #[test]
    fn settings_name_a_persona_or_one_for_each_model() {
        let of = |params: Value| persona(params.as_object().unwrap(), Some("gpt")).unwrap();
        assert_eq!(of(json!({"persona_id": "a", "personas": {"gpt": "b"}})), Some(Who::Id("a".into())));
        assert_eq!(of(json!({"personas": {"gpt": "b"}})), Some(Who::Id("b".into())));
        assert_eq!(of(json!({"personas": {"other": "b"}, "unrelated": 7})), None);
        assert!(persona(json!({"persona_id": 7}).as_object().unwrap(), None).is_err());
    }

    #[test]
    fn the_system_message_describes_the_persona_and_is_no_turn() {
        let messages: Vec<Message> = serde_json::from_value(json!([
            {"role": "system", "content": "Be Teodor."},
            {"role": "user", "content": "Hi!"},
            {"role": "developer", "content": "Be kind."},
        ]))
        .unwrap();
        let Remembered { who, turns } = remembered(&messages);
        let persona = pb::Persona { description: "Be Teodor.\nBe kind.".into(), ..pb::Persona::default() };
        assert_eq!(who, Some(Who::Inline(persona)));
        assert_eq!(turns, [pb::Turn { speaker: "User".into(), text: "Hi!".into() }]);
    }

    #[test]
    fn settings_hold_parameters_too_and_the_address_goes_first() {
        let params = json!({"threshold": 0.25, "on_error": "block", "unrelated": [1]});
        let params = params.as_object().unwrap();
        let read = parameters(params, &[]).unwrap();
        assert_eq!((read.threshold, read.block_on_error), (0.25, true));
        let read = parameters(params, &[("threshold".into(), "0.75".into())]).unwrap();
        assert_eq!((read.threshold, read.block_on_error), (0.75, true));
    }
}
