//! Runs work chunk by chunk: what is most urgent first, as much as fits, and nothing for callers that are gone.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::active::Active;
use super::pack::{AskId, Chunk, Packer, Reads};
use super::prefix::{JobId, PrefixTree};
use super::queue::Job;
use super::stats::{Counters, add};
use super::{EngineError, Lane};
use crate::model::{Decoder, KvBlock, RowScores};
use crate::telemetry::catalogue::{CHUNK_FILL, CHUNK_SECONDS, CHUNK_TOKENS, PADDING_TOKENS};
use crate::telemetry::trace::BatchSpan;

/// The batch lane goes first in one of so many chunks that guard work leaves, if both it and the train lane have work.
const BATCH_TURN: u64 = 8;

/// The work in the model's tree.
pub(super) struct Scheduler<'a> {
    decoder: &'a Decoder,
    counters: &'a Counters,
    chunk_tokens: usize,
    tree: PrefixTree,
    active: BTreeMap<JobId, Active>,
    next: u64,
    turn: u64,
}

impl<'a> Scheduler<'a> {
    /// `kv_bytes` bounds the keys and values that are held.
    pub fn new(decoder: &'a Decoder, counters: &'a Counters, chunk_tokens: usize, kv_bytes: usize) -> Self {
        let tree = PrefixTree::new(kv_bytes);
        Self { decoder, counters, chunk_tokens, tree, active: BTreeMap::new(), next: 0, turn: 0 }
    }

    /// Distinct tokens of the work in the tree by lane, each piece counted by itself.
    pub fn active_tokens(&self) -> [usize; 3] {
        let mut tokens = [0; 3];
        for ((lane, _), active) in &self.active {
            tokens[*lane as usize] += active.tokens;
        }
        tokens
    }

    pub fn is_idle(&self) -> bool {
        self.active.is_empty()
    }

    /// Takes a piece of work into the tree, or answers it at once.
    pub fn enter(&mut self, job: Job) {
        if let Some(stop) = job.stop() {
            // Whoever is left gets the reason.
            let _ = job.reply.send(Err(EngineError::Stopped(stop)));
            return;
        }
        let id = (job.lane, self.next);
        self.next += 1;
        let (active, reused) = Active::enter(job, id, &mut self.tree, self.decoder.config().context_length);
        add(&self.counters.reused_tokens, reused);
        if active.open == 0 {
            active.finish();
        } else {
            self.active.insert(id, active);
        }
    }

    /// Answers what is cancelled or late, then runs one chunk of the rest.
    pub fn step(&mut self) {
        self.sweep();
        fail::fail_point!("engine::step");
        let chunk = self.pack();
        self.run(chunk);
        self.counters.active.store(self.active.len() as u64, Ordering::Relaxed);
    }

    /// Drops work that nobody waits for.
    fn sweep(&mut self) {
        let stopped: Vec<_> = self.active.iter().filter_map(|(id, active)| Some((*id, active.job.stop()?))).collect();
        for (id, stop) in stopped {
            if let Some(mut active) = self.active.remove(&id) {
                add(&self.counters.wasted_tokens, active.abandon(id, &mut self.tree));
                let _ = active.job.reply.send(Err(EngineError::Stopped(stop)));
            }
        }
    }

    /// The next chunk. Guard work has it for itself, so that nothing else slows it down.
    fn pack(&mut self) -> Chunk {
        let guard = self.active.keys().next().is_some_and(|(lane, _)| *lane == Lane::Guard);
        // Guard chunks are nobody's turn: they may come in step with the turns of the batch lane and take them all.
        self.turn += u64::from(!guard);
        let lanes: &[Lane] = if guard {
            &[Lane::Guard]
        } else if self.turn.is_multiple_of(BATCH_TURN) {
            &[Lane::Batch, Lane::Train]
        } else {
            &[Lane::Train, Lane::Batch]
        };
        let mut packer = packer(&mut self.tree, self.decoder, self.chunk_tokens);
        for lane in lanes {
            for (id, active) in self.active.range((*lane, 0)..=(*lane, u64::MAX)) {
                if packer.add_work(*id, active) {
                    return packer.chunk;
                }
            }
        }
        packer.chunk
    }

    /// The part of a chunk that these prompts need.
    fn pack_again(&mut self, asks: &[AskId]) -> Chunk {
        let mut packer = packer(&mut self.tree, self.decoder, self.chunk_tokens);
        for ask in asks {
            if let Some(active) = self.active.get(&ask.0).filter(|active| active.is_open(ask.1))
                && packer.add(*ask, active)
            {
                break;
            }
        }
        packer.chunk
    }

    /// Runs a chunk. If the forward pass panics, the halves of its prompts are tried by themselves, down to the one at
    /// fault, which alone fails.
    fn run(&mut self, mut chunk: Chunk) {
        for (ask, error) in std::mem::take(&mut chunk.refused) {
            self.close(ask, Some(error));
        }
        if chunk.pieces.is_empty() {
            return;
        }
        let reads = chunk.reads(&self.tree);
        match self.forward(&chunk, &reads) {
            Ok((scores, blocks)) => self.file(&chunk, &reads, &scores, blocks),
            Err(reason) => match chunk.asks.as_slice() {
                [ask] => self.close(*ask, Some(EngineError::Failed(reason))),
                asks => {
                    for half in [&asks[..asks.len() / 2], &asks[asks.len() / 2..]] {
                        let chunk = self.pack_again(half);
                        self.run(chunk);
                    }
                }
            },
        }
    }

