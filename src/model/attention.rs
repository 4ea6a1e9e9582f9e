//! Attention over token trees: each run of a chunk reads the K/V of its ancestors and, causally, its own.
//!
//! A query's result depends on its path alone: scores are dots over the head dimension, softmax reduces over lanes fixed
//! by absolute position, and values are summed in spans of [`VALUE_SPAN`] absolute positions. How the path is cut into
//! runs, and what else is in the chunk, changes no bit.

use std::cell::RefCell;

use super::DecoderConfig;
use super::kernels::{LANES, softmax_in_place};
use super::kv::KvBlock;
use super::matmul::{Layout, MIN_ROWS, Operand, Output, Rows, Shape, multiply};

/// Absolute positions whose values are summed in one product; gemm cuts longer sums at places of its own.
const VALUE_SPAN: usize = 512;

/// Floats of scores per query block: keeps a block's scores in the second-level cache.
const SCORE_BUDGET: usize = 128 * 1024;

/// Queries of one run that are processed together, at most.
const MAX_QUERIES: usize = 64;

/// One run of the chunk: consecutive tokens of one path.
pub struct Run<'a> {
    /// First row of the run in the chunk.
    pub first_row: usize,
    /// Position of the first token on its path.
    pub start: usize,
    /// K/V from the root to this run's own, which is the last.
    pub path: Vec<&'a KvBlock>,
}

impl Run<'_> {
    fn tokens(&self) -> usize {
        self.path.last().map_or(0, |own| own.tokens())
    }
}

/// One piece of attention work: a block of queries of one run under one key/value head.
#[derive(Clone, Copy)]
pub struct Task {
    pub run: usize,
    pub kv_head: usize,
    /// Offset of the first query in its run.
    pub from: usize,
    pub queries: usize,
}

/// Cuts the attention of a chunk into tasks.
pub fn tasks(runs: &[Run<'_>], config: &DecoderConfig) -> Vec<Task> {
    let mut tasks = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let width = (run.start + run.tokens()).next_multiple_of(LANES);
        let block = (SCORE_BUDGET / (width * config.group())).clamp(8, MAX_QUERIES);
        for kv_head in 0..config.kv_heads {
            for from in (0..run.tokens()).step_by(block) {
                tasks.push(Task { run: index, kv_head, from, queries: block.min(run.tokens() - from) });
            }
        }
    }
    tasks
}

/// One task with what its parts share.
struct Attention<'a> {
    config: &'a DecoderConfig,
    layer: usize,
    run: &'a Run<'a>,
    task: Task,
    /// Position after the task's last query.
    last: usize,
    /// `last`, rounded up to whole lanes: the columns of the softmax.
    width: usize,
    /// Distance of two rows of scores: a block is written with its padding, which may hang over `width`.
    stride: usize,
    /// Query heads times queries.
    rows: usize,
}

/// Buffers of one thread, kept from task to task.
#[derive(Default)]
struct Scratch {
    /// `[head of the group][query][position]`.
    scores: Vec<f32>,
    /// `[position][head dim]`.
    values: Vec<f32>,
    /// `[head of the group][query][head dim]`.
    out: Vec<f32>,
    /// One over each row's sum.
    scales: Vec<f32>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Attends one task. `queries` holds the chunk's rotated and scaled queries, `[row][head][head dim]`, and one row more;
/// `write(row, head, values)` receives each result once.
pub fn attend(
    (config, layer): (&DecoderConfig, usize),
    run: &Run<'_>,
    task: Task,
    queries: Rows<'_>,
    mut write: impl FnMut(usize, usize, &[f32]),
) {
    let last = run.start + task.from + task.queries;
    let width = last.next_multiple_of(LANES);
    let rows = config.group() * task.queries;
    let attention = Attention { config, layer, run, task, last, width, stride: width + LANES, rows };
    SCRATCH.with_borrow_mut(|scratch| {
        attention.make_room(scratch);
        attention.score(queries, &mut scratch.scores);
        attention.gather(&mut scratch.values);
        attention.normalise(scratch);
        attention.sum(scratch);
        for (row, result) in scratch.out.chunks_exact_mut(config.head_dim).take(rows).enumerate() {
            result.iter_mut().for_each(|value| *value *= scratch.scales[row]);
            let (head, query) = (row / task.queries, row % task.queries);
            write(run.first_row + task.from + query, task.kv_head * config.group() + head, result);
        }
    });
}

impl Attention<'_> {
    fn make_room(&self, scratch: &mut Scratch) {
        let grow = |buffer: &mut Vec<f32>, size: usize| buffer.resize(buffer.len().max(size), 0.0);
        let dim = self.config.head_dim;
        // One row more than `score` fills, see there.
        grow(&mut scratch.scores, (self.rows.max(MIN_ROWS) + 1) * self.stride);
        grow(&mut scratch.values, self.width * dim);
        grow(&mut scratch.out, self.rows.max(MIN_ROWS) * dim);
        grow(&mut scratch.scales, self.rows);
    }

