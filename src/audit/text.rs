//! Text of a caller: as it is, or its digest alone.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// What of a call is replaced by its SHA-256 digest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum Redact {
    /// Nothing: the record can be replayed.
    #[default]
    None,
    /// Persona, context and responses. Error messages are left out, since they may quote them.
    Text,
    /// Text, and the caller's ids: of the request, the tenant and the candidates.
    All,
}

/// A text, or the digest of its UTF-8 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Text {
    Plain(String),
    Redacted { sha256: Digest },
}

impl Text {
    pub fn new(text: &str, redacted: bool) -> Self {
        if redacted {
            Self::Redacted { sha256: Digest::of_bytes(text.as_bytes()) }
        } else {
            Self::Plain(text.to_owned())
        }
    }

    /// The text; None if only its digest is there.
    pub fn plain(&self) -> Option<String> {
        match self {
            Self::Plain(text) => Some(text.clone()),
            Self::Redacted { .. } => None,
        }
    }

    /// For people: the text, or the start of its digest.
    pub fn shown(&self) -> String {
        match self {
            Self::Plain(text) => text.clone(),
            Self::Redacted { sha256 } => sha256.to_string().chars().take(12).collect(),
        }
    }
}
