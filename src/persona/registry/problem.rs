//! What is wrong with personas, so that one answer tells all of it.

use std::fmt;

use super::{Registry, id};
use crate::near;

/// Problems that are told, at most.
const TOLD: usize = 20;

/// One thing that is wrong. No text of a persona is part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file, as it was named or found.
    pub file: String,
    /// The field, for example `ada.traits[0].trait`; empty: the file as a whole.
    pub field: String,
    /// What it is and what it must be.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, field, message } = self;
        if field.is_empty() { write!(f, "{file}: {message}") } else { write!(f, "{file}: {field}: {message}") }
    }
}

/// Why a set of personas is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct RegistryError {
    /// At least one, in the order of the files.
    pub problems: Vec<Problem>,
}

impl RegistryError {
    /// `set`, unless something is wrong.
    pub(super) fn unless<T>(problems: Vec<Problem>, set: T) -> Result<T, Self> {
        if problems.is_empty() { Ok(set) } else { Err(Self { problems }) }
    }
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [problem] = &self.problems[..] {
            return problem.fmt(f);
        }
        write!(f, "{} things are wrong", self.problems.len())?;
        for problem in self.problems.iter().take(TOLD) {
            write!(f, "\n  {problem}")?;
        }
        match self.problems.len().saturating_sub(TOLD) {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}

/// An id that no persona has. Every front end tells it in these words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownPersona {
    #[error("no persona is called {id:?}; nearest: {nearest}")]
    Unknown { id: String, nearest: String },
    #[error("no persona can be called that: an id has {rule}", rule = id::RULE)]
    NoId,
    #[error("no persona is known by an id: nothing was given as --personas")]
    NoPersonas,
}

impl UnknownPersona {
    pub(super) fn new(id: &str, registry: &Registry) -> Self {
        if registry.is_empty() {
            return Self::NoPersonas;
        }
        // Neither echoed nor compared with anything: it may be megabytes long.
        if !id::is_id(id) {
            return Self::NoId;
        }
        let nearest = near::meant(id, registry.iter().map(|named| named.id.as_str()));
        Self::Unknown { id: id.to_owned(), nearest }
    }
}

/// The problems of one file, as they are found.
#[derive(Debug)]
pub(super) struct Problems<'a> {
    file: &'a str,
    pub found: Vec<Problem>,
}

impl<'a> Problems<'a> {
    pub fn of(file: &'a str) -> Self {
        Self { file, found: Vec::new() }
    }

    pub fn push(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.found.push(Problem { file: self.file.to_owned(), field: field.into(), message: message.into() });
    }

    /// Of a value of a wrong kind.
    pub fn wrong(&mut self, field: impl Into<String>, kind: &str, allowed: &str) {
        self.push(field, format!("it is {kind}; it must be {allowed}"));
    }
}
