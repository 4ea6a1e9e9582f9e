//! What goes through the model next.

use std::collections::{BTreeMap, HashMap};

use super::EngineError;
use super::active::Active;
use super::prefix::{JobId, PrefixTree};
use super::tree::NodeId;
use crate::model::{Ancestor, DecoderConfig, KvBlock, RunSpec};

/// Readings of one chunk, about: what thousands of prompts read of the same few tokens costs more than running them, and
/// guard work waits for it too.
const READINGS: usize = 1 << 16;

/// One prompt of one piece of work.
pub(super) type AskId = (JobId, usize);

/// Nodes that are computed in one forward pass, parents first.
#[derive(Default)]
pub(super) struct Chunk {
    pub pieces: Vec<NodeId>,
    /// For each piece, the prompt that asked for it first.
    pub asked_by: Vec<AskId>,
    /// The prompts that are computed, whole or in part, in order.
    pub asks: Vec<AskId>,
    /// Nodes whose keys and values are read, in order.
    pub earlier: Vec<NodeId>,
    /// Prompts that can never run.
    pub refused: Vec<(AskId, EngineError)>,
    places: HashMap<NodeId, Ancestor>,
    tokens: usize,
    /// Rows that are read, each counted once for every prompt that reads it.
    readings: usize,
    /// Bytes of keys and values that must be held at once.
    bytes: usize,
}

/// Fills one chunk.
pub(super) struct Packer<'a> {
    pub tree: &'a mut PrefixTree,
    pub config: &'a DecoderConfig,
    pub chunk_tokens: usize,
    pub chunk: Chunk,
}

impl Packer<'_> {
    /// Adds the open prompts of one piece of work until the chunk is full. True when it is.
    pub fn add_work(&mut self, id: JobId, work: &Active) -> bool {
        let mut ask = work.open_from(0);
        while let Some(index) = ask {
            if self.add((id, index), work) {
                return true;
            }
            ask = work.open_from(index + 1);
        }
        false
    }

    /// Adds one prompt. True when the chunk is full.
    pub fn add(&mut self, ask: AskId, work: &Active) -> bool {
        if self.chunk.tokens >= self.chunk_tokens {
            return true;
        }
        let Some(end) = work.asks[ask.1].end else { return false };
        let mut path = self.tree.tree.path(end);
        let needed = path.iter().map(|id| self.size(*id)).sum();
        let more: usize = path.iter().filter(|id| !self.chunk.places.contains_key(id)).map(|id| self.size(*id)).sum();
        if needed > self.tree.budget() {
            let (tokens, budget) = (work.asks[ask.1].tokens, self.tree.budget());
            self.chunk.refused.push((ask, EngineError::KvBudget { tokens, needed, budget }));
            return false;
        }
        if !self.chunk.pieces.is_empty() && self.chunk.bytes + more > self.tree.budget() {
            return true;
        }
        self.tree.touch(&path);
        let mut at = 0;
        while let Some(&id) = path.get(at) {
            if !self.chunk.places.contains_key(&id) {
                let slot = self.tree.slot(id);
                let wanted = slot.wants.iter().map(|want| want.rows.start).min();
                match (slot.kv.is_some(), wanted) {
                    (true, None) => self.reuse(id),
                    (true, Some(first)) if first > 0 => {
                        // What lies before the first row that is read need not be computed again.
                        let upper = self.tree.tree.split(id, first);
                        path.insert(at, upper);
                        self.reuse(upper);
                    }
                    _ => {
                        let room = self.room(slot.wants.len());
                        if room == 0 {
                            return true;
                        }
                        // Of what is here already, only the rows that are read.
                        let (whole, here) = (self.tree.tree.node(id).tokens.len(), slot.kv.is_some());
                        let most = if here { slot.wanted().min(room) } else { room };
                        let id = if whole > most {
                            let upper = self.tree.tree.split(id, most);
                            path.insert(at, upper);
                            upper
                        } else {
                            id
                        };
                        self.compute(id, ask);
                    }
                }
            }
            at += 1;
        }
        if self.chunk.asks.last() != Some(&ask) {
            self.chunk.asks.push(ask);
        }
        false
    }

    /// Tokens that still fit, if each has so many readers. An empty chunk takes at least one.
    fn room(&self, readers: usize) -> usize {
        let readable = READINGS.saturating_sub(self.chunk.readings).checked_div(readers).unwrap_or(usize::MAX);
        let least = usize::from(self.chunk.pieces.is_empty());
        (self.chunk_tokens - self.chunk.tokens).min(readable.max(least))
    }

    fn size(&self, id: NodeId) -> usize {
        KvBlock::size(self.config, self.tree.tree.node(id).tokens.len())
    }

    fn reuse(&mut self, id: NodeId) {
        self.chunk.places.insert(id, Ancestor::Earlier(self.chunk.earlier.len()));
        self.chunk.earlier.push(id);
        self.chunk.bytes += self.size(id);
    }

    fn compute(&mut self, id: NodeId, ask: AskId) {
        self.chunk.places.insert(id, Ancestor::Same(self.chunk.pieces.len()));
        self.chunk.pieces.push(id);
        self.chunk.asked_by.push(ask);
        let node = self.tree.tree.node(id);
        self.chunk.tokens += node.tokens.len();
        self.chunk.readings += node.data.wants.iter().map(|want| want.rows.len()).sum::<usize>();
        self.chunk.bytes += self.size(id);
        if self.chunk.asks.last() != Some(&ask) {
            self.chunk.asks.push(ask);
        }
    }
}

impl Chunk {
    /// The nodes whose keys and values must stay or come, sorted.
    pub fn pinned(&self) -> Vec<NodeId> {
        let mut pinned: Vec<NodeId> = self.places.keys().copied().collect();
        pinned.sort_unstable();
        pinned
    }

    /// Bytes that the chunk adds.
    pub fn new_bytes(&self, tree: &PrefixTree, config: &DecoderConfig) -> usize {
        let fresh = self.pieces.iter().filter(|id| tree.slot(**id).kv.is_none());
        fresh.map(|id| KvBlock::size(config, tree.tree.node(*id).tokens.len())).sum()
    }

    /// The runs of the decoder.
    pub fn runs(&self, tree: &PrefixTree) -> Vec<RunSpec> {
        let run = |id: &NodeId| {
            let node = tree.tree.node(*id);
            let path = tree.tree.path(*id);
            let ancestors = path[..path.len() - 1].iter().filter_map(|id| self.places.get(id)).copied().collect();
            RunSpec { tokens: node.tokens.clone(), start: node.start, ancestors }
        };
        self.pieces.iter().map(run).collect()
    }

    /// Who reads which row.
    pub fn reads(&self, tree: &PrefixTree) -> Reads {
        let mut rows = Reads::new();
        let mut first_row = 0;
        for id in &self.pieces {
            let node = tree.tree.node(*id);
            for want in &node.data.wants {
                for offset in want.rows.clone() {
                    let read = ReadRow { ask: (want.job, want.ask), node: *id, position: node.start + offset };
                    rows.entry(first_row + offset).or_default().push(read);
                }
            }
            first_row += node.tokens.len();
        }
        rows
    }
}

/// The rows of a chunk that are read, counted over all pieces, with their readers.
pub(super) type Reads = BTreeMap<usize, Vec<ReadRow>>;

/// One prompt's reading of one row.
#[derive(Clone, Copy)]
pub(super) struct ReadRow {
    pub ask: AskId,
    pub node: NodeId,
    pub position: usize,
}
