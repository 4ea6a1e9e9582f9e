//! Attention over token trees: each run of a chunk reads the K/V of its ancestors and, causally, its own.
//!
//! Blocks of queries, which may reach over several runs, walk the tiles of absolute positions (see `tile`). A tile that
//! several runs share is read once for all their queries. A query's result depends on its path alone: tiles lie at
//! absolute positions, however the path is cut into runs, and nothing else in the chunk changes a bit.

use std::cell::RefCell;
use std::ops::Range;

use super::DecoderConfig;
use super::kv::KvBlock;
use super::matmul;
use super::tile::{Part, Rows, TILE, attend_tile};

/// Tokens of a block of queries: enough for a tile to stay in the nearest cache while it is read, few enough to share
/// a chunk among many threads.
const QUERIES: usize = 32;

/// One run of the chunk: consecutive tokens of one path.
pub struct Run<'a> {
    /// First row of the run in the chunk.
    first_row: usize,
    /// Position of the first token on its path.
    start: usize,
    tokens: usize,
    /// K/V from the root to this run's own, which is the last, and the position at which each begins.
    path: Vec<(usize, &'a KvBlock)>,
}

impl<'a> Run<'a> {
    /// `path` leads from the root to the run's own block.
    pub fn new(first_row: usize, path: impl Iterator<Item = &'a KvBlock>) -> Self {
        let mut next = 0;
        let starts = path.map(|block| {
            let start = next;
            next += block.tokens();
            (start, block)
        });
        let path: Vec<_> = starts.collect();
        let (start, tokens) = path.last().map_or((0, 0), |(start, own)| (*start, own.tokens()));
        Self { first_row, start, tokens, path }
    }

    /// The parts of one tile, as far as the path goes.
    fn parts(&self, tile: Range<usize>, layer: usize, head: usize, parts: &mut Vec<Part<'a>>) {
        parts.clear();
        let first = self.path.partition_point(|(start, _)| *start <= tile.start) - 1;
        for (start, block) in self.path[first..].iter().take_while(|(start, _)| *start < tile.end) {
            let from = tile.start.max(*start) - start;
            let to = block.tokens().min(tile.end - start);
            parts.push(Part {
                at: start + from - tile.start,
                len: to - from,
                keys: (&block.keys(layer, head)[from..], block.tokens()),
                values: &block.values(layer, head)[from * block.value_width()..],
            });
        }
    }
}

/// One piece of attention work: a block of the chunk's rows under one key/value head.
pub struct Task {
    kv_head: usize,
    /// Run, and the tokens of it that belong to the block.
    pieces: Vec<(usize, Range<usize>)>,
}

/// Cuts the attention of a chunk into tasks.
pub fn tasks(runs: &[Run<'_>], config: &DecoderConfig) -> Vec<Task> {
    let mut blocks: Vec<Vec<(usize, Range<usize>)>> = Vec::new();
    let mut room = 0;
    for (index, run) in runs.iter().enumerate() {
        let mut from = 0;
        while from < run.tokens {
            if room == 0 {
                blocks.push(Vec::new());
                room = QUERIES;
            }
            let to = run.tokens.min(from + room);
            if let Some(block) = blocks.last_mut() {
                block.push((index, from..to));
            }
            room -= to - from;
            from = to;
        }
    }
    let heads = |pieces: Vec<_>| (0..config.kv_heads).map(move |kv_head| Task { kv_head, pieces: pieces.clone() });
    blocks.into_iter().flat_map(heads).collect()
}

thread_local! {
    /// Kept from task to task.
    static ROWS: RefCell<Rows> = RefCell::default();
}

/// Attends one task. `queries` holds the chunk's rotated and scaled queries, `[row][head][head dim]`; `write(row, head,
/// values)` receives each result once.
pub fn attend(
    (config, layer): (&DecoderConfig, usize),
    runs: &[Run<'_>],
    task: &Task,
    queries: matmul::Rows<'_>,
    mut write: impl FnMut(usize, usize, &[f32]),
) {
    let (dim, group) = (config.head_dim, config.group());
    ROWS.with_borrow_mut(|rows| {
        rows.clear(dim);
        for (run, tokens) in &task.pieces {
            let run = &runs[*run];
            for token in tokens.clone() {
                let at = (run.first_row + token) * queries.stride + task.kv_head * group * dim;
                rows.queries.extend_from_slice(&queries.data[at..][..group * dim]);
                rows.visible.extend(std::iter::repeat_n(run.start + token + 1, group));
            }
        }
        rows.prepare();
        let end = rows.visible.iter().copied().max().unwrap_or(0);
        for start in (0..end).step_by(TILE) {
            attend_runs(runs, task, (layer, start), group, rows);
        }
        let mut row = 0;
        for (run, tokens) in &task.pieces {
            for token in tokens.clone() {
                for head in 0..group {
                    write(runs[*run].first_row + token, task.kv_head * group + head, rows.finish(row));
                    row += 1;
                }
            }
        }
    });
}

/// Lets the task's rows attend the tile at `start`: runs whose tile is the same memory together.
fn attend_runs(runs: &[Run<'_>], task: &Task, (layer, start): (usize, usize), group: usize, rows: &mut Rows) {
    let tile = start..start + TILE;
    // Rows that wait for the tile `parts`.
    let mut waiting = 0..0;
    let (mut parts, mut next) = (Vec::new(), Vec::new());
    let mut row = 0;
    for (run, tokens) in &task.pieces {
        let run = &runs[*run];
        // Earlier tokens of the run do not see the tile.
        let skipped = tile.start.saturating_sub(run.start).clamp(tokens.start, tokens.end) - tokens.start;
        let own = row + skipped * group..row + tokens.len() * group;
        row = own.end;
        if own.is_empty() {
            continue;
        }
        run.parts(tile.clone(), layer, task.kv_head, &mut next);
        let same = parts.len() == next.len() && parts.iter().zip(&next).all(|(a, b): (&Part<'_>, _)| a.is(b));
        if same && waiting.end == own.start {
            waiting.end = own.end;
            continue;
        }
        if !waiting.is_empty() {
            attend_tile(rows, waiting, start, &parts);
        }
        waiting = own;
        std::mem::swap(&mut parts, &mut next);
    }
    if !waiting.is_empty() {
        attend_tile(rows, waiting, start, &parts);
    }
}
