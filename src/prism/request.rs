//! What is judged: one persona and context, one or more candidate responses.

use serde::{Deserialize, Serialize};

use crate::persona::Persona;

/// One turn of the dialogue before the response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    pub speaker: String,
    pub text: String,
}

/// One candidate response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// Echoed in the verdict; also the case id of the `released` label order.
    pub id: String,
    pub response: String,
}

/// A group: candidates that answer the same context under the same persona.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub persona: Persona,
    pub context: Vec<Turn>,
    pub candidates: Vec<Candidate>,
}
