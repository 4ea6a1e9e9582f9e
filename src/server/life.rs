//! The phases of a server's life, seen from its connections and calls.

use tokio::sync::watch;

/// How far the server is on its way to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Serving,
    /// The stop is announced; calls are still taken, because load balancers take a while to hear of it.
    Announced,
    /// No new connections or calls; those in flight go on.
    Draining,
    /// What is still in flight is told that it has to go.
    Over,
}

/// Moves a server through its phases.
pub struct Leader(watch::Sender<Phase>);

impl Leader {
    pub fn new() -> Self {
        Self(watch::Sender::new(Phase::Serving))
    }

    pub fn enter(&self, phase: Phase) {
        self.0.send_replace(phase);
    }

    pub fn life(&self) -> Life {
        Life(self.0.subscribe())
    }
}

/// Tells in which phase a server is.
#[derive(Clone)]
pub struct Life(watch::Receiver<Phase>);

impl Life {
    /// Resolves when `phase` or a later one begins.
    pub async fn reached(&self, phase: Phase) {
        // A leader that is gone means the end.
        let _ = self.0.clone().wait_for(|now| *now >= phase).await;
    }
}
