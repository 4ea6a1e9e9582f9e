//! Ctrl-C: stop the work, keep what is done.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::exit::INTERRUPTED;
use super::input::Event;
use crate::service::Cancel;

/// Listens for Ctrl-C from [`Interrupt::listen`] on. Before the work starts, and at the second time, Ctrl-C ends the
/// process at once; in between it cancels the work and lets it write what it has.
#[derive(Clone, Default)]
pub struct Interrupt(Arc<State>);

#[derive(Default)]
struct State {
    working: AtomicBool,
    stopped: AtomicBool,
    cancel: Cancel,
    /// Wakes a reader that waits for a line.
    wake: Mutex<Option<SyncSender<Event>>>,
}

impl Interrupt {
    /// Starts to listen on a thread of its own.
    pub fn listen() -> io::Result<Self> {
        let interrupt = Self::default();
        let state = Arc::clone(&interrupt.0);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        thread::Builder::new().name("ctrl-c".to_owned()).spawn(move || {
            runtime.block_on(async {
                while tokio::signal::ctrl_c().await.is_ok() {
                    state.signalled();
                }
            });
        })?;
        Ok(interrupt)
    }

    /// From now on Ctrl-C stops the work in order.
    pub fn work_starts(&self) {
        self.0.working.store(true, Ordering::Relaxed);
    }

    /// Whether Ctrl-C was pressed.
    pub fn stopped(&self) -> bool {
        self.0.stopped.load(Ordering::Relaxed)
    }

    /// What the work checks.
    pub fn cancel(&self) -> &Cancel {
        &self.0.cancel
    }

    /// Sends [`Event::Interrupt`] to `wake` when Ctrl-C is pressed. If its queue is full its reader is not waiting.
    pub fn wake(&self, wake: SyncSender<Event>) {
        *self.0.wake.lock().unwrap_or_else(PoisonError::into_inner) = Some(wake);
    }
}

impl State {
    fn signalled(&self) {
        if !self.working.load(Ordering::Relaxed) || self.stopped.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED.into());
        }
        self.cancel.cancel();
        if let Some(wake) = &*self.wake.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = wake.try_send(Event::Interrupt);
        }
    }
}
