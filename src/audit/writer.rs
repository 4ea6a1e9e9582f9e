//! The thread that makes lines of records and writes them, many at a time.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::counts::add;
use super::file::AuditFile;
use super::record::now;
use super::sink::{Entry, Message, Shared};
use super::{CallRecord, Gap, Link, Record, Redact, SCHEMA, seal};
use crate::digest::Digest;

/// Bytes that are written at a time, about.
const BATCH: usize = 1 << 20;

/// How often the log repeats that records are lost.
const REPEAT: Duration = Duration::from_secs(10);

/// Owns the file.
pub(super) struct Writer {
    file: AuditFile,
    path: PathBuf,
    /// The last line in the file.
    last: Option<Link>,
    sample: f64,
    redact: Redact,
    shared: Arc<Shared>,
    /// Lost records that the file tells of: to a full queue, and by failed writes.
    told: (u64, u64),
    /// When the log last said that the file takes nothing; None while it does.
    failing: Option<Instant>,
}

/// Lines that are written together.
#[derive(Default)]
struct Batch {
    lines: Vec<u8>,
    last: Option<Link>,
    records: u64,
    /// Who waits for these lines.
    waiting: Vec<oneshot::Sender<()>>,
    /// Room in the queue that is free again when they are written.
    rooms: Vec<OwnedSemaphorePermit>,
}

impl Writer {
    pub fn new(
        (file, last): (AuditFile, Option<Link>),
        path: PathBuf,
        (sample, redact): (f64, Redact),
        shared: Arc<Shared>,
    ) -> Self {
        Self { file, path, last, sample, redact, shared, told: (0, 0), failing: None }
    }

    /// Writes what comes until the queue is closed, and everything that has come by then.
    pub fn run(mut self, messages: Receiver<Message>) {
        let mut closing = false;
        while !closing {
            // Without a close: nobody can send any more.
            let Ok(first) = messages.recv() else { break };
            closing = self.batch(first, &messages);
        }
        while let Ok(first) = messages.try_recv() {
            self.batch(first, &messages);
        }
        self.finish();
    }

    /// Writes `first` and what waits behind it. Whether the queue is closed.
    fn batch(&mut self, first: Message, messages: &Receiver<Message>) -> bool {
        let mut closing = false;
        let mut batch = Batch { last: self.last, ..Batch::default() };
        let gap = self.gap(&mut batch);
        let mut next = Some(first);
        while let Some(message) = next.take() {
            match message {
                Message::Record(entry) => self.add(*entry, &mut batch),
                Message::Close => closing = true,
            }
            if batch.lines.len() < BATCH {
                next = messages.try_recv().ok();
            }
        }
        if batch.records > 0 {
            self.write(batch, gap);
        }
        closing
    }

    /// Adds one record to the batch, unless the sample leaves it out.
    fn add(&self, entry: Entry, batch: &mut Batch) {
        let Entry { time, finished, written, room } = entry;
        let record = Record::Call(Box::new(CallRecord::new(&finished, time, self.sample, self.redact)));
        let Ok(text) = serde_json::to_string(&record) else {
            tracing::error!("an audit record cannot be written as JSON");
            return add(&self.shared.counts.not_written, 1);
        };
        if !sampled(&text, self.sample) {
            add(&self.shared.counts.sampled_out, 1);
            // It goes without a record, as it should; who waits may just have gone.
            let _ = written.map(|written| written.send(()));
            return;
        }
        batch.last = Some(seal(&text, batch.last, &mut batch.lines));
        batch.records += 1;
        batch.waiting.extend(written);
        batch.rooms.push(room);
    }

    /// Starts the batch with a mark, if records were lost that the file does not tell of. The losses that are told then.
    fn gap(&self, batch: &mut Batch) -> (u64, u64) {
        let counts = self.shared.counts.now();
        let lost = (counts.queue_full, counts.not_written);
        let (queue_full, not_written) = (lost.0 - self.told.0, lost.1 - self.told.1);
        if queue_full + not_written > 0 {
            let gap = Record::Gap(Gap { schema: SCHEMA, time: now(), queue_full, not_written });
            if let Ok(text) = serde_json::to_string(&gap) {
                batch.last = Some(seal(&text, batch.last, &mut batch.lines));
            }
        }
        lost
    }

