//! Cancellation and deadline of one piece of work, checked between the chunks of a forward.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tokio::sync::Notify;

/// Shared between the caller and the engine.
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    shared: Arc<Shared>,
    deadline: Option<Instant>,
}

#[derive(Debug, Default)]
struct Shared {
    cancelled: AtomicBool,
    /// Wakes those who wait in [`Cancel::stopped`].
    wake: Notify,
}

/// Why work must stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Cancelled,
    DeadlineExceeded,
}

impl Cancel {
    pub fn with_deadline(deadline: Option<Instant>) -> Self {
        Self { deadline, ..Self::default() }
    }

    pub fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Relaxed);
        self.shared.wake.notify_waiters();
    }

    pub fn check(&self) -> Result<(), Stop> {
        if self.shared.cancelled.load(Ordering::Relaxed) {
            Err(Stop::Cancelled)
        } else if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            Err(Stop::DeadlineExceeded)
        } else {
            Ok(())
        }
    }

    /// Resolves when the work must stop. Needs a tokio runtime with timers where there is a deadline.
    pub async fn stopped(&self) -> Stop {
        // From here on a wake is not missed, even before this is polled.
        let wake = self.shared.wake.notified();
        if let Err(stop) = self.check() {
            return stop;
        }
        match self.deadline {
            None => {
                wake.await;
                Stop::Cancelled
            }
            Some(deadline) => tokio::select! {
                () = wake => Stop::Cancelled,
                () = tokio::time::sleep_until(deadline.into()) => Stop::DeadlineExceeded,
            },
        }
    }
}
