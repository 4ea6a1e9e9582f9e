//! The verdict cache: judgements by the digest of all that they depend on, and at most one computation of each at a
//! time; in memory, and in Redis where several judges share. Knows `prism` and the `persona` types; nothing of models,
//! transports or tokens enters.

mod flight;
mod judgement;
mod key;
pub mod redis;
mod settings;
mod store;

pub use flight::{Follow, Lead, Rank};
pub use judgement::Judgement;
pub use key::{Question, QuestionKey};
pub use settings::{CacheControl, CacheSettings};
pub use store::{Seat, VerdictCache};