    fn write(&mut self, batch: Batch, gap: (u64, u64)) {
        let written = self.put(&batch.lines);
        let counts = &self.shared.counts;
        match written {
            Ok(()) => {
                self.last = batch.last;
                add(&counts.written, batch.records);
                add(&counts.bytes, batch.lines.len() as u64);
                // Who waits may have gone away.
                for written in batch.waiting {
                    let _ = written.send(());
                }
                self.recovered(gap);
            }
            Err(error) => {
                add(&counts.not_written, batch.records);
                self.failed(&error);
            }
        }
    }

    /// Writes lines to the file that is at the path, and sets it aside before that if it is full.
    fn put(&mut self, lines: &[u8]) -> io::Result<()> {
        self.follow_path()?;
        match self.file.make_room(lines.len()) {
            Ok(false) => {}
            Ok(true) => {
                add(&self.shared.counts.rotations, 1);
                tracing::info!(
                    "the audit file {} was full: a new one is begun after {}",
                    self.path.display(),
                    self.end()
                );
            }
            // The old file is still there.
            Err(error) => tracing::error!("the audit file {} cannot be set aside: {error}", self.path.display()),
        }
        self.file.write(lines)
    }

    /// Tells of a file that another process took away.
    fn follow_path(&mut self) -> io::Result<()> {
        if self.file.follow_path()? {
            tracing::error!(
                "the audit file {} was deleted, moved or replaced by another process after {}: the next records go to \
                 the one that is there now",
                self.path.display(),
                self.end()
            );
        }
        Ok(())
    }

    /// Tells of a failed write, at once and then now and again.
    fn failed(&mut self, error: &io::Error) {
        if self.failing.is_none_or(|told| told.elapsed() >= REPEAT) {
            self.failing = Some(Instant::now());
            let lost = self.shared.counts.now().not_written - self.told.1;
            tracing::error!("the audit file {} takes no records: {error}; {lost} lost", self.path.display());
        }
    }

    /// Tells how much was lost, if anything was.
    fn recovered(&mut self, gap: (u64, u64)) {
        let (queue_full, not_written) = (gap.0 - self.told.0, gap.1 - self.told.1);
        self.failing = None;
        self.told = gap;
        if queue_full + not_written > 0 {
            self.shared.overflowing.store(false, Ordering::Relaxed);
            tracing::error!(
                "the audit file {} lacks {} records: {queue_full} found the queue full, {not_written} could not be written",
                self.path.display(),
                queue_full + not_written
            );
        }
    }

    /// Tells of the last losses, and waits for the disk.
    fn finish(&mut self) {
        let mut batch = Batch { last: self.last, ..Batch::default() };
        let gap = self.gap(&mut batch);
        if !batch.lines.is_empty() {
            self.write(batch, gap);
        }
        let counts = self.shared.counts.now();
        match self.follow_path().and_then(|()| self.file.sync()) {
            Ok(()) => tracing::info!(
                "the audit file {} is closed after {}: {} records written, {} lost",
                self.path.display(),
                self.end(),
                counts.written,
                counts.lost()
            ),
            Err(error) => tracing::error!("the audit file {} may lack records: {error}", self.path.display()),
        }
    }

    /// The last line, for those who want to keep its digest elsewhere.
    fn end(&self) -> String {
        match self.last {
            Some(Link { seq, digest }) => format!("line number {seq} with the digest {digest}"),
            None => "no line".to_owned(),
        }
    }
}

/// Whether a record belongs to a sample of `share`: by its own digest, so that anybody can tell.
fn sampled(record: &str, share: f64) -> bool {
    if share >= 1.0 {
        return true;
    }
    let digest = Digest::of_bytes(record.as_bytes());
    let number = digest.as_bytes().iter().take(8).fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
    (number as f64) < share * 2_f64.powi(64)
}
