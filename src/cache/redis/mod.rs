//! The optional second tier of the verdict cache: Redis, shared by replicas and kept over restarts. It is not trusted and
//! may go away at any time: what does not answer at once, or was not written by a judge with the same secret, is a miss.
//! No error of Redis leaves this room.

mod background;
mod breaker;
mod link;
mod seal;
mod settings;
mod value;

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::sync::{mpsc, oneshot, watch};

use self::background::{Shared, Write};
use self::link::{Link, Reply};
pub use self::seal::Seal;
pub use self::settings::{KeyPrefix, RedisSecret, RedisServer, RedisSettingError, RedisSettings};
pub use self::value::{decode, encode};
use super::Judgement;
use crate::digest::Digest;
use crate::telemetry::catalogue::{CACHE_LOOKUPS, REDIS_COMMANDS};

/// Keys of one round trip: each has the timeout for itself, so that a large group costs no more of it than a small one.
const BATCH: usize = 256;

/// Judgements that wait to be written, at most.
const QUEUE: usize = 16_384;

/// Why a value from Redis is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    #[error("it is cut short or too long")]
    Length,
    #[error("its version is not known")]
    Version,
    #[error("it was not written for this key by a judge with this secret")]
    Seal,
    #[error("it is not a judgement")]
    Content,
}

/// Whether Redis is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedisState {
    /// It is asked, and written to.
    Closed,
    /// It is not: it did not answer.
    Open,
    /// It is not, but is being tried in the background.
    HalfOpen,
}

impl RedisState {
    /// The name used in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

/// Judgements in Redis. Its connection lives on a thread of its own: a judge is opened where there is no async runtime,
/// and one that is busy must not be taken for a Redis that is slow.
pub struct RedisTier {
    shared: Arc<Shared>,
    state: watch::Receiver<RedisState>,
    /// None while it is dropped.
    writes: Option<mpsc::Sender<Write>>,
    thread: Option<JoinHandle<()>>,
}

impl RedisTier {
    /// Starts the thread, which connects when it can. `arithmetic` tells judges apart that give other bits to the same
    /// question.
    ///
    /// # Errors
    /// The thread or its runtime cannot be started. A Redis that does not answer is no error.
    pub fn start(settings: &RedisSettings, arithmetic: Digest) -> io::Result<Self> {
        let (report, state) = watch::channel(RedisState::HalfOpen);
        let (writes, queue) = mpsc::channel(QUEUE);
        let shared = Arc::new(Shared::new(settings, arithmetic, report));
        let thread = background::start(Arc::clone(&shared), queue)?;
        Ok(Self { shared, state, writes: Some(writes), thread: Some(thread) })
    }

    /// Whether Redis is asked, now and from now on.
    pub fn state(&self) -> watch::Receiver<RedisState> {
        self.state.clone()
    }

    /// What is there, one place a key. Takes one timeout longer than Redis takes to answer, at most, and no time at all
    /// while it is away. Needs a tokio runtime with timers.
    pub async fn get(&self, keys: &[Digest]) -> Vec<Option<Judgement>> {
        let mut found = Vec::with_capacity(keys.len());
        for batch in keys.chunks(BATCH) {
            let Some(link) = self.shared.link() else {
                count("skipped", keys.len() - found.len());
                REDIS_COMMANDS.add(["get", "skipped"], (keys.len() - found.len()) as u64);
                break;
            };
            let names: Vec<String> = batch.iter().map(|key| self.shared.name(key)).collect();
            let Ok(replies) = link.get(&names).await else {
                // The rest would cost its caller as much again.
                count("error", keys.len() - found.len());
                break;
            };
            found.extend(names.iter().zip(replies).map(|(name, reply)| self.read(&link, name, reply)));
        }
        found.resize_with(keys.len(), || None);
        found
    }

    fn read(&self, link: &Link, name: &str, reply: Reply) -> Option<Judgement> {
        let outcome = match reply {
            Reply::Missing => {
                count("miss", 1);
                return None;
            }
            Reply::WrongType => Err(Invalid::Content),
            Reply::Bytes(bytes) => self.shared.seal.open(name, &bytes).and_then(decode),
        };
        match outcome {
            Ok(judgement) => {
                count("hit", 1);
                Some(judgement)
            }
            Err(invalid) => {
                count("invalid", 1);
                if link.first_invalid() {
                    tracing::warn!(
                        "the value of {name} in Redis is not used: {invalid}; others like it are only counted"
                    );
                }
                None
            }
        }
    }

    /// Has a judgement written, some time soon, unless Redis is away or too far behind. Never waits.
    pub fn put(&self, key: Digest, judgement: &Arc<Judgement>) {
        if self.shared.link().is_none() {
            REDIS_COMMANDS.increment(["set", "skipped"]);
            return;
        }
        let write = Write::Keep(key, Arc::clone(judgement));
        if let Some(writes) = &self.writes
            && writes.try_send(write).is_err()
        {
            REDIS_COMMANDS.increment(["set", "dropped"]);
        }
    }

    /// Waits until everything that was put before has been written or given up.
    pub async fn flush(&self) {
        let (done, wait) = oneshot::channel();
        if let Some(writes) = &self.writes
            && writes.send(Write::Flush(done)).await.is_ok()
        {
            // A thread that ended has nothing left to write.
            let _ = wait.await;
        }
    }
}

impl Drop for RedisTier {
    /// Has the rest written, for about a second at most.
    fn drop(&mut self) {
        drop(self.writes.take());
        if let Some(thread) = self.thread.take() {
            // It said so when it panicked.
            let _ = thread.join();
        }
    }
}

/// Counts look-ups by what they found.
fn count(result: &str, lookups: usize) {
    CACHE_LOOKUPS.add(["redis", result], lookups as u64);
}
