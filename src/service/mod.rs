//! The transport-free judge: validate, look up, plan, run, verdict. Every front end calls this and adds no rule of its own.

mod arithmetic;
mod call;
pub mod check;
mod config;
mod count;
mod dialogue;
mod error;
mod judge;
mod limits;
mod observe;
mod pool;
mod prompts;
mod quota;
mod record;
mod report;
mod score;
mod self_check;
mod slot;
mod subject;
mod tokens;
mod warnings;
mod wording;

pub use call::Call;
pub use config::{AnswerSlot, JudgeConfig, OptionOverrides};
pub use dialogue::{Dialogue, ScoredDialogue};
pub use error::{ErrorCode, JudgeError, OpenError};
pub use judge::Judge;
pub use limits::{LimitSettings, check_persona, check_request_id};
pub use prompts::TokenPrompt;
pub use quota::{OverQuota, Quota};
pub use record::{Finished, Recorder, Recording};
pub use report::{ExplainedPrompt, Explanation, JudgeInfo, Load, ShownLabel};
pub use score::Scored;

pub use crate::cache::redis::{RedisSettings, RedisTier};
pub use crate::cache::{CacheControl, CacheSettings};
pub use crate::engine::{Cancel, EngineSettings, Health, Lane, Overloaded, Stop};
pub use crate::numerics::Numerics;
