//! One piece of work: prompts → tree → chunks → readings.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::tree::{NodeId, TokenTree};
use super::{Cancel, EngineError, Prompt, Read, Reading};
use crate::model::{Ancestor, Decoder, KvBlock, RunSpec, TokenId};

/// Answers `prompts`, each once, in order; `chunk_tokens` bounds the tokens of one forward pass.
pub fn run(
    decoder: &Decoder,
    prompts: &[Prompt],
    chunk_tokens: usize,
    cancel: &Cancel,
) -> Result<Vec<Result<Reading, EngineError>>, EngineError> {
    let limit = decoder.config().context_length;
    if let Some(prompt) = prompts.iter().find(|prompt| prompt.ids.len() > limit) {
        return Err(EngineError::TooLong { tokens: prompt.ids.len(), limit });
    }
    let tree = TokenTree::new(prompts.iter().map(|prompt| prompt.ids.as_slice()));
    let mut walk = Walk::new(decoder, &tree, Wanted::new(&tree, prompts));
    for chunk in chunks(&tree, chunk_tokens) {
        cancel.check().map_err(EngineError::Stopped)?;
        walk.step(&chunk);
    }
    let mut computed = vec![0; prompts.len()];
    for node in tree.nodes() {
        computed[node.first_prompt] += node.tokens.len();
    }
    let finish = |(log_probs, computed): (Vec<f64>, usize)| {
        if log_probs.iter().all(|value| value.is_finite()) {
            Ok(Reading { log_probs, computed })
        } else {
            Err(EngineError::NonFinite)
        }
    };
    Ok(walk.wanted.answers.into_iter().zip(computed).map(finish).collect())
}

/// A part of a node that goes through the model in one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    node: NodeId,
    from: usize,
    to: usize,
    /// The place of the node in depth-first order.
    rank: usize,
}

/// Cuts the tree, depth first, into chunks of at most `limit` tokens.
fn chunks(tree: &TokenTree, limit: usize) -> Vec<Vec<Piece>> {
    let mut chunks = vec![Vec::new()];
    let mut room = limit;
    for (rank, node) in tree.depth_first().into_iter().enumerate() {
        let length = tree.nodes()[node].tokens.len();
        let mut from = 0;
        while from < length {
            if room == 0 {
                chunks.push(Vec::new());
                room = limit;
            }
            let to = length.min(from + room);
            if let Some(chunk) = chunks.last_mut() {
                chunk.push(Piece { node, from, to, rank });
            }
            room -= to - from;
            from = to;
        }
    }
    chunks
}

/// Where an answer goes: prompt and index in its log-probabilities.
type Slot = (usize, usize);

/// Rows of one node that one prompt reads, as offsets into the node.
struct Want {
    prompt: usize,
    rows: Range<usize>,
}

/// Who reads where, and the answers so far. Holds one entry per prompt and node, not per row: a group of ten thousand
/// candidates reads millions of rows.
struct Wanted<'a> {
    prompts: &'a [Prompt],
    by_node: HashMap<NodeId, Vec<Want>>,
    answers: Vec<Vec<f64>>,
}

impl<'a> Wanted<'a> {
    fn new(tree: &TokenTree, prompts: &'a [Prompt]) -> Self {
        let mut by_node: HashMap<NodeId, Vec<Want>> = HashMap::new();
        let mut answers = Vec::with_capacity(prompts.len());
        for (index, prompt) in prompts.iter().enumerate() {
            let (count, rows) = match &prompt.read {
                Read::Next(targets) => (targets.len(), prompt.ids.len() - 1..prompt.ids.len()),
                Read::Span(span) => (span.len(), span.start.saturating_sub(1)..span.end.saturating_sub(1)),
            };
            answers.push(vec![f64::NAN; count]);
            for id in tree.path(tree.end(index)) {
                let node = &tree.nodes()[id];
                let end = node.start + node.tokens.len();
                let rows = rows.start.max(node.start)..rows.end.min(end);
                if !rows.is_empty() {
                    let rows = rows.start - node.start..rows.end - node.start;
                    by_node.entry(id).or_default().push(Want { prompt: index, rows });
                }
            }
        }
        Self { prompts, by_node, answers }
    }

