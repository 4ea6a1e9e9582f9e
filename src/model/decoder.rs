//! One decoder over token trees: RMS norm, rotary attention with grouped heads, gated feed-forward.

use std::time::Duration;

use rayon::{ThreadPool, ThreadPoolBuilder};

use super::attention::{Run, attend, tasks};
use super::clock::{Clock, Part};
use super::head::{self, RowScores};
use super::int8;
use super::kernels::{rms_norm, rotate, silu_gate};
use super::kv::{KvBlock, store};
use super::matmul::{Layout, MIN_ROWS, Operand, Output, Rows, Shape, Shared, multiply_parallel};
use super::weights::{Block, Projection, Weights};
use super::{DecoderConfig, Gguf, ModelError, TokenId, priority};
use crate::numerics::Numerics;

/// A run of a chunk before its K/V exist.
pub struct RunSpec {
    pub tokens: Vec<TokenId>,
    /// Position of the first token on its path.
    pub start: usize,
    /// K/V of the path before this run, root first. The last may be runs of the same chunk.
    pub ancestors: Vec<Ancestor>,
}

/// Where the K/V of a part of the path are.
#[derive(Clone, Copy)]
pub enum Ancestor {
    /// Index into the blocks of earlier chunks.
    Earlier(usize),
    /// Index of an earlier run of the same chunk.
    Same(usize),
}

/// Weights, shape and threads.
pub struct Decoder {
    config: DecoderConfig,
    weights: Weights,
    pool: ThreadPool,
    /// Time spent in [`Decoder::forward`] and [`Decoder::read`].
    clock: Clock,
}

impl Decoder {
    /// Dequantises the file's weights, to what `numerics` says; `threads` is at least one.
    pub fn load(gguf: &Gguf, numerics: Numerics, threads: usize) -> Result<Self, ModelError> {
        let config = DecoderConfig::from_gguf(gguf)?;
        let weights = Weights::load(gguf, &config, numerics)?;
        Self::new(config, weights, threads)
    }

    pub fn new(config: DecoderConfig, weights: Weights, threads: usize) -> Result<Self, ModelError> {
        let pool = ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|index| format!("forward-{index}"))
            .start_handler(|_| priority::lower())
            .build()
            .map_err(|error| ModelError::Unsupported(format!("cannot start {threads} threads: {error}")))?;
        Ok(Self { config, weights, pool, clock: Clock::default() })
    }

    pub fn config(&self) -> &DecoderConfig {
        &self.config
    }

    /// Weights of the backbone, a tied head counted once.
    pub fn parameters(&self) -> u64 {
        self.weights.parameters()
    }

    /// Time spent computing since the weights were loaded.
    pub fn busy(&self) -> Duration {
        self.spent(Part::Total)
    }

    /// Time spent on one part since the weights were loaded.
    pub fn spent(&self, part: Part) -> Duration {
        self.clock.spent(part)
    }

    /// Runs one chunk. Returns the states of the rows of `read` (ascending, counted over all runs) and the K/V block of
    /// each run. `earlier` holds the blocks that [`Ancestor::Earlier`] points at.
    pub fn forward(&self, runs: &[RunSpec], earlier: &[&KvBlock], read: &[usize]) -> (Hidden, Vec<KvBlock>) {
        self.clock.time(Part::Total, || self.run_layers(runs, earlier, read))
    }

    fn run_layers(&self, runs: &[RunSpec], earlier: &[&KvBlock], read: &[usize]) -> (Hidden, Vec<KvBlock>) {
        let rows = runs.iter().map(|run| run.tokens.len()).sum::<usize>();
        let mut chunk = Chunk::new(self, runs, rows);
        for (layer, block) in self.weights.blocks.iter().enumerate() {
            chunk.project_qkv(block);
            chunk.store_kv(layer);
            self.clock.time(Part::Attention, || chunk.attend(layer, earlier));
            let last = layer + 1 == self.weights.blocks.len();
            if last {
                chunk.keep_rows(read);
            }
            chunk.feed_forward(block);
        }
        let Chunk { residual, blocks, .. } = chunk;
        (Hidden { states: residual }, blocks)
    }

    /// Scores of the targets of each row of `hidden`, and its log-sum-exp, in order.
    pub fn read(&self, hidden: &Hidden, targets: &[Vec<TokenId>]) -> Vec<RowScores> {
        let score = || self.clock.time(Part::Head, || self.score_rows(hidden, targets));
        self.clock.time(Part::Total, score)
    }

    fn score_rows(&self, hidden: &Hidden, targets: &[Vec<TokenId>]) -> Vec<RowScores> {
        let DecoderConfig { hidden: width, norm_epsilon, .. } = self.config;
        let head = self.weights.head.as_ref().unwrap_or(&self.weights.embedding);
        // A last batch of one row is multiplied with the row behind it.
        let mut normed = vec![0.0; (targets.len() + 1) * width];
        let states = &hidden.states[..targets.len() * width];
        rms_norm(states, &self.weights.output_norm, norm_epsilon, &mut normed);
        head::score(&self.pool, head, width, &normed, targets)
    }
}

