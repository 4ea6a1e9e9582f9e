//! A tenant's share of the model: tokens a second.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A bucket that fills at `rate` tokens a second up to `burst`. A call is taken while there is something in it, and may
/// leave it below zero: a call larger than the bucket is judged, and its tenant waits for longer afterwards.
#[derive(Debug)]
pub struct Quota {
    rate: f64,
    burst: f64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    tokens: f64,
    at: Instant,
}

/// Why a call was not taken: its tenant has used up its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the quota of {rate} tokens a second is used up; try again in {} ms",
    retry_after.as_millis()
)]
pub struct OverQuota {
    /// Tokens a second.
    pub rate: u64,
    /// When the bucket is above zero again.
    pub retry_after: Duration,
}

impl Quota {
    /// Both above zero; the bucket is full.
    pub fn new(rate: u64, burst: u64) -> Self {
        let state = Mutex::new(State { tokens: burst as f64, at: Instant::now() });
        Self { rate: rate as f64, burst: burst as f64, state }
    }

    /// Another rate and burst, with what there is in the bucket, or what it lacks.
    pub fn changed(&self, rate: u64, burst: u64) -> Self {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = State { tokens: state.tokens.min(burst as f64), at: state.at };
        Self { rate: rate as f64, burst: burst as f64, state: Mutex::new(state) }
    }

    /// Tokens a second, and the most that can be saved up.
    pub fn limits(&self) -> (u64, u64) {
        (self.rate as u64, self.burst as u64)
    }

    /// Takes `tokens` at the moment `now`, or says when to try again.
    pub fn take(&self, tokens: usize, now: Instant) -> Result<(), OverQuota> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = now.saturating_duration_since(state.at).as_secs_f64();
        state.tokens = self.burst.min(state.tokens + passed * self.rate);
        state.at = state.at.max(now);
        if state.tokens <= 0.0 {
            // One token above zero; rounding must not make the hint come out short.
            let wait = Duration::from_secs_f64((1.0 - state.tokens) / self.rate) + Duration::from_millis(1);
            return Err(OverQuota { rate: self.rate as u64, retry_after: wait });
        }
        state.tokens -= tokens as f64;
        Ok(())
    }

    /// Makes good an estimate, once the tokens are known.
    pub fn settle(&self, estimated: usize, tokens: usize) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.tokens = self.burst.min(state.tokens + estimated as f64 - tokens as f64);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    /// Calls of every size, as fast as they are let in, for a minute: what they took is the burst, what came in that
    /// time, and at most one call more.
    #[test]
    fn no_more_is_taken_than_the_burst_and_what_has_come_and_one_call() {
        for size in [1, 7, 100, 2_500] {
            let quota = Quota::new(100, 1_000);
            let start = Instant::now();
            let (mut now, mut taken) = (start, 0_usize);
            while now < start + Duration::from_secs(60) {
                match quota.take(size, now) {
                    Ok(()) => taken += size,
                    Err(over) => now += over.retry_after,
                }
            }
            let most = 1_000 + 6_000 + size;
            assert!((6_000..=most + 100).contains(&taken), "{size}: {taken}");
        }
    }

    #[test]
    fn a_hint_that_is_followed_is_enough() {
        let quota = Quota::new(3, 10);
        let now = Instant::now();
        assert!(quota.take(1_000, now).is_ok());
        let wait = quota.take(1, now).unwrap_err().retry_after;
        assert!(quota.take(1, now + wait / 2).is_err());
        assert!(quota.take(1, now + wait).is_ok());
    }

    #[test]
    fn an_estimate_is_made_good() {
        let quota = Quota::new(1, 100);
        let now = Instant::now();
        assert!(quota.take(1_000, now).is_ok());
        quota.settle(1_000, 50);
        assert!(quota.take(50, now).is_ok());
        assert!(quota.take(1, now).is_err());
    }
}
