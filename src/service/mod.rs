//! The transport-free judge: validate, plan, run, verdict. Every front end calls this and adds no rule of its own.

mod error;
mod judge;

pub use error::{ErrorCode, JudgeError};
pub use judge::{ExplainedPrompt, Explanation, Judge, JudgeConfig, JudgeInfo, OpenError, OptionOverrides, ShownLabel};

pub use crate::engine::Cancel;
