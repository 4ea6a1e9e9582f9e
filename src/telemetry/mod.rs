//! What the program says of itself: metrics, logs and spans. Every room may record here; this room knows none of them.
//!
//! No text of a request and no key enters: label values come from closed sets, log lines and spans carry sizes, codes
//! and digests.

pub mod catalogue;
mod exporter;
mod labels;
pub mod log;
mod metric;
mod process;
mod record;
mod served;
pub mod trace;

pub use catalogue::CATALOGUE;
pub use exporter::{CONTENT_TYPE, InstallError, install, render, upkeep};
pub use labels::{GRPC_CODES, Label, ROUTES};
pub use metric::{Counter, Description, Gauge, Held, Histogram, Info, Kind, Metric};
pub use record::{CallRecord, Sizes, Stage};
pub use served::Served;
