//! Single flight: of all who want the same judgement at the same time, one computes it and the others wait for it.
//!
//! A leader that ends without an outcome (dropped, cancelled, late, refused) leaves no trace: its followers take new
//! seats, and one of them leads.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::digest::Digest;

/// How urgent a caller is; 0 is the most urgent. Nobody waits for a leader that is less urgent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank(pub u8);

/// Locks that keys are spread over.
const SHARDS: usize = 16;

/// Those who wait for one leader. Empty, and without memory of its own, while nobody does.
type Followers<T> = Vec<oneshot::Sender<T>>;

type Shard<T> = Mutex<HashMap<(Digest, Rank), Followers<T>>>;

/// The computations under way.
pub(super) struct Flights<T>(Arc<[Shard<T>; SHARDS]>);

/// Where a caller stands.
pub(super) enum Place<T> {
    Lead(Lead<T>),
    Follow(Follow<T>),
}

impl<T> Default for Flights<T> {
    fn default() -> Self {
        Self(Arc::new(std::array::from_fn(|_| Mutex::default())))
    }
}

impl<T> Flights<T> {
    /// Follows a leader of `rank` or a more urgent one; without one, gives what `done` finds, or else the lead.
    /// `done` runs under a lock: what a leader published before it ended is not overlooked.
    pub fn join<D>(&self, key: Digest, rank: Rank, done: impl FnOnce() -> Option<D>) -> Result<D, Place<T>> {
        let mut shard = self.shard(&key);
        for rank in (0..=rank.0).map(Rank) {
            let Some(followers) = shard.get_mut(&(key, rank)) else { continue };
            if followers.len() == followers.capacity() {
                // Those who went away cost no more than those who stay.
                followers.retain(|follower| !follower.is_closed());
            }
            let (follower, outcome) = oneshot::channel();
            followers.push(follower);
            return Err(Place::Follow(Follow(outcome)));
        }
        if let Some(done) = done() {
            return Ok(done);
        }
        if let Entry::Vacant(free) = shard.entry((key, rank)) {
            free.insert(Vec::new());
        }
        Err(Place::Lead(Lead { flights: Self(Arc::clone(&self.0)), key, rank, landed: false }))
    }

    fn shard(&self, key: &Digest) -> MutexGuard<'_, HashMap<(Digest, Rank), Followers<T>>> {
        let shard = usize::from(key.as_bytes()[0]) % SHARDS;
        self.0[shard].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn land(&self, key: Digest, rank: Rank) -> Followers<T> {
        self.shard(&key).remove(&(key, rank)).unwrap_or_default()
    }
}

/// The duty to compute one judgement. Dropped without an outcome, it passes to one of the followers.
#[must_use]
pub struct Lead<T> {
    flights: Flights<T>,
    key: Digest,
    rank: Rank,
    /// Whether the followers have their outcome. From then on the place may be another leader's.
    landed: bool,
}

impl<T: Clone> Lead<T> {
    pub(super) fn key(&self) -> Digest {
        self.key
    }

    /// Gives the outcome to all followers.
    pub(super) fn publish(mut self, outcome: &T) {
        self.landed = true;
        for follower in self.flights.land(self.key, self.rank) {
            // One that went away does not need it.
            let _ = follower.send(outcome.clone());
        }
    }
}

impl<T> Drop for Lead<T> {
    fn drop(&mut self) {
        if !self.landed {
            drop(self.flights.land(self.key, self.rank));
        }
    }
}

/// A place behind a leader.
pub struct Follow<T>(oneshot::Receiver<T>);

impl<T> Follow<T> {
    /// The leader's outcome; None if it gave up: take another seat.
    pub async fn outcome(self) -> Option<T> {
        self.0.await.ok()
    }
}

#[cfg(test)]
impl<T> Flights<T> {
    /// Computations under way.
    pub fn waiting(&self) -> usize {
        self.0.iter().map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner).len()).sum()
    }
}
