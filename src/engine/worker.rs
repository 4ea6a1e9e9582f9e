//! The one OS thread that owns the model.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use tokio::sync::watch;

use super::queue::{Overloaded, Pending, Permit, Queue};
use super::scheduler::{Scheduler, describe};
use super::stats::Counters;
use super::{Answer, Cancel, EngineError, EngineSettings, EngineStats, Lane, LaneStats, Prompt, Work};
use crate::model::{Decoder, DecoderConfig, KvBlock, lower_priority};

/// The model's speed before it has run, in tokens a second, for the first hints when to try again.
const FIRST_RATE: f64 = 500.0;

/// Whether the model thread answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    Ready,
    /// The thread failed and starts anew: the work it had in hand has failed, what waits goes on.
    Restarting,
    /// The thread failed twice: nothing is answered any more.
    Dead,
}

/// A handle to the model thread, shared by all callers. The thread ends when the handle is dropped.
pub struct Engine {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
    decoder: Arc<Decoder>,
    counters: Arc<Counters>,
    health: watch::Receiver<Health>,
    kv_bytes: usize,
}

impl Engine {
    /// Starts the thread.
    pub fn start(decoder: impl Into<Arc<Decoder>>, settings: EngineSettings) -> std::io::Result<Self> {
        let decoder = decoder.into();
        let queue = Arc::new(Queue::new(settings.queue_tokens));
        let counters = Arc::<Counters>::default();
        let (report, health) = watch::channel(Health::Ready);
        let model = Model {
            decoder: Arc::clone(&decoder),
            queue: Arc::clone(&queue),
            counters: Arc::clone(&counters),
            settings,
        };
        let thread = Builder::new().name("model".to_owned()).spawn(move || {
            lower_priority();
            model.live(&report);
        })?;
        let kv_bytes = settings.kv_bytes;
        Ok(Self { queue, thread: Some(thread), decoder, counters, health, kv_bytes })
    }

    pub fn config(&self) -> &DecoderConfig {
        self.decoder.config()
    }

    /// Tokens of the longest prompt: the model's context, or what the budget of keys and values holds.
    pub fn longest_prompt(&self) -> usize {
        self.config().context_length.min(self.kv_bytes / self.kv_bytes_for(1))
    }

    /// Bytes of keys and values of a prompt of `tokens` tokens.
    pub fn kv_bytes_for(&self, tokens: usize) -> usize {
        // Cut into single tokens, which is the worst that other prompts can do to its path.
        tokens * KvBlock::size(self.config(), 1)
    }

    /// Time that the model thread has spent computing.
    pub fn busy(&self) -> Duration {
        self.decoder.busy()
    }

    /// Takes room in a lane for about `tokens`, or says at once that there is none.
    pub fn admit(&self, lane: Lane, tokens: usize) -> Result<Permit, Overloaded> {
        self.queue.admit(lane, tokens, self.rate())
    }

    /// What a call of about `tokens` is told for which there is room in its lane but none before it.
    pub fn refuse(&self, lane: Lane, tokens: usize) -> Overloaded {
        self.queue.refuse(lane, tokens, self.rate())
    }

    /// Puts work in the lane that admitted it. It is answered when all of its prompts are; it stops when `cancel` says
    /// so or the [`Pending`] is dropped.
    pub fn submit(&self, permit: Permit, work: Work, cancel: &Cancel) -> Result<Pending, EngineError> {
        self.queue.push(permit, work, cancel.clone(), self.rate())
    }

    /// Runs prompts in the batch lane and blocks until they are answered.
    pub fn run(&self, prompts: Vec<Prompt>, cancel: &Cancel) -> Answer {
        let work: Work = prompts.into_iter().collect();
        let permit = self.admit(Lane::Batch, work.tokens())?;
        self.submit(permit, work, cancel)?.wait_blocking()
    }

    /// Whether the model thread answers, now and from now on.
    pub fn health(&self) -> watch::Receiver<Health> {
        self.health.clone()
    }

    pub fn stats(&self) -> EngineStats {
        self.counters.snapshot(self.queue.outstanding())
    }

    /// What the lanes hold now.
    pub fn lanes(&self) -> [LaneStats; 3] {
        self.queue.lanes()
    }

    /// Bytes of keys and values that may be held.
    pub fn kv_limit(&self) -> usize {
        self.kv_bytes
    }

    /// Tokens a second so far.
    fn rate(&self) -> f64 {
        let (tokens, seconds) = (self.stats().computed_tokens as f64, self.busy().as_secs_f64());
        if seconds > 0.0 { (tokens / seconds).max(1.0) } else { FIRST_RATE }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was already reported to the callers it concerned.
            let _ = thread.join();
        }
    }
}

/// What the thread owns.
struct Model {
    decoder: Arc<Decoder>,
    queue: Arc<Queue>,
    counters: Arc<Counters>,
    settings: EngineSettings,
}

impl Model {
    /// Serves until the queue is closed. A panic outside the forward pass fails the work in hand; the thread goes on
    /// with an empty tree, once.
    fn live(&self, health: &watch::Sender<Health>) {
        for state in [Health::Restarting, Health::Dead] {
            match catch_unwind(AssertUnwindSafe(|| self.serve(health))) {
                Ok(()) => return,
                Err(panic) => {
                    tracing::error!("the model thread failed: {}", describe(&*panic));
                    health.send_replace(state);
                }
            }
        }
        self.queue.close();
    }

    fn serve(&self, health: &watch::Sender<Health>) {
        let EngineSettings { chunk_tokens, max_batch_tokens, batch_delay, kv_bytes, .. } = self.settings;
        let mut scheduler = Scheduler::new(&self.decoder, &self.counters, chunk_tokens, kv_bytes);
        health.send_if_modified(|health| std::mem::replace(health, Health::Ready) != Health::Ready);
        while let Some(jobs) = self.queue.take(scheduler.active_tokens(), max_batch_tokens, batch_delay) {
            jobs.into_iter().for_each(|job| scheduler.enter(job));
            if !scheduler.is_idle() {
                scheduler.step();
            }
        }
    }
}

/// Answers `prompts` on the calling thread, each once, in order; `chunk_tokens` bounds the tokens of one forward pass.
pub fn run(decoder: &Decoder, prompts: &[Prompt], chunk_tokens: usize, cancel: &Cancel) -> Answer {
    let counters = Counters::default();
    let mut scheduler = Scheduler::new(decoder, &counters, chunk_tokens, usize::MAX);
    let (job, answer) = super::queue::job(prompts.iter().cloned().collect(), cancel);
    scheduler.enter(job);
    while !scheduler.is_idle() {
        scheduler.step();
    }
    answer()
}
