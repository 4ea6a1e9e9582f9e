//! Whose persona a flat request means. Hosts have one short field for it, or none.
//!
//! The first that says something: the parameter `persona_id`, the header `x-persona-id`, the host's own field (a label, a
//! column of the data set), `model` if a persona is called so, and the server's `--default-persona`.

use serde::Deserialize;
use serde_json::Value;

use super::Http;
use super::call::Ask;
use super::error::Failure;
use crate::server::grpc::Scorer;
use crate::server::pb;

/// The header that names a persona.
pub const HEADER: &str = "x-persona-id";

/// Whose persona a reply is judged by.
#[derive(Clone, Debug, PartialEq)]
pub enum Who {
    /// One that the judge was given when it was started.
    Id(String),
    /// What the request says.
    Inline(pb::Persona),
}

impl Who {
    /// What a host's field says: an id, or a persona (an object, or a text that holds one); None if it says nothing.
    ///
    /// # Errors
    /// 400 with `field`.
    pub fn of(value: &Value, field: &str) -> Result<Option<Self>, Failure> {
        let wrong =
            |what: &str| Failure::invalid(field, format!("{what}; it must be the id of a persona, or a persona"));
        let persona = |object: &Value| match pb::Persona::deserialize(object) {
            Ok(persona) => Ok(Some(Self::Inline(persona))),
            Err(error) => Err(wrong(&error.to_string())),
        };
        match value {
            Value::Null => Ok(None),
            Value::String(text) if text.trim().is_empty() => Ok(None),
            // Columns of data sets are often texts.
            Value::String(text) if text.trim_start().starts_with('{') => match serde_json::from_str(text) {
                Ok(object) => persona(&object),
                Err(error) => Err(wrong(&error.to_string())),
            },
            Value::String(id) => Ok(Some(Self::Id(id.clone()))),
            Value::Object(_) => persona(value),
            _ => Err(wrong("it is neither a text nor an object")),
        }
    }
}

/// What a host says of the persona, beside parameters and headers.
#[derive(Clone, Debug, Default)]
pub struct Hints<'a> {
    /// The host's own field.
    pub own: Option<Who>,
    /// Its name.
    pub field: &'a str,
    /// A field that mostly means something else: it counts if a persona is called so.
    pub model: Option<&'a str>,
}

impl<S: Scorer> Http<S> {
    /// Whose persona is meant.
    ///
    /// # Errors
    /// 400: nobody says.
    pub fn who(&self, ask: &Ask, hints: Hints<'_>) -> Result<Who, Failure> {
        let Hints { own, field, model } = hints;
        let said = ask.query.persona_id.as_deref().or_else(|| ask.header(HEADER)).map(|id| Who::Id(id.to_owned()));
        let model = || model.filter(|model| self.grpc.knows(model)).map(|id| Who::Id(id.to_owned()));
        let default = || self.options.default_persona.clone().map(Who::Id);
        said.or(own).or_else(model).or_else(default).ok_or_else(|| {
            let message = "nobody says whose persona is meant: send the id of one here, as the parameter `persona_id` or \
                           as the header `x-persona-id`, or start the server with --default-persona";
            Failure::invalid(field, message)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_holds_an_id_or_a_persona_or_nothing() {
        let of = |value: Value| Who::of(&value, "label");
        let kind = Who::Inline(pb::Persona { description: "kind".into(), ..pb::Persona::default() });
        assert_eq!(of(json!("teodor")).unwrap(), Some(Who::Id("teodor".into())));
        assert_eq!(of(json!({"description": "kind"})).unwrap(), Some(kind.clone()));
        assert_eq!(of(json!(" {\"description\": \"kind\"}")).unwrap(), Some(kind));
        for nothing in [json!(null), json!(""), json!(" ")] {
            assert_eq!(of(nothing).unwrap(), None);
        }
        for wrong in [json!(7), json!(["a"]), json!({"descripton": "kind"}), json!("{"), json!("{\"name\": 7}")] {
            assert_eq!(of(wrong.clone()).unwrap_err().field(), Some("label"), "{wrong}");
        }
    }
}
