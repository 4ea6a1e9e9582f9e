//! What a line of the audit file says.

use serde::{Deserialize, Serialize};

use super::CallRecord;

/// Changes whenever a field comes to mean something else, or one that a replay needs is added.
pub const SCHEMA: u32 = 2;

/// One record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Record {
    /// A call that came to its end.
    Call(Box<CallRecord>),
    /// Calls of which there is no record.
    Gap(Gap),
}

/// How many records were lost before this one, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    pub schema: u32,
    /// When it was written.
    pub time: String,
    /// Records that found the queue full.
    pub queue_full: u64,
    /// Records that the file did not take.
    pub not_written: u64,
}

/// The time now, RFC 3339 in UTC, in microseconds.
pub(super) fn now() -> String {
    use tracing_subscriber::fmt::format::Writer;
    use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};

    let mut text = String::with_capacity(32);
    // A String takes whatever is written.
    let _ = SystemTime.format_time(&mut Writer::new(&mut text));
    text
}