/// Hidden states before the final norm of the rows that are read, in order.
pub struct Hidden {
    states: Vec<f32>,
}

/// The state of one chunk while it passes the layers.
struct Chunk<'a> {
    decoder: &'a Decoder,
    runs: &'a [RunSpec],
    /// Real rows; buffers hold at least [`MIN_ROWS`].
    rows: usize,
    residual: Vec<f32>,
    normed: Vec<f32>,
    /// Query, key and value, then gate and up; a row more than the chunk holds.
    fused: Vec<f32>,
    /// `[row][head][head dim]`.
    attended: Vec<f32>,
    gated: Vec<f32>,
    /// Rounded rows on their way into an integer projection.
    rounded: Vec<int8::RowBlock>,
    /// `[row][half head dim]`.
    cos: Vec<f32>,
    sin: Vec<f32>,
    blocks: Vec<KvBlock>,
}

impl<'a> Chunk<'a> {
    fn new(decoder: &'a Decoder, runs: &'a [RunSpec], rows: usize) -> Self {
        let config = &decoder.config;
        let held = rows.max(MIN_ROWS);
        let mut residual = vec![0.0; held * config.hidden];
        let tokens = runs.iter().flat_map(|run| &run.tokens);
        for (row, token) in residual.chunks_exact_mut(config.hidden).zip(tokens) {
            row.copy_from_slice(&decoder.weights.embedding[*token as usize * config.hidden..][..config.hidden]);
        }
        let (cos, sin) = angles(config, runs);
        let query_width = config.heads * config.head_dim;
        Self {
            decoder,
            runs,
            rows,
            normed: vec![0.0; held * config.hidden],
            fused: vec![0.0; (held + 1) * config.qkv_columns().max(2 * config.feed_forward)],
            attended: vec![0.0; held * query_width],
            gated: vec![0.0; held * config.feed_forward],
            rounded: Vec::new(),
            residual,
            cos,
            sin,
            blocks: runs.iter().map(|run| KvBlock::new(config, run.tokens.len())).collect(),
        }
    }

    fn project_qkv(&mut self, block: &Block) {
        self.norm(&block.attention_norm);
        let config = &self.decoder.config;
        self.multiply(&block.qkv, |chunk| (&chunk.normed, &mut chunk.fused), config.qkv_columns(), false);
    }

    /// Rotates queries and keys in place and files keys and values.
    fn store_kv(&mut self, layer: usize) {
        use rayon::prelude::*;
        let config = &self.decoder.config;
        let (dim, columns, half) = (config.head_dim, config.qkv_columns(), config.head_dim / 2);
        let (query_width, key_width) = (config.heads * dim, config.kv_heads * dim);
        let scale = 1.0 / (dim as f32).sqrt();
        let (cos, sin) = (&self.cos, &self.sin);
        let fused = &mut self.fused[..self.rows * columns];
        let blocks = &mut self.blocks;
        self.decoder.pool.install(|| {
            let angles = cos.par_chunks_exact(half).zip(sin.par_chunks_exact(half));
            fused.par_chunks_exact_mut(columns).zip(angles).with_min_len(16).for_each(|(row, (cos, sin))| {
                rotate(&mut row[..query_width], cos, sin, scale);
                rotate(&mut row[query_width..query_width + key_width], cos, sin, 1.0);
            });
            let mut rest = &*fused;
            let mut tasks = Vec::with_capacity(blocks.len() * config.kv_heads);
            for block in blocks {
                let (rows, after) = rest.split_at(block.tokens() * columns);
                rest = after;
                let tokens = block.tokens();
                tasks.extend(block.heads_mut(layer).enumerate().map(|(head, kv)| (head, kv, tokens, rows)));
            }
            tasks.into_par_iter().for_each(|(head, (keys, values), tokens, rows)| {
                let at = query_width + head * dim;
                let rows = rows.chunks_exact(columns);
                store(keys, values, tokens, rows.map(|row| (&row[at..][..dim], &row[at + key_width..][..dim])));
            });
        });
    }

