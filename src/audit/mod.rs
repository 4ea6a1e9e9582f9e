//! The audit file: one line for each call, with all that led to its verdicts and their exact bits; and its replay.
//! Knows `service`, which tells it of every call through [`crate::service::Recorder`]. No transport enters.

mod call;
mod chain;
mod compare;
mod counts;
mod file;
mod line;
mod options;
mod processor;
mod real;
mod record;
mod replay;
mod sink;
mod text;
mod writer;

pub use call::{CallRecord, Maker, Outcome, ResultRecord};
pub use chain::{Break, Chain};
pub use compare::Difference;
pub use counts::AuditCounts;
pub use file::{Rotation, in_order};
pub use line::{Damage, Line, Link, open_line, seal};
pub use options::{AskedOptions, EffectiveOptions, ShapingRecord, WeightsRecord};
pub use processor::processor;
pub use real::Real;
pub use record::{Gap, Record, SCHEMA};
pub use replay::{Made, Mismatch, Part, Replay, replay};
pub use sink::{Audit, AuditError, AuditGuard, AuditSettings};
pub use text::{Redact, Text};
