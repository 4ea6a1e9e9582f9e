//! What goes on behind the callers' backs: connecting, trying again, writing.

use std::io;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

use super::link::{Failure, Link};
use super::{RedisServer, RedisSettings, RedisState, Seal, value};
use crate::cache::Judgement;
use crate::digest::{Builder as Fields, Digest};
use crate::telemetry::catalogue::{REDIS_BREAKER, REDIS_COMMANDS};

/// Delays between attempts to connect, the first and the longest: a Redis that is back is in use again within this and
/// the second that an attempt may take.
const DELAYS: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(2));

/// A connection that lasted this long was no flicker: the delays start anew.
const STEADY: Duration = Duration::from_secs(10);

/// How often an idle connection is tried, so that one that died is found before a caller finds it.
const BEAT: Duration = Duration::from_secs(1);

/// Judgements that are written in one round trip, at most: look-ups wait behind them.
const BATCH: usize = 64;

/// What the thread is asked for.
pub(super) enum Write {
    Keep(Digest, Arc<Judgement>),
    /// To be told when everything before it is done.
    Flush(oneshot::Sender<()>),
}

/// What callers and the thread share.
pub(super) struct Shared {
    pub seal: Seal,
    server: RedisServer,
    prefix: String,
    /// The start of the digest that a key is named by.
    name: Fields,
    ttl: Option<Duration>,
    timeout: Duration,
    link: ArcSwapOption<Link>,
    report: watch::Sender<RedisState>,
}

impl Shared {
    pub fn new(settings: &RedisSettings, arithmetic: Digest, report: watch::Sender<RedisState>) -> Self {
        Self {
            seal: Seal::new(&settings.secret),
            server: settings.server.clone(),
            prefix: format!("{}:v1:", settings.prefix),
            name: Digest::builder("prism-judge redis key 1").field("arithmetic", arithmetic.as_bytes()),
            ttl: settings.ttl,
            timeout: settings.timeout,
            link: ArcSwapOption::empty(),
            report,
        }
    }

    /// The connection, while it may be used.
    pub fn link(&self) -> Option<Arc<Link>> {
        self.link.load_full().filter(|link| !link.breaker.is_open())
    }

    /// The name of the key of a judgement.
    pub fn name(&self, key: &Digest) -> String {
        format!("{}{}", self.prefix, self.name.clone().field("question", key.as_bytes()).finish())
    }

    fn show(&self, state: RedisState) {
        REDIS_BREAKER.only(state.name());
        self.report.send_replace(state);
    }

    /// Connects, over and over. Never ends.
    async fn connect(&self) {
        let probed = format!("{}probe", self.prefix);
        let mut delay = DELAYS.0;
        let mut told = String::new();
        loop {
            self.show(RedisState::HalfOpen);
            match Link::connect(&self.server, self.timeout, &probed).await {
                Ok(link) => {
                    tracing::info!("Redis at {} answers: verdicts are shared", self.server);
                    told.clear();
                    let since = Instant::now();
                    self.live(Arc::new(link), &probed).await;
                    tracing::warn!("Redis at {} stopped answering: verdicts are not shared until it does", self.server);
                    if since.elapsed() >= STEADY {
                        delay = DELAYS.0;
                    }
                }
                Err(failure) => self.tell(&failure, &mut told),
            }
            self.show(RedisState::Open);
            sleep(delay).await;
            delay = (2 * delay).min(DELAYS.1);
        }
    }

    /// Lets callers use a connection for as long as it answers.
    async fn live(&self, link: Arc<Link>, probed: &str) {
        let _up = Up::new(self, Arc::clone(&link));
        let mut beat = interval_at(Instant::now() + BEAT, BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = link.breaker.opened() => return,
                _ = beat.tick() => {
                    // The breaker hears of it.
                    let _ = link.probe(probed).await;
                }
            }
        }
    }

    /// Says once why Redis is away, and again when the reason changes.
    fn tell(&self, failure: &Failure, told: &mut String) {
        let reason = failure.to_string();
        if *told == reason {
            tracing::debug!("Redis at {} still cannot be used: {reason}", self.server);
            return;
        }
        let server = &self.server;
        if failure.is_refusal() {
            tracing::error!("Redis at {server} refuses us: {reason}; verdicts are not shared until it does not");
        } else {
            tracing::warn!("Redis at {server} cannot be used: {reason}; verdicts are not shared until it answers");
        }
        *told = reason;
    }

    /// Writes what is queued, until the queue is closed and empty.
    async fn write(&self, mut queue: mpsc::Receiver<Write>) {
        let mut batch = Vec::with_capacity(BATCH);
        while queue.recv_many(&mut batch, BATCH).await > 0 {
            let (mut values, mut flushed) = (Vec::with_capacity(batch.len()), Vec::new());
            for write in batch.drain(..) {
                match write {
                    Write::Keep(key, judgement) => {
                        let name = self.name(&key);
                        let value = self.seal.seal(&name, &value::encode(&judgement));
                        values.push((name, value));
                    }
                    Write::Flush(done) => flushed.push(done),
                }
            }
            match self.link() {
                Some(link) if !values.is_empty() => self.set(&link, &values).await,
                Some(_) => {}
                None => REDIS_COMMANDS.add(["set", "skipped"], values.len() as u64),
            }
            for done in flushed {
                // One that went away need not know.
                let _ = done.send(());
            }
        }
    }

    async fn set(&self, link: &Link, values: &[(String, Vec<u8>)]) {
        match link.set(values, self.ttl).await {
            Ok(None) => {}
            Ok(Some(refusal)) if link.first_refusal() => {
                tracing::warn!("Redis at {} keeps no verdict: {refusal}; others like it are only counted", self.server);
            }
            Ok(Some(_)) => {}
            Err(failure) => tracing::debug!("verdicts were not written: {failure}"),
        }
    }
}

/// A connection that callers use; taken away from them when dropped, whatever the reason.
struct Up<'a>(&'a Shared);

impl<'a> Up<'a> {
    fn new(shared: &'a Shared, link: Arc<Link>) -> Self {
        shared.link.store(Some(link));
        shared.show(RedisState::Closed);
        Self(shared)
    }
}

impl Drop for Up<'_> {
    fn drop(&mut self) {
        self.0.link.store(None);
        self.0.show(RedisState::Open);
    }
}

/// Starts the thread; it ends when the queue is closed and written.
pub(super) fn start(shared: Arc<Shared>, queue: mpsc::Receiver<Write>) -> io::Result<JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Builder::new().name("redis".to_owned()).spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                () = shared.connect() => {}
                () = shared.write(queue) => {}
            }
        });
        // A name that is being resolved may take long.
        runtime.shutdown_background();
    })
}