    /// The path's blocks with the position at which each begins, as far as the task sees.
    fn blocks(&self) -> impl Iterator<Item = (usize, &KvBlock)> {
        let mut next = 0;
        let starts = self.run.path.iter().map(move |block| {
            let start = next;
            next += block.tokens();
            (start, *block)
        });
        starts.take_while(|(start, _)| *start < self.last)
    }

    /// Query times key. A single query takes the next row of `queries` along; what that writes is overwritten by the
    /// next head or never read. The same holds for a block's padding.
    fn score(&self, queries: Rows<'_>, scores: &mut [f32]) {
        let (dim, group) = (self.config.head_dim, self.config.group());
        let row = (self.run.first_row + self.task.from) * queries.stride;
        for (start, block) in self.blocks() {
            let columns = block.padded().min((self.last - start).next_multiple_of(LANES));
            let keys = Operand {
                data: block.keys(self.layer, self.task.kv_head),
                layout: Layout::ByInput { stride: block.padded() },
            };
            for head in 0..group {
                let first = row + (self.task.kv_head * group + head) * dim;
                let at = head * self.task.queries * self.stride + start;
                multiply(
                    Shape { rows: self.task.queries.max(MIN_ROWS), inner: dim, columns },
                    Rows { data: &queries.data[first..], stride: queries.stride },
                    keys,
                    Output { data: &mut scores[at..], stride: self.stride, accumulate: false },
                );
            }
        }
    }

    /// Copies the path's values side by side, and zeros up to `width`.
    fn gather(&self, values: &mut [f32]) {
        let dim = self.config.head_dim;
        for (start, block) in self.blocks() {
            let size = block.tokens().min(self.last - start) * dim;
            values[start * dim..][..size].copy_from_slice(&block.values(self.layer, self.task.kv_head)[..size]);
        }
        values[self.last * dim..self.width * dim].fill(0.0);
    }

    /// Causal softmax, but for the division by the sum.
    fn normalise(&self, scratch: &mut Scratch) {
        for (row, scale) in scratch.scales[..self.rows].iter_mut().enumerate() {
            let position = self.run.start + self.task.from + row % self.task.queries;
            *scale = softmax_in_place(&mut scratch.scores[row * self.stride..][..self.width], position + 1);
        }
    }

    /// Probability times value.
    fn sum(&self, scratch: &mut Scratch) {
        let dim = self.config.head_dim;
        for from in (0..self.width).step_by(VALUE_SPAN) {
            multiply(
                Shape { rows: self.rows.max(MIN_ROWS), inner: VALUE_SPAN.min(self.width - from), columns: dim },
                Rows { data: &scratch.scores[from..], stride: self.stride },
                Operand { data: &scratch.values[from * dim..], layout: Layout::ByInput { stride: dim } },
                Output { data: &mut scratch.out, stride: dim, accumulate: from > 0 },
            );
        }
    }
}