    /// The forward pass: the scores of every row that is read, and each piece's keys and values.
    fn forward(&mut self, chunk: &Chunk, reads: &Reads) -> Result<(Vec<RowScores>, Vec<KvBlock>), String> {
        let evicted = self.tree.make_room(chunk.new_bytes(&self.tree, self.decoder.config()), &chunk.pinned());
        add(&self.counters.evicted_tokens, evicted);
        let runs = chunk.runs(&self.tree);
        let earlier: Vec<&KvBlock> = chunk.earlier.iter().filter_map(|id| self.tree.slot(*id).kv.as_ref()).collect();
        let rows: Vec<usize> = reads.keys().copied().collect();
        let targets: Vec<Vec<u32>> = reads
            .values()
            .map(|reads| {
                let targets = reads.iter().filter_map(|read| {
                    let ask = &self.active.get(&read.ask.0)?.asks[read.ask.1];
                    Some(&ask.targets[ask.targets_at(read.position)])
                });
                targets.flatten().copied().collect()
            })
            .collect();
        let decoder = self.decoder;
        let tokens: usize = runs.iter().map(|run| run.tokens.len()).sum();
        let _span = self.span(chunk, tokens);
        let started = Instant::now();
        let work = || {
            fail::fail_point!("engine::forward");
            let (hidden, blocks) = decoder.forward(&runs, &earlier, &rows);
            (decoder.read(&hidden, &targets), blocks)
        };
        let done = catch_unwind(AssertUnwindSafe(work)).map_err(|panic| describe(&*panic))?;
        CHUNK_SECONDS.record([], started.elapsed().as_secs_f64());
        CHUNK_TOKENS.record([], tokens as f64);
        CHUNK_FILL.record([], tokens as f64 / self.chunk_tokens as f64);
        // The decoder never multiplies a single row; it computes a second one with it.
        PADDING_TOKENS.add([], u64::from(tokens == 1));
        Ok(done)
    }

    /// The span of a forward pass, tied to those of the calls that take part in it.
    fn span(&self, chunk: &Chunk, tokens: usize) -> BatchSpan {
        let mut last = None;
        // The prompts of one call stand together.
        let calls = chunk.asks.iter().filter(|(job, _)| last.replace(*job) != Some(*job));
        BatchSpan::begin(tokens, calls.filter_map(|(job, _)| Some(self.active.get(job)?.record().span())))
    }

    /// Files what a chunk gave: readings with their prompts, keys and values in the tree.
    fn file(&mut self, chunk: &Chunk, reads: &Reads, scores: &[RowScores], blocks: Vec<KvBlock>) {
        add(&self.counters.chunks, 1);
        for (id, (job, ask)) in chunk.pieces.iter().zip(&chunk.asked_by) {
            let tokens = self.tree.tree.node(*id).tokens.len();
            add(&self.counters.computed_tokens, tokens);
            if let Some(active) = self.active.get_mut(job) {
                active.answers[*ask].computed += tokens;
            }
        }
        for (id, block) in chunk.pieces.iter().zip(blocks) {
            let slot = self.tree.slot_mut(*id);
            slot.kv = Some(block);
            slot.wants.clear();
        }
        let mut done = Vec::new();
        for (row, reads) in scores.iter().zip(reads.values()) {
            let log_sum_exp = log_sum_exp(row);
            let mut scores = row.scores.iter().map(|score| f64::from(*score) - log_sum_exp);
            for read in reads {
                let Some(active) = self.active.get_mut(&read.ask.0) else { continue };
                let count = active.asks[read.ask.1].targets_at(read.position).len();
                if active.read(read.ask.1, read.position, scores.by_ref().take(count)) {
                    done.push(read.ask);
                }
                if let Some((target, log_prob)) = active.memorable(read.ask.1, read.position) {
                    let node = self.tree.tree.node_mut(read.node);
                    node.data.remember(read.position - node.start, target, log_prob);
                }
            }
        }
        for ask in done {
            self.close(ask, None);
        }
        self.counters.kv_bytes.store(self.tree.bytes() as u64, Ordering::Relaxed);
    }

    /// Ends one prompt; sends the answers of its work when it was the last.
    fn close(&mut self, (id, ask): AskId, error: Option<EngineError>) {
        let Some(active) = self.active.get_mut(&id) else { return };
        if active.close(ask, id, &mut self.tree, error)
            && let Some(active) = self.active.remove(&id)
        {
            active.finish();
        }
    }
}

fn packer<'a>(tree: &'a mut PrefixTree, decoder: &'a Decoder, chunk_tokens: usize) -> Packer<'a> {
    Packer { tree, config: decoder.config(), chunk_tokens, chunk: Chunk::default() }
}

fn log_sum_exp(row: &RowScores) -> f64 {
    fail::fail_point!("engine::not_finite", |_| f64::NAN);
    f64::from(row.log_sum_exp)
}

/// What a panic says.
pub(super) fn describe(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".to_owned())
}