    fn attend(&mut self, layer: usize, earlier: &[&KvBlock]) {
        let config = &self.decoder.config;
        let (dim, width) = (config.head_dim, config.heads * config.head_dim);
        let mut first_row = 0;
        let runs: Vec<Run<'_>> = self
            .runs
            .iter()
            .zip(&self.blocks)
            .map(|(spec, own)| {
                let ancestors = spec.ancestors.iter().map(|ancestor| match ancestor {
                    Ancestor::Earlier(index) => earlier[*index],
                    Ancestor::Same(index) => &self.blocks[*index],
                });
                let run = Run::new(first_row, ancestors.chain(std::iter::once(own)));
                first_row += spec.tokens.len();
                run
            })
            .collect();
        let tasks = tasks(&runs, config);
        let queries = Rows { data: &self.fused, stride: config.qkv_columns() };
        let size = self.attended.len();
        let target = Shared::new(&mut self.attended);
        self.decoder.pool.install(|| {
            use rayon::prelude::*;
            tasks.par_iter().with_max_len(1).for_each(|task| {
                attend((config, layer), &runs, task, queries, |row, head, values| {
                    let at = row * width + head * dim;
                    assert!(at + dim <= size);
                    // SAFETY: inside the buffer, and no two tasks write the same (row, head).
                    unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), target.get().add(at), dim) }
                });
            });
        });
    }

    /// Drops all rows but `read` after the last layer's attention: only they are read.
    fn keep_rows(&mut self, read: &[usize]) {
        let config = &self.decoder.config;
        for (buffer, width) in
            [(&mut self.residual, config.hidden), (&mut self.attended, config.heads * config.head_dim)]
        {
            for (to, from) in read.iter().enumerate() {
                buffer.copy_within(from * width..(from + 1) * width, to * width);
            }
        }
        self.rows = read.len();
    }

    fn feed_forward(&mut self, block: &Block) {
        let config = &self.decoder.config;
        self.multiply(&block.attention_output, |chunk| (&chunk.attended, &mut chunk.residual), config.hidden, true);
        self.norm(&block.feed_forward_norm);
        self.multiply(&block.gate_up, |chunk| (&chunk.normed, &mut chunk.fused), 2 * config.feed_forward, false);
        let (rows, width) = (self.rows, config.feed_forward);
        let share = rows.div_ceil(self.decoder.pool.current_num_threads()).max(1);
        let (fused, gated) = (&self.fused[..rows * 2 * width], &mut self.gated[..rows * width]);
        self.decoder.pool.scope(|scope| {
            for (fused, gated) in fused.chunks(share * 2 * width).zip(gated.chunks_mut(share * width)) {
                scope.spawn(move |_| silu_gate(fused, width, gated));
            }
        });
        self.multiply(&block.down, |chunk| (&chunk.gated, &mut chunk.residual), config.hidden, true);
    }

    fn norm(&mut self, weight: &[f32]) {
        let config = &self.decoder.config;
        let size = self.rows * config.hidden;
        let share = self.rows.div_ceil(self.decoder.pool.current_num_threads()).max(1) * config.hidden;
        let (residual, normed) = (&self.residual[..size], &mut self.normed[..size]);
        self.decoder.pool.scope(|scope| {
            for (x, out) in residual.chunks(share).zip(normed.chunks_mut(share)) {
                scope.spawn(move |_| rms_norm(x, weight, config.norm_epsilon, out));
            }
        });
    }

    fn multiply(
        &mut self,
        projection: &Projection,
        buffers: impl FnOnce(&mut Self) -> (&Vec<f32>, &mut Vec<f32>),
        stride: usize,
        accumulate: bool,
    ) {
        let rows = self.rows;
        let decoder = self.decoder;
        let mut rounded = std::mem::take(&mut self.rounded);
        let (x, out) = buffers(self);
        let out = Output { data: out, stride, accumulate };
        decoder.clock.time(Part::Projections, || match projection {
            Projection::F32 { inputs, outputs, data } => multiply_parallel(
                &decoder.pool,
                Shape { rows: rows.max(MIN_ROWS), inner: *inputs, columns: *outputs },
                Rows { data: x, stride: *inputs },
                Operand { data, layout: Layout::ByInput { stride: *outputs } },
                out,
            ),
            Projection::Int8(packed) => {
                let x = Rows { data: x, stride: packed.inputs() };
                int8::multiply(&decoder.pool, packed, (rows, x), &mut rounded, out);
            }
        });
        self.rounded = rounded;
    }
}

/// Cosines and sines of every row's rotary angles.
fn angles(config: &DecoderConfig, runs: &[RunSpec]) -> (Vec<f32>, Vec<f32>) {
    let half = config.head_dim / 2;
    let frequencies: Vec<f64> =
        (0..half).map(|i| f64::from(config.rope_theta).powf(-2.0 * i as f64 / config.head_dim as f64)).collect();
    let positions = runs.iter().flat_map(|run| (0..run.tokens.len()).map(|offset| (run.start + offset) as f64));
    positions
        .flat_map(|position| frequencies.iter().map(move |frequency| (position * frequency).sin_cos()))
        .map(|(sin, cos)| (cos as f32, sin as f32))
        .unzip()
}
