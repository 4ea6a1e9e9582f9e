//! Typed reading of a JSON object: an error names the field, the kind that was found and what is allowed.

use serde_json::{Map, Value};

/// Why a field cannot be used.
pub type FieldError = String;

/// An object and the path that leads to it, for error messages.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    object: &'a Map<String, Value>,
    path: &'a str,
}

impl<'a> Fields<'a> {
    pub fn new(object: &'a Map<String, Value>, path: &'a str) -> Self {
        Self { object, path }
    }

    /// The full name of a field of this object.
    pub fn name(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// The field's value; `null` counts as missing.
    pub fn get(&self, key: &str) -> Option<&'a Value> {
        self.object.get(key).filter(|value| !value.is_null())
    }

    pub fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// The text of a field that may be missing.
    pub fn text(&self, key: &str) -> Result<Option<String>, FieldError> {
        self.get(key).map(|value| text(value, &self.name(key))).transpose()
    }

    /// The text of a field that must be there.
    pub fn required_text(&self, key: &str) -> Result<String, FieldError> {
        self.text(key)?.ok_or_else(|| missing(&self.name(key), "a string"))
    }

    /// An identifier: a string, or an integer written out.
    pub fn identifier(&self, key: &str) -> Result<Option<String>, FieldError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::String(id)) => Ok(Some(id.clone())),
            Some(Value::Number(id)) if id.is_u64() || id.is_i64() => Ok(Some(id.to_string())),
            Some(other) => Err(wrong(&self.name(key), other, "a string or an integer")),
        }
    }

    /// The items of a list; a missing field is an empty list. Each comes with its full name.
    pub fn list(&self, key: &str, of: &str) -> Result<Vec<(String, &'a Value)>, FieldError> {
        match self.get(key) {
            None => Ok(Vec::new()),
            Some(value) => items(value, &self.name(key), of),
        }
    }

    /// Refuses fields that have no meaning here: a typing mistake must not change what is judged.
    pub fn only(&self, allowed: &[&str]) -> Result<(), FieldError> {
        match self.object.keys().find(|key| !allowed.contains(&key.as_str())) {
            None => Ok(()),
            Some(key) => Err(format!("{} is not known; allowed are {}", self.name(key), allowed.join(", "))),
        }
    }
}

/// The text of `value`.
pub fn text(value: &Value, name: &str) -> Result<String, FieldError> {
    value.as_str().map(str::to_owned).ok_or_else(|| wrong(name, value, "a string"))
}

/// The object of `value`; `shape` says what it should look like.
pub fn object<'a>(value: &'a Value, name: &str, shape: &str) -> Result<&'a Map<String, Value>, FieldError> {
    value.as_object().ok_or_else(|| wrong(name, value, shape))
}

/// The items of the list `value`, each with its full name.
pub fn items<'a>(value: &'a Value, name: &str, of: &str) -> Result<Vec<(String, &'a Value)>, FieldError> {
    match value {
        Value::Array(items) => {
            Ok(items.iter().enumerate().map(|(index, item)| (format!("{name}[{index}]"), item)).collect())
        }
        other => Err(wrong(name, other, &format!("a list of {of}"))),
    }
}

/// The error for a field that is not there.
pub fn missing(name: &str, allowed: &str) -> FieldError {
    format!("{name} is missing; it must be {allowed}")
}

/// The error for a field of another kind.
pub fn wrong(name: &str, found: &Value, allowed: &str) -> FieldError {
    format!("{name} is {}; it must be {allowed}", kind(found))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
