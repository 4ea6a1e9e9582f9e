//! What the audit has done since it was opened, for logs and metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counted while the audit runs.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub written: AtomicU64,
    pub bytes: AtomicU64,
    pub sampled_out: AtomicU64,
    pub queue_full: AtomicU64,
    pub not_written: AtomicU64,
    pub withheld: AtomicU64,
    pub rotations: AtomicU64,
}

/// The counts at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditCounts {
    /// Records in the file.
    pub written: u64,
    /// Bytes written, marks of gaps included.
    pub bytes: u64,
    /// Records that the sample leaves out.
    pub sampled_out: u64,
    /// Records lost because the queue was full.
    pub queue_full: u64,
    /// Records lost because the file did not take them.
    pub not_written: u64,
    /// Calls whose verdicts were not handed out for want of a record.
    pub withheld: u64,
    /// Files that were closed because they were large.
    pub rotations: u64,
}

impl AuditCounts {
    /// Records that there should be and are not.
    pub fn lost(&self) -> u64 {
        self.queue_full + self.not_written
    }
}

impl Counts {
    pub fn now(&self) -> AuditCounts {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        AuditCounts {
            written: read(&self.written),
            bytes: read(&self.bytes),
            sampled_out: read(&self.sampled_out),
            queue_full: read(&self.queue_full),
            not_written: read(&self.not_written),
            withheld: read(&self.withheld),
            rotations: read(&self.rotations),
        }
    }
}

pub(super) fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}
