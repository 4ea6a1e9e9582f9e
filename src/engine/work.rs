//! What the engine is asked and what it answers.

use std::ops::Range;

use super::Stop;
use crate::model::TokenId;

/// What is read from one prompt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Read {
    /// Log-probabilities of these tokens right after the prompt.
    Next(Vec<TokenId>),
    /// Log-probability of each token of this range of the prompt, given everything before it. Starts at 1 or later.
    Span(Range<usize>),
}

/// One whole prompt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Prompt {
    pub ids: Vec<TokenId>,
    pub read: Read,
}

/// The answer to one prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Natural log-probabilities over the full vocabulary, in the order that [`Read`] asked for.
    pub log_probs: Vec<f64>,
    /// Distinct tokens that went through the model for this prompt and for no earlier one of the same work.
    pub computed: usize,
}

/// Why a prompt or a whole piece of work has no reading.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    #[error("the model gave a value that is not finite")]
    NonFinite,
    #[error("{}", match .0 { Stop::Cancelled => "the call was cancelled", Stop::DeadlineExceeded => "the deadline passed" })]
    Stopped(Stop),
    #[error("a prompt of {tokens} tokens is longer than the model's context of {limit} tokens")]
    TooLong { tokens: usize, limit: usize },
    #[error("the model thread failed: {0}")]
    Failed(String),
}
