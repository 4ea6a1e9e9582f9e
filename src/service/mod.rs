//! The transport-free judge: validate, plan, run, verdict. Every front end calls this and adds no rule of its own.

mod config;
mod error;
mod judge;
mod prompts;
mod report;
mod slot;
mod tokens;

pub use config::{AnswerSlot, JudgeConfig, OptionOverrides};
pub use error::{ErrorCode, JudgeError, OpenError};
pub use judge::Judge;
pub use prompts::TokenPrompt;
pub use report::{ExplainedPrompt, Explanation, JudgeInfo, ShownLabel};

pub use crate::engine::Cancel;
