//! Benchmark data and ranking metrics. Knows `service`, and through it the types of a request; runs no model itself.

mod fields;
pub mod metrics;
mod report;
mod rows;
mod transcript;

pub use report::{Collector, Report, Row as ScoreRow};
pub use rows::{BadLine, Item, Role, Row, Violation};
