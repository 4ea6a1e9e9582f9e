//! The one OS thread that owns the model.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::{Cancel, EngineError, Prompt, Reading, run};
use crate::model::{Decoder, DecoderConfig};

/// Pieces of work that may wait; a sender beyond that waits itself.
const QUEUE: usize = 64;

type Answer = Result<Vec<Result<Reading, EngineError>>, EngineError>;

struct Job {
    prompts: Vec<Prompt>,
    cancel: Cancel,
    reply: Sender<Answer>,
}

/// A handle to the model thread, shared by all callers. The thread ends when the handle is dropped.
pub struct Engine {
    jobs: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
    decoder: Arc<Decoder>,
}

impl Engine {
    /// Starts the thread; `chunk_tokens` bounds the tokens of one forward pass.
    pub fn start(decoder: Decoder, chunk_tokens: usize) -> std::io::Result<Self> {
        let decoder = Arc::new(decoder);
        let owned = Arc::clone(&decoder);
        let (jobs, queue) = sync_channel(QUEUE);
        let thread = Builder::new().name("model".to_owned()).spawn(move || serve(&owned, chunk_tokens, &queue))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread), decoder })
    }

    pub fn config(&self) -> &DecoderConfig {
        self.decoder.config()
    }

    /// Time that the model thread has spent computing.
    pub fn busy(&self) -> Duration {
        self.decoder.busy()
    }

    /// Runs `prompts` as one token tree and blocks until they are answered, each once, in order.
    pub fn run(&self, prompts: Vec<Prompt>, cancel: &Cancel) -> Answer {
        let gone = || EngineError::Failed("it has ended".to_owned());
        let (reply, answer) = channel();
        let job = Job { prompts, cancel: cancel.clone(), reply };
        self.jobs.as_ref().ok_or_else(gone)?.send(job).map_err(|_| gone())?;
        answer.recv().map_err(|_| gone())?
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was already reported to the caller it concerned.
            let _ = thread.join();
        }
    }
}

fn serve(decoder: &Decoder, chunk_tokens: usize, queue: &Receiver<Job>) {
    for job in queue {
        let Job { prompts, cancel, reply } = job;
        let work = || {
            cancel.check().map_err(EngineError::Stopped).and_then(|()| run(decoder, &prompts, chunk_tokens, &cancel))
        };
        let answer =
            catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(EngineError::Failed(describe(&*panic))));
        // The caller may have gone away; nothing else waits for this answer.
        let _ = reply.send(answer);
    }
}

fn describe(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".to_owned())
}
