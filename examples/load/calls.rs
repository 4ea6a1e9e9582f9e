//! What became of each call.

use std::sync::{Arc, Mutex, PoisonError};

use tonic::Code;

/// One call.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// When it should have been sent, in seconds of the run.
    pub at: f64,
    /// From then to its answer, in seconds.
    pub latency: f64,
    /// Seconds from its deadline, counted from the moment it was really sent, to its answer; negative: in time.
    pub late: Option<f64>,
    pub outcome: Outcome,
}

/// How one call ended.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub code: Code,
    /// Candidates with a verdict.
    pub judged: usize,
    /// Candidates without.
    pub failed: usize,
    /// Whether a refusal says when to come back: RetryInfo and `grpc-retry-pushback-ms`.
    pub hinted: bool,
}

/// The calls of one stream so far.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<Call>>>);

impl Log {
    pub fn push(&self, call: Call) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }

    /// Answered calls and candidates with a verdict.
    pub fn counts(&self) -> (usize, usize) {
        let calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (calls.len(), calls.iter().map(|call| call.outcome.judged).sum())
    }

    pub fn take(&self) -> Vec<Call> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
