//! When to stop asking: after failures in a row for some time, or at once when the connection is gone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// Failures in a row that open it. One may be chance.
const FAILURES: u32 = 3;

/// Time from the first of them to the last, at least: many calls that wait at the same moment fail together when this
/// machine, and not Redis, is held up for a moment.
const SPAN: Duration = Duration::from_millis(50);

/// The breaker of one connection. It stays open when it has opened: the next connection has its own, and is tried before
/// anybody may use it.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    /// Failures since the last success, and when the first of them was.
    row: Mutex<Option<(u32, Instant)>>,
    open: AtomicBool,
    opened: Notify,
}

impl Breaker {
    pub fn succeeded(&self) {
        *self.row.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub fn failed(&self, now: Instant) {
        let mut row = self.row.lock().unwrap_or_else(PoisonError::into_inner);
        let (failures, first) = row.get_or_insert((0, now));
        *failures += 1;
        if *failures >= FAILURES && now.saturating_duration_since(*first) >= SPAN {
            self.open();
        }
    }

    pub fn open(&self) {
        if !self.open.swap(true, Ordering::Relaxed) {
            // Kept for one who is not waiting yet.
            self.opened.notify_one();
        }
    }

    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    /// Resolves when it opens, or at once if it has. For one waiter.
    pub async fn opened(&self) {
        self.opened.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails at each of these times, in ms.
    fn fail(breaker: &Breaker, times: &[u64]) {
        let start = Instant::now();
        times.iter().for_each(|ms| breaker.failed(start + Duration::from_millis(*ms)));
    }

    #[tokio::test]
    async fn it_opens_after_three_failures_in_a_row_and_tells_even_one_who_asks_later() {
        let breaker = Breaker::default();
        for _ in 0..10 {
            fail(&breaker, &[0, 1000]);
            breaker.succeeded();
        }
        assert!(!breaker.is_open());
        fail(&breaker, &[0, 10, 50]);
        assert!(breaker.is_open());
        breaker.opened().await;
    }

    #[test]
    fn any_number_of_failures_at_one_moment_is_one_accident() {
        let breaker = Breaker::default();
        for _ in 0..100 {
            fail(&breaker, &[0; 1000]);
            breaker.succeeded();
        }
        fail(&breaker, &[0, 10, 20, 30, 40, 49]);
        assert!(!breaker.is_open());
        fail(&breaker, &[100]);
        assert!(breaker.is_open());
    }

    #[test]
    fn a_late_success_does_not_close_it() {
        let breaker = Breaker::default();
        breaker.open();
        breaker.succeeded();
        assert!(breaker.is_open());
    }
}
