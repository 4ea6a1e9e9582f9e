//! When to stop asking: after a few failures in a row, or at once when the connection is gone.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use tokio::sync::Notify;

/// Failures in a row that open it. One may be chance.
const FAILURES: u32 = 3;

/// The breaker of one connection. It stays open when it has opened: the next connection has its own, and is tried before
/// anybody may use it.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    failures: AtomicU32,
    open: AtomicBool,
    opened: Notify,
}

impl Breaker {
    pub fn succeeded(&self) {
        self.failures.store(0, Ordering::Relaxed);
    }

    pub fn failed(&self) {
        if self.failures.fetch_add(1, Ordering::Relaxed) + 1 >= FAILURES {
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

    #[tokio::test]
    async fn it_opens_after_three_failures_in_a_row_and_tells_even_one_who_asks_later() {
        let breaker = Breaker::default();
        for _ in 0..10 {
            breaker.failed();
            breaker.failed();
            breaker.succeeded();
        }
        assert!(!breaker.is_open());
        (0..3).for_each(|_| breaker.failed());
        assert!(breaker.is_open());
        breaker.opened().await;
    }

    #[test]
    fn a_late_success_does_not_close_it() {
        let breaker = Breaker::default();
        breaker.open();
        breaker.succeeded();
        assert!(breaker.is_open());
    }
}
