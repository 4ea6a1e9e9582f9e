//! The text of a file as a value. Messages tell the line and no text of it.

use super::node::Node;
use super::yaml;

/// How a file that is no plain text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    Toml,
    Yaml,
    Json,
}

impl Syntax {
    /// # Errors
    /// Where the text cannot be understood, and why.
    pub fn parse(self, text: &str) -> Result<Node, String> {
        match self {
            Self::Toml => toml::from_str(text).map_err(|error| toml_error(text, &error)),
            Self::Yaml => yaml::parse(text),
            Self::Json => serde_json::from_str(text).map_err(|error| json_error(&error)),
        }
    }
}

fn toml_error(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let place = before.map_or_else(String::new, |before| format!("line {}: ", before.matches('\n').count() + 1));
    format!("{place}this is not TOML: {}", error.message())
}

fn json_error(error: &serde_json::Error) -> String {
    let reason = error.to_string();
    let reason = reason.split(" at line ").next().unwrap_or_default();
    format!("line {}: this is not JSON: {reason}", error.line())
}

#[cfg(test)]
#[path = "syntax_tests.rs"]
mod tests;
