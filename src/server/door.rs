//! Where the connections of a port come in, as many as there are places; and what the log says when they cannot.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::admin;
use crate::telemetry::catalogue::CONNECTIONS_REFUSED;

/// How long a door rests when the system has no file for a connection.
const REST: Duration = Duration::from_millis(100);

/// How often the log says the same of a door, at most.
const REPEAT: Duration = Duration::from_secs(5);

/// Files that a server has open beside its ports' connections, with some to spare: the model, libraries, logs, Redis, the
/// audit, certificates that are being read.
const OWN_FILES: usize = 64;

/// A port, and its places for connections.
pub struct Door {
    listener: TcpListener,
    /// What the log calls it.
    name: &'static str,
    places: usize,
    free: Arc<Semaphore>,
    full: Seldom,
    failing: Seldom,
}

/// A connection's place, free again when this is dropped.
pub type Place = OwnedSemaphorePermit;

impl Door {
    pub fn new(listener: TcpListener, name: &'static str, places: usize) -> Self {
        let free = Arc::new(Semaphore::new(places));
        Self { listener, name, places, free, full: Seldom::default(), failing: Seldom::default() }
    }

    /// The next connection that there is a place for; one that there is none for is closed at once. No connection is lost
    /// when this is dropped.
    pub async fn next(&mut self) -> (TcpStream, Place) {
        loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => match Arc::clone(&self.free).try_acquire_owned() {
                    Ok(place) => return (stream, place),
                    Err(_) => self.refused(peer),
                },
                Err(error) => {
                    CONNECTIONS_REFUSED.increment(["accept_error"]);
                    if let Some(more) = self.failing.may(Instant::now()) {
                        tracing::warn!("a connection to {} cannot be taken: {error}{more}", self.name);
                    }
                    tokio::time::sleep(REST).await;
                }
            }
        }
    }

    fn refused(&mut self, peer: SocketAddr) {
        CONNECTIONS_REFUSED.increment(["limit"]);
        if let Some(more) = self.full.may(Instant::now()) {
            tracing::warn!("{peer} is refused: {} connections to {} are open{more}", self.places, self.name);
        }
    }
}

/// Lets a line of the log pass now and then, so that a flood of one kind does not drown the others.
#[derive(Debug, Default)]
struct Seldom {
    last: Option<Instant>,
    held_back: u64,
}

impl Seldom {
    /// How a line ends that may be written `now`: how many were held back before it. None holds this one back.
    fn may(&mut self, now: Instant) -> Option<String> {
        if self.last.is_some_and(|last| now.saturating_duration_since(last) < REPEAT) {
            self.held_back += 1;
            return None;
        }
        self.last = Some(now);
        Some(match std::mem::take(&mut self.held_back) {
            0 => String::new(),
            more => format!(" (and {more} times more since this was last said)"),
        })
    }
}

/// Says so if the process may open fewer files than so many connections to the gRPC port need.
pub fn warn_of_few_files(max_connections: usize) {
    // None: no limit.
    let Some(limit) = getrlimit(Resource::Nofile).current else { return };
    let needed = max_connections.saturating_add(admin::CONNECTIONS + OWN_FILES);
    if limit < needed as u64 {
        tracing::warn!(
            "this process may open {limit} files, and --max-connections {max_connections} may need {needed}: connections \
             beyond that cannot be taken; raise the limit (ulimit -n) or lower --max-connections"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_one_line_is_one_line_in_a_while_which_tells_of_the_others() {
        let start = Instant::now();
        let mut seldom = Seldom::default();
        let mut said = Vec::new();
        // Ten a second for eleven seconds.
        for tenth in 0..110 {
            said.extend(seldom.may(start + Duration::from_millis(100 * tenth)).map(|more| (tenth, more)));
        }
        let more = |count| format!(" (and {count} times more since this was last said)");
        assert_eq!(said, [(0, String::new()), (50, more(49)), (100, more(49))]);
        // After a pause nothing is left to tell but what came last.
        assert_eq!(seldom.may(start + Duration::from_secs(60)), Some(more(9)));
        assert_eq!(seldom.may(start + Duration::from_secs(120)), Some(String::new()));
    }
}
