//! The errors of a judgement: each has one code, and is never a number.

use serde::Serialize;

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
