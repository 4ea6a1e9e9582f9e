//! The transport-free judge: validate, look up, plan, run, verdict. Every front end calls this and adds no rule of its own.

mod call;
mod config;
mod error;
mod judge;
mod limits;
mod pool;
mod prompts;
mod report;
mod score;
mod slot;
mod tokens;
mod warnings;
mod wording;

pub use call::Call;
pub use config::{AnswerSlot, JudgeConfig, OptionOverrides};
pub use error::{ErrorCode, JudgeError, OpenError};
pub use judge::Judge;
pub use limits::{LimitSettings, check_request_id};
pub use prompts::TokenPrompt;
pub use report::{ExplainedPrompt, Explanation, JudgeInfo, ShownLabel};
pub use score::Scored;

pub use crate::cache::{CacheControl, CacheSettings};
pub use crate::engine::{Cancel, EngineSettings, Health, Lane, Overloaded};
pub use crate::numerics::Numerics;
