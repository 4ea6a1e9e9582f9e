//! What can be wrong with a model file.

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error("model file {path}: {reason}")]
    File { path: PathBuf, reason: String },
    /// The file is readable but cannot be used; the message names what it has and what is supported.
    #[error("{0}")]
    Unsupported(String),
    #[error("tokenizer: {0}")]
    Tokenizer(String),
    #[error("chat template: {0}")]
    ChatTemplate(String),
    /// A model name that is neither known nor a file; names what is known.
    #[error("{0}")]
    Unknown(String),
    #[error("fetching the model: {0}")]
    Fetch(String),
}

/// A candle error without the backtrace that `RUST_BACKTRACE` adds to it.
pub(super) fn brief(error: &candle_core::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}
