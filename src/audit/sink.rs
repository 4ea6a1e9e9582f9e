//! Where calls hand in their records: a queue of bounded size, and a thread that writes what it holds.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::timeout;

use super::counts::{Counts, add};
use super::file::{AuditFile, Rotation};
use super::record::now;
use super::writer::Writer;
use super::{AuditCounts, Redact};
use crate::service::{ErrorCode, Finished, JudgeError, Recorder, Recording};
use crate::telemetry::catalogue::{AUDIT_BYTES, AUDIT_RECORDS, AUDIT_ROTATIONS, AUDIT_WITHHELD};

/// Memory of the records that wait for the disk, at most: some 30,000 short calls, or four of the largest.
const QUEUE_BYTES: usize = 64 << 20;

/// The queue's room is counted in these.
const ROOM: usize = 1 << 10;

/// What a record takes besides its text, and what a candidate adds with its verdict.
const CALL_BYTES: usize = 1 << 10;
const CANDIDATE_BYTES: usize = 768;

/// How long a call waits for its record to be written before its verdicts are withheld.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a guard that is dropped without being closed waits for the last records.
const LAST_PATIENCE: Duration = Duration::from_secs(2);

/// How an audit is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditSettings {
    pub path: PathBuf,
    /// Share of the calls that are kept, above 0 and at most 1.
    pub sample: f64,
    pub redact: Redact,
    pub rotation: Rotation,
    /// Whether a verdict may be handed out only after its record was written.
    pub required: bool,
}

/// Why an audit cannot be opened, or not be closed in time.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    #[error("the audit file {path} cannot be opened: {source}")]
    Open { path: PathBuf, source: io::Error },
    #[error("the audit file {0} is in use by another process: give each its own")]
    InUse(PathBuf),
    #[error("the audit's thread cannot be started: {0}")]
    Thread(io::Error),
    #[error("the audit file {path} has not taken all records within {} ms", .waited.as_millis())]
    Late { path: PathBuf, waited: Duration },
    #[error("the audit's thread ended before its time")]
    Ended,
}

/// What travels to the thread.
pub(super) enum Message {
    Record(Box<Entry>),
    /// Write what came before, and end.
    Close,
}

/// One record on its way to the file.
pub(super) struct Entry {
    pub time: String,
    pub finished: Finished,
    /// Told when the record is in the file; dropped when it cannot be written.
    pub written: Option<oneshot::Sender<()>>,
    /// Given back when the record is dropped.
    pub room: OwnedSemaphorePermit,
}

/// Takes the records of a judge's calls.
pub struct Audit {
    queue: Sender<Message>,
    room: Arc<Semaphore>,
    shared: Arc<Shared>,
    required: bool,
}

/// What calls and the thread both see.
#[derive(Default)]
pub(super) struct Shared {
    pub counts: Counts,
    /// Whether the log says that records are being lost to a full queue. The thread takes it back.
    pub overflowing: AtomicBool,
}

/// Ends the audit in order. Keep it for as long as calls may come.
pub struct AuditGuard {
    path: PathBuf,
    queue: Sender<Message>,
    ended: Receiver<()>,
    shared: Arc<Shared>,
    closed: bool,
}