    /// The rows of a chunk that are read, ascending.
    fn reads(&self, tree: &TokenTree, chunk: &[Piece]) -> Reads {
        let mut rows: BTreeMap<usize, (Vec<TokenId>, Vec<Slot>)> = BTreeMap::new();
        let mut first_row = 0;
        for piece in chunk {
            let start = tree.nodes()[piece.node].start;
            for want in self.by_node.get(&piece.node).into_iter().flatten() {
                let prompt = &self.prompts[want.prompt];
                for offset in want.rows.start.max(piece.from)..want.rows.end.min(piece.to) {
                    let (targets, slots) = rows.entry(first_row + offset - piece.from).or_default();
                    match &prompt.read {
                        Read::Next(next) => {
                            targets.extend(next);
                            slots.extend((0..next.len()).map(|slot| (want.prompt, slot)));
                        }
                        Read::Span(span) => {
                            let read = start + offset + 1;
                            targets.push(prompt.ids[read]);
                            slots.push((want.prompt, read - span.start));
                        }
                    }
                }
            }
            first_row += piece.to - piece.from;
        }
        let mut reads = Reads::default();
        for (row, (targets, slots)) in rows {
            reads.rows.push(row);
            reads.targets.push(targets);
            reads.slots.push(slots);
        }
        reads
    }
}

/// K/V of the parts of one node that are done, and the rank after its subtree.
struct Live {
    node: NodeId,
    until: usize,
    blocks: Vec<KvBlock>,
}

/// The state between chunks: the K/V of all nodes that later chunks still need.
struct Walk<'a> {
    decoder: &'a Decoder,
    tree: &'a TokenTree,
    wanted: Wanted<'a>,
    /// Rank after the last node of each subtree.
    until: Vec<usize>,
    live: Vec<Live>,
}

impl<'a> Walk<'a> {
    fn new(decoder: &'a Decoder, tree: &'a TokenTree, wanted: Wanted<'a>) -> Self {
        let order = tree.depth_first();
        let mut until = vec![0; order.len()];
        for (rank, id) in order.iter().enumerate().rev() {
            until[*id] = until[*id].max(rank + 1);
            if let Some(parent) = tree.nodes()[*id].parent {
                until[parent] = until[parent].max(until[*id]);
            }
        }
        Self { decoder, tree, wanted, until, live: Vec::new() }
    }

    fn step(&mut self, chunk: &[Piece]) {
        let Some(first) = chunk.first() else { return };
        self.live.retain(|live| live.until > first.rank);
        let mut earlier = Vec::new();
        let mut places: HashMap<NodeId, Vec<Ancestor>> = HashMap::new();
        for live in &self.live {
            for block in &live.blocks {
                places.entry(live.node).or_default().push(Ancestor::Earlier(earlier.len()));
                earlier.push(block);
            }
        }
        let mut runs = Vec::with_capacity(chunk.len());
        for piece in chunk {
            let path = self.tree.path(piece.node);
            let ancestors = path.iter().filter_map(|id| places.get(id)).flatten().copied().collect();
            places.entry(piece.node).or_default().push(Ancestor::Same(runs.len()));
            let node = &self.tree.nodes()[piece.node];
            runs.push(RunSpec {
                tokens: node.tokens[piece.from..piece.to].to_vec(),
                start: node.start + piece.from,
                ancestors,
            });
        }
        let reads = self.wanted.reads(self.tree, chunk);
        let (hidden, blocks) = self.decoder.forward(&runs, &earlier, &reads.rows);
        let scores = self.decoder.read(&hidden, &reads.targets);
        for (scores, slots) in scores.iter().zip(reads.slots) {
            for (score, (prompt, index)) in scores.scores.iter().zip(slots) {
                self.wanted.answers[prompt][index] = f64::from(*score) - f64::from(scores.log_sum_exp);
            }
        }
        self.keep(chunk, blocks);
    }

    /// Files the K/V of a chunk for the chunks after it.
    fn keep(&mut self, chunk: &[Piece], blocks: Vec<KvBlock>) {
        for (piece, block) in chunk.iter().zip(blocks) {
            match self.live.last_mut().filter(|live| live.node == piece.node) {
                Some(live) => live.blocks.push(block),
                None => {
                    let until = self.until[piece.node];
                    self.live.push(Live { node: piece.node, until, blocks: vec![block] });
                }
            }
        }
    }
}

/// What one chunk is read for; the three run in parallel.
#[derive(Default)]
struct Reads {
    rows: Vec<usize>,
    targets: Vec<Vec<TokenId>>,
    slots: Vec<Vec<Slot>>,
}
