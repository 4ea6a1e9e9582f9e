//! The transport-free judge: validate, look up, plan, run, verdict. Every front end calls this and adds no rule of its own.

mod call;
mod config;
mod error;
mod judge;
mod pool;
mod prompts;
mod record;
mod report;
mod score;
mod slot;
mod tokens;
mod wording;

pub use call::Call;
pub use config::{AnswerSlot, JudgeConfig, OptionOverrides};
pub use error::{ErrorCode, JudgeError, OpenError};
pub use judge::Judge;
pub use prompts::TokenPrompt;
pub use record::{Finished, Recorder, Recording};
pub use report::{ExplainedPrompt, Explanation, JudgeInfo, ShownLabel};
pub use score::Scored;

pub use crate::cache::{CacheControl, CacheSettings};
pub use crate::engine::{Cancel, EngineSettings, Health, Lane, Overloaded};
pub use crate::numerics::Numerics;
