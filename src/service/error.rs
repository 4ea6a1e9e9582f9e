//! The errors of a judgement: each has one code, and is never a number.

use serde::Serialize;

use crate::model::ModelError;
use crate::prism::{LabelSpaceError, PlanError, TemplateError};

/// One code on every transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// A field of the request is wrong; the message names it and what is allowed.
    InvalidArgument,
    /// The model gave a value that is not finite for this candidate.
    NonFinite,
    Cancelled,
    DeadlineExceeded,
    /// The model thread failed.
    Internal,
}

/// Why a candidate or a whole request has no verdict.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct JudgeError {
    pub code: ErrorCode,
    /// The request's field at fault, for example `candidates[3].response`.
    pub field: Option<String>,
    pub message: String,
}

impl JudgeError {
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: ErrorCode::InvalidArgument, field: Some(field.into()), message: message.into() }
    }

    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, field: None, message: message.into() }
    }
}

/// Why a judge could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(transparent)]
    LabelSpaces(#[from] LabelSpaceError),
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The wording does not work on a probe request.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The model does not work on a probe request.
    #[error(transparent)]
    Probe(#[from] JudgeError),
    #[error("answer slot: {0}")]
    AnswerSlot(String),
    #[error("threads must be at least 1")]
    Threads,
    #[error("the model thread cannot be started: {0}")]
    Thread(std::io::Error),
}
