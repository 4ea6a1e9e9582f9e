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

#[derive(Default)]
struct Scratch {
    scores: Vec<f32>,
    values: Vec<f32>,
    out: Vec<f32>,
    scales: Vec<f32>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Attends one task. `queries` holds the chunk's rotated and scaled queries, `[row][head][head dim]`, and one row more;
/// `write(row, head, values)` receives each result once.
pub fn attend(
    config: &DecoderConfig,
    layer: usize,
    run: &Run<'_>,
    task: Task,
    queries: Rows<'_>,
    mut write: impl FnMut(usize, usize, &[f32]),
) {
    let (dim, group) = (config.head_dim, config.group());
    let last = run.start + task.from + task.queries;
    let width = last.next_multiple_of(LANES);
    // Blocks are written with their padding: room for the widest overhang.
    let stride = width + LANES;
    let rows = (group * task.queries).max(MIN_ROWS);
    // A product of a single query takes the next row along; what it writes there is overwritten or never read.
    SCRATCH.with_borrow_mut(|scratch| {
        let Scratch { scores, values, out, scales } = scratch;
        scores.resize(scores.len().max((rows + 1) * stride), 0.0);
        values.resize(values.len().max(width * dim), 0.0);
        out.resize(out.len().max(rows * dim), 0.0);
        scales.resize(scales.len().max(rows), 0.0);

        let mut position = 0;
        for block in &run.path {
            if position >= last {
                break;
            }
            let columns = block.padded().min((last - position).next_multiple_of(LANES));
            for head in 0..group {
                let first = (run.first_row + task.from) * queries.stride + (task.kv_head * group + head) * dim;
                let at = head * task.queries * stride + position;
                multiply(
                    Shape { rows: task.queries.max(MIN_ROWS), inner: dim, columns },
                    Rows { data: &queries.data[first..], stride: queries.stride },
                    Operand {
                        data: block.keys(layer, task.kv_head),
                        layout: Layout::ByInput { stride: block.padded() },
                    },
                    Output { data: &mut scores[at..], stride, accumulate: false },
                );
            }
            let count = block.tokens().min(last - position);
            values[position * dim..][..count * dim].copy_from_slice(&block.values(layer, task.kv_head)[..count * dim]);
            position += count;
        }
        values[last * dim..width * dim].fill(0.0);

        for head in 0..group {
            for query in 0..task.queries {
                let row = head * task.queries + query;
                scales[row] = softmax_in_place(&mut scores[row * stride..][..width], run.start + task.from + query + 1);
            }
        }
        for from in (0..width).step_by(VALUE_SPAN) {
            let inner = VALUE_SPAN.min(width - from);
            multiply(
                Shape { rows, inner, columns: dim },
                Rows { data: &scores[from..], stride },
                Operand { data: &values[from * dim..], layout: Layout::ByInput { stride: dim } },
                Output { data: &mut out[..], stride: dim, accumulate: from > 0 },
            );
        }
        for head in 0..group {
            for query in 0..task.queries {
                let row = head * task.queries + query;
                let result = &mut out[row * dim..][..dim];
                result.iter_mut().for_each(|value| *value *= scales[row]);
                write(run.first_row + task.from + query, task.kv_head * group + head, result);
            }
        }
    });
}
