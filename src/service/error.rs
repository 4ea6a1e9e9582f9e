//! The errors of a judgement: each has one code, and is never a number.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::OverQuota;
use crate::engine::{EngineError, Overloaded, Stop};
use crate::model::ModelError;
use crate::prism::{ConcludeError, LabelSpaceError, PlanError, TemplateError};

/// One code on every transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// A field of the request is wrong; the message names it and what is allowed.
    InvalidArgument,
    /// The model gave a value that is not finite for this candidate.
    NonFinite,
    Cancelled,
    DeadlineExceeded,
    /// The call's lane is full; nothing was done.
    Overloaded,
    /// The caller's tenant has used up its share; nothing was done.
    OverQuota,
    /// The model is restarting, or has ended.
    Unavailable,
    /// This judge knows no persona or policy of that name.
    NotFound,
    /// The model thread failed.
    Internal,
}

impl ErrorCode {
    /// The name used in JSON and docs.
    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidArgument => "invalid_argument",
            Self::NonFinite => "non_finite",
            Self::Cancelled => "cancelled",
            Self::DeadlineExceeded => "deadline_exceeded",
            Self::Overloaded => "overloaded",
            Self::OverQuota => "over_quota",
            Self::Unavailable => "unavailable",
            Self::NotFound => "not_found",
            Self::Internal => "internal",
        }
    }

    /// Whether it is the caller who has to do something about it, or has gone away; if not, the judge could not judge.
    pub(super) fn is_callers(self) -> bool {
        match self {
            Self::InvalidArgument | Self::NotFound | Self::Cancelled => true,
            Self::NonFinite
            | Self::DeadlineExceeded
            | Self::Overloaded
            | Self::OverQuota
            | Self::Unavailable
            | Self::Internal => false,
        }
    }

    /// Whether everybody who asks the same about a candidate gets the same error; if not, it is the caller's own.
    pub(super) fn is_everybodys(self) -> bool {
        match self {
            // An input that breaks the model breaks it for everybody: one who waits must not try in turn.
            Self::InvalidArgument | Self::NonFinite | Self::Internal => true,
            Self::Cancelled
            | Self::DeadlineExceeded
            | Self::Overloaded
            | Self::OverQuota
            | Self::Unavailable
            | Self::NotFound => false,
        }
    }
}

/// Why a candidate or a whole request has no verdict.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct JudgeError {
    pub code: ErrorCode,
    /// The request's field at fault, for example `candidates[3].response`.
    pub field: Option<String>,
    pub message: String,
    /// For [`ErrorCode::Overloaded`]: what is full, and when to try again.
    pub overload: Option<Box<Overloaded>>,
    /// For [`ErrorCode::OverQuota`]: how much there is, and when to try again.
    pub over_quota: Option<OverQuota>,
}

impl JudgeError {
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: Some(field.into()), ..Self::new(ErrorCode::InvalidArgument, message) }
    }

    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, field: None, message: message.into(), overload: None, over_quota: None }
    }

    /// When to try again, where that is known.
    pub fn retry_after(&self) -> Option<Duration> {
        let overload = self.overload.as_ref().map(|overload| overload.retry_after);
        overload.or(self.over_quota.map(|over| over.retry_after))
    }

    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Internal, message)
    }

    /// The error of the candidate at `from` as that of the same candidate at `to`.
    pub(super) fn moved(self, from: usize, to: usize) -> Self {
        let moved = |field: String| match field.strip_prefix(&format!("candidates[{from}]")) {
            Some(rest) => format!("candidates[{to}]{rest}"),
            None => field,
        };
        Self { field: self.field.map(moved), ..self }
    }
}

impl From<Stop> for JudgeError {
    fn from(stop: Stop) -> Self {
        EngineError::Stopped(stop).into()
    }
}

impl From<Overloaded> for JudgeError {
    fn from(overloaded: Overloaded) -> Self {
        EngineError::Overloaded(overloaded).into()
    }
}

impl From<OverQuota> for JudgeError {
    fn from(over: OverQuota) -> Self {
        Self { over_quota: Some(over), ..Self::new(ErrorCode::OverQuota, over.to_string()) }
    }
}

impl From<EngineError> for JudgeError {
    fn from(error: EngineError) -> Self {
        let code = match error {
            EngineError::NonFinite => ErrorCode::NonFinite,
            EngineError::Stopped(Stop::Cancelled) => ErrorCode::Cancelled,
            EngineError::Stopped(Stop::DeadlineExceeded) => ErrorCode::DeadlineExceeded,
            EngineError::TooLong { .. } | EngineError::KvBudget { .. } => ErrorCode::InvalidArgument,
            EngineError::Overloaded(_) => ErrorCode::Overloaded,
            EngineError::Failed(_) => ErrorCode::Internal,
        };
        let new = Self::new(code, error.to_string());
        match error {
            EngineError::Overloaded(overloaded) => Self { overload: Some(Box::new(overloaded)), ..new },
            _ => new,
        }
    }
}

impl From<PlanError> for JudgeError {
    fn from(error: PlanError) -> Self {
        let field = error.field().map(str::to_owned);
        Self { field, ..Self::new(ErrorCode::InvalidArgument, error.to_string()) }
    }
}

impl From<ConcludeError> for JudgeError {
    fn from(error: ConcludeError) -> Self {
        let non_finite = matches!(error, ConcludeError::NonFinite(_));
        Self::new(if non_finite { ErrorCode::NonFinite } else { ErrorCode::Internal }, error.to_string())
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
    /// The budget of keys and values holds hardly a prompt.
    #[error(
        "{have} MiB for keys and values (--kv-cache-mb) are too few: this model needs {least} for prompts of {tokens} tokens"
    )]
    KvBudget { have: usize, least: usize, tokens: usize },
    #[error("threads must be at least 1")]
    Threads,
    #[error("a thread cannot be started: {0}")]
    Thread(std::io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_moves_with_its_candidate_and_others_stay() {
        let field = |field: &str| JudgeError::invalid(field, "m").moved(3, 12).field.unwrap_or_default();
        assert_eq!(field("candidates[3].response"), "candidates[12].response");
        assert_eq!(field("candidates[31].response"), "candidates[31].response");
        assert_eq!(field("context[3].speaker"), "context[3].speaker");
        assert_eq!(JudgeError::internal("m").moved(3, 12), JudgeError::internal("m"));
    }
}
