//! What the model thread has done so far, readable from any thread.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counters since the engine was started; gauges are of the last chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStats {
    /// Forward passes.
    pub chunks: u64,
    /// Tokens that went through the model.
    pub computed_tokens: u64,
    /// Tokens whose keys and values were found when their prompts arrived.
    pub reused_tokens: u64,
    /// Tokens computed for work that was then stopped.
    pub wasted_tokens: u64,
    /// Tokens whose keys and values were given up for others.
    pub evicted_tokens: u64,
    /// Bytes of keys and values held.
    pub kv_bytes: u64,
    /// Pieces of work in the model's tree.
    pub active: u64,
    /// Tokens that wait or run, by lane.
    pub outstanding: [usize; 3],
}

/// What one lane holds now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneStats {
    /// Tokens that were admitted and are not yet answered.
    pub tokens: usize,
    /// Pieces of work that hold them.
    pub pieces: usize,
    /// Tokens that are admitted at most.
    pub limit: usize,
    /// How long the oldest piece has been waiting for the model; zero if none is.
    pub oldest: Duration,
}

/// The live counters.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub chunks: AtomicU64,
    pub computed_tokens: AtomicU64,
    pub reused_tokens: AtomicU64,
    pub wasted_tokens: AtomicU64,
    pub evicted_tokens: AtomicU64,
    pub kv_bytes: AtomicU64,
    pub active: AtomicU64,
}

impl Counters {
    pub fn snapshot(&self, outstanding: [usize; 3]) -> EngineStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        EngineStats {
            chunks: read(&self.chunks),
            computed_tokens: read(&self.computed_tokens),
            reused_tokens: read(&self.reused_tokens),
            wasted_tokens: read(&self.wasted_tokens),
            evicted_tokens: read(&self.evicted_tokens),
            kv_bytes: read(&self.kv_bytes),
            active: read(&self.active),
            outstanding,
        }
    }
}

/// Adds a count of tokens.
pub(super) fn add(counter: &AtomicU64, count: usize) {
    counter.fetch_add(count as u64, Ordering::Relaxed);
}
