//! What the program says of itself: metrics, logs and spans. Every room may record here; this room knows none of them.
//!
//! No text of a request and no key enters: label values come from closed sets, log lines and spans carry sizes, codes
//! and digests.

pub mod catalogue;
mod exporter;
mod labels;
mod metric;

pub use catalogue::CATALOGUE;
pub use exporter::{InstallError, install, render, upkeep};
pub use labels::Label;
pub use metric::{Counter, Description, Gauge, Held, Histogram, Info, Kind, Metric};
