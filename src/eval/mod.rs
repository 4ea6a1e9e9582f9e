//! Benchmark data and ranking metrics. Knows the types of a request and of a verdict; runs no model itself.

mod dialogue;
mod fields;
pub mod metrics;
mod report;
mod rows;
mod transcript;

pub use dialogue::DialogueLine;
pub use report::{Collector, Ranking, Report, ScoreRow};
pub use rows::{BadLine, Item, Known, Role, Row, Violation};
pub use transcript::single as user_turn;