impl Audit {
    /// Opens the file and starts the thread.
    pub fn open(settings: AuditSettings) -> Result<(Arc<Self>, AuditGuard), AuditError> {
        let AuditSettings { path, sample, redact, rotation, required } = settings;
        let (file, last) = AuditFile::open(&path, rotation)?;
        let shared = Arc::<Shared>::default();
        let (queue, messages) = channel();
        let (end, ended) = channel();
        let writer = Writer::new((file, last), path.clone(), (sample, redact), Arc::clone(&shared));
        std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || {
                writer.run(messages);
                // Nobody may be there to hear it.
                let _ = end.send(());
            })
            .map_err(AuditError::Thread)?;
        let room = Arc::new(Semaphore::new(QUEUE_BYTES / ROOM));
        let guard = AuditGuard { path, queue: queue.clone(), ended, shared: Arc::clone(&shared), closed: false };
        Ok((Arc::new(Self { queue, room, shared, required }), guard))
    }

    /// What was done until now.
    pub fn counts(&self) -> AuditCounts {
        self.shared.counts.now()
    }

    /// Bytes of the records that wait, about.
    pub fn queued_bytes(&self) -> usize {
        QUEUE_BYTES - self.room.available_permits() * ROOM
    }

    /// Hands a record in if there is room for it; if not it is lost, and counted.
    fn offer(&self, finished: Finished) {
        let room = Arc::clone(&self.room).try_acquire_many_owned(weight(&finished));
        let sent = room.is_ok_and(|room| self.send(finished, None, room));
        if !sent {
            add(&self.shared.counts.queue_full, 1);
            if !self.shared.overflowing.swap(true, Ordering::Relaxed) {
                tracing::error!(
                    "the audit takes no record, its queue is full: calls are answered without one from now on"
                );
            }
        }
    }

    /// Hands a record in and waits until it is written.
    async fn insist(&self, finished: Finished) -> Result<(), JudgeError> {
        let written = async {
            let room = Arc::clone(&self.room).acquire_many_owned(weight(&finished)).await.ok()?;
            let (written, told) = oneshot::channel();
            if !self.send(finished, Some(written), room) {
                return None;
            }
            told.await.ok()
        };
        match timeout(PATIENCE, written).await {
            Ok(Some(())) => Ok(()),
            Ok(None) | Err(_) => {
                add(&self.shared.counts.withheld, 1);
                Err(JudgeError::new(
                    ErrorCode::Unavailable,
                    "the verdict is withheld, because its audit record could not be written; try again",
                ))
            }
        }
    }

    /// Whether the thread is there to take it.
    fn send(&self, finished: Finished, written: Option<oneshot::Sender<()>>, room: OwnedSemaphorePermit) -> bool {
        self.queue.send(Message::Record(Box::new(Entry { time: now(), finished, written, room }))).is_ok()
    }
}

impl Recorder for Audit {
    fn record(&self, finished: Finished) -> Recording<'_> {
        if self.required && finished.has_verdict() {
            return Box::pin(self.insist(finished));
        }
        self.offer(finished);
        Box::pin(std::future::ready(Ok(())))
    }

    fn observe(&self) {
        let AuditCounts { written, bytes, sampled_out, queue_full, not_written, withheld, rotations } = self.counts();
        let ends =
            [("written", written), ("sampled_out", sampled_out), ("dropped", queue_full), ("failed", not_written)];
        for (end, count) in ends {
            AUDIT_RECORDS.copy([end], count);
        }
        AUDIT_WITHHELD.copy([], withheld);
        AUDIT_BYTES.copy([], bytes);
        AUDIT_ROTATIONS.copy([], rotations);
    }
}

impl AuditGuard {
    /// Writes what has been handed in, for `patience` at most, and closes the file.
    pub fn close(mut self, patience: Duration) -> Result<AuditCounts, AuditError> {
        self.wait(patience)?;
        Ok(self.shared.counts.now())
    }

    fn wait(&mut self, patience: Duration) -> Result<(), AuditError> {
        self.closed = true;
        // A thread that is gone is told below.
        let _ = self.queue.send(Message::Close);
        self.ended.recv_timeout(patience).map_err(|error| match error {
            RecvTimeoutError::Timeout => AuditError::Late { path: self.path.clone(), waited: patience },
            RecvTimeoutError::Disconnected => AuditError::Ended,
        })
    }
}

impl Drop for AuditGuard {
    fn drop(&mut self) {
        if !self.closed
            && let Err(error) = self.wait(LAST_PATIENCE)
        {
            tracing::error!("{error}");
        }
    }
}

/// A record's share of the queue's room.
fn weight(finished: &Finished) -> u32 {
    let group = &finished.group;
    let persona = &group.persona;
    let persona = persona.description.len() + persona.facts.iter().map(String::len).sum::<usize>();
    let context = group.context.iter().map(|turn| turn.speaker.len() + turn.text.len()).sum::<usize>();
    let candidate = |id: usize, response: usize| CANDIDATE_BYTES + id + response;
    let candidates = group.candidates.iter().map(|one| candidate(one.id.len(), one.response.len())).sum::<usize>();
    // One that is larger than the queue takes all of it.
    let bytes = (CALL_BYTES + persona + context + candidates).min(QUEUE_BYTES);
    u32::try_from(bytes.div_ceil(ROOM)).unwrap_or(u32::MAX)
}

#[cfg(test)]
#[path = "sink_tests.rs"]
mod tests;
