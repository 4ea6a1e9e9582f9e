//! Where the time of the forward pass goes: one counter a part, read by reports and by `benches/forward.rs`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A part of the work; the last three lie inside the first.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// All of it.
    Total,
    /// Products of states and block weights.
    Projections,
    Attention,
    /// Scores of the rows that are read over the vocabulary.
    Head,
}

/// Nanoseconds by part.
#[derive(Default)]
pub struct Clock([AtomicU64; 4]);

impl Clock {
    pub fn time<T>(&self, part: Part, compute: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = compute();
        let nanoseconds = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.0[part as usize].fetch_add(nanoseconds, Ordering::Relaxed);
        result
    }

    pub fn spent(&self, part: Part) -> Duration {
        Duration::from_nanos(self.0[part as usize].load(Ordering::Relaxed))
    }
}
