//! What is kept, and who computes what is not.

use std::sync::Arc;

use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use super::flight::{Flights, Place};
use super::redis::RedisTier;
use super::{CacheSettings, Follow, Judgement, Lead, Rank};
use crate::digest::Digest;

/// Bytes that an entry takes besides its key and its value: the cache's own nodes, queues and hash table, measured
/// (`tests/cache.rs`).
const OVERHEAD: usize = 384;

/// A judgement, or an error that every caller would get.
type Outcome<E> = Result<Arc<Judgement>, E>;

/// Where one caller stands with one judgement.
pub enum Seat<E> {
    /// It is there.
    Hit(Arc<Judgement>),
    /// This caller computes it, and then calls [`VerdictCache::finish`].
    Lead(Lead<Outcome<E>>),
    /// Another caller computes it.
    Follow(Follow<Outcome<E>>),
}

/// A lead that is still open.
type Leading<E> = Lead<Outcome<E>>;

/// Judgements by key, within a budget of bytes, before a second tier that may have more; `E` is the error that followers
/// may share. Errors are never kept.
pub struct VerdictCache<E> {
    kept: Cache<Digest, Arc<Judgement>>,
    second: Option<RedisTier>,
    flights: Flights<Outcome<E>>,
}

impl<E: Clone> VerdictCache<E> {
    pub fn new(settings: CacheSettings, second: Option<RedisTier>) -> Self {
        let cache = Cache::builder()
            .max_capacity(settings.bytes)
            // What was judged last is what retries and growing dialogues ask for again.
            .eviction_policy(EvictionPolicy::lru())
            .weigher(|_, judgement: &Arc<Judgement>| u32::try_from(bytes(judgement)).unwrap_or(u32::MAX));
        let cache = match settings.ttl {
            Some(ttl) => cache.time_to_live(ttl),
            None => cache,
        };
        Self { kept: cache.build(), second, flights: Flights::default() }
    }

    /// The second tier, where there is one.
    pub fn second(&self) -> Option<&RedisTier> {
        self.second.as_ref()
    }

    /// Looks a judgement up in memory. Callers of one key that nobody has computed yet get one lead among them; nobody follows a
    /// leader that is less urgent than `rank`.
    pub fn seat(&self, key: Digest, rank: Rank) -> Seat<E> {
        if let Some(hit) = self.kept.get(&key) {
            return Seat::Hit(hit);
        }
        match self.flights.join(key, rank, || self.kept.get(&key)) {
            Ok(hit) => Seat::Hit(hit),
            Err(Place::Lead(lead)) => Seat::Lead(lead),
            Err(Place::Follow(follow)) => Seat::Follow(follow),
        }
    }

    /// Looks leads up in the second tier, all at once. What is there ends its lead as if it had been computed; leads of
    /// what is not come back. `T` is what the caller knows them by. Needs a tokio runtime with timers if there is a
    /// second tier.
    pub async fn recall<T>(&self, leads: Vec<(T, Leading<E>)>) -> Vec<(T, Result<Arc<Judgement>, Leading<E>>)> {
        let Some(second) = &self.second else {
            return leads.into_iter().map(|(at, lead)| (at, Err(lead))).collect();
        };
        let keys: Vec<Digest> = leads.iter().map(|(_, lead)| lead.key()).collect();
        let found = second.get(&keys).await;
        let end = |((at, lead), found): ((T, Leading<E>), Option<Judgement>)| match found {
            Some(judgement) => {
                let judgement = Arc::new(judgement);
                self.kept.insert(lead.key(), Arc::clone(&judgement));
                lead.publish(&Ok(Arc::clone(&judgement)));
                (at, Ok(judgement))
            }
            None => (at, Err(lead)),
        };
        leads.into_iter().zip(found).map(end).collect()
    }

    /// Ends a lead: keeps a judgement and gives it, or the error, to the followers. An error must be one that every
    /// caller would get; for any other one, drop the lead.
    pub fn finish(&self, lead: Lead<Outcome<E>>, outcome: Result<Judgement, E>) {
        match outcome {
            Ok(judgement) => {
                let judgement = Arc::new(judgement);
                if self.keep(lead.key(), &judgement) {
                    lead.publish(&Ok(judgement));
                }
            }
            Err(error) => lead.publish(&Err(error)),
        }
    }

    /// Keeps a judgement in all tiers and replaces the one that was there. Whether it was kept: one with a number that is
    /// not finite is not.
    pub fn keep(&self, key: Digest, judgement: &Arc<Judgement>) -> bool {
        let finite = judgement.is_finite();
        if finite {
            self.kept.insert(key, Arc::clone(judgement));
            if let Some(second) = &self.second {
                second.put(key, judgement);
            }
        }
        finite
    }

    /// Bytes that may be kept.
    pub fn limit(&self) -> u64 {
        self.kept.policy().max_capacity().unwrap_or(u64::MAX)
    }

    /// Judgements and bytes that are kept, up to what the last few calls changed.
    pub fn size(&self) -> (u64, u64) {
        (self.kept.entry_count(), self.kept.weighted_size())
    }
}

/// Bytes of one entry.
fn bytes(judgement: &Judgement) -> usize {
    // The counts of the Arc.
    let counts = 2 * size_of::<usize>();
    OVERHEAD + size_of::<Digest>() + counts + size_of::<Judgement>() + judgement.heap_bytes()
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
