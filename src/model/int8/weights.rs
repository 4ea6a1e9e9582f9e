//! Weights, rounded to 8 bits in blocks and packed as the kernels read them.

use rayon::prelude::*;

use super::{BLOCK, COLUMNS};

/// Steps of two inputs in a block.
pub(super) const PAIRS: usize = BLOCK / 2;

/// One block of inputs of [`COLUMNS`] outputs: `weight = scale * integer + offset`.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct WeightBlock {
    /// Two inputs of every output, then the next two.
    pub values: [[[u8; 2]; COLUMNS]; PAIRS],
    pub scales: [f32; COLUMNS],
    pub offsets: [f32; COLUMNS],
}

const EMPTY: WeightBlock =
    WeightBlock { values: [[[0; 2]; COLUMNS]; PAIRS], scales: [0.0; COLUMNS], offsets: [0.0; COLUMNS] };

/// A projection in 8 bits. Padding, of outputs and of inputs, is zero.
pub struct Packed {
    inputs: usize,
    outputs: usize,
    /// `[panel][block]`.
    panels: Vec<WeightBlock>,
}

impl Packed {
    /// Rounds finite weights, `[outputs, inputs]`.
    pub fn new(inputs: usize, weights: &[f32]) -> Self {
        let outputs = weights.len() / inputs;
        let blocks = inputs.div_ceil(BLOCK);
        let mut panels = vec![EMPTY; outputs.div_ceil(COLUMNS) * blocks];
        for (panel, rows) in panels.chunks_exact_mut(blocks).zip(weights.chunks(COLUMNS * inputs)) {
            for (column, row) in rows.chunks_exact(inputs).enumerate() {
                for (block, weights) in panel.iter_mut().zip(row.chunks(BLOCK)) {
                    block.set(column, weights);
                }
            }
        }
        Self { inputs, outputs, panels }
    }

    pub fn inputs(&self) -> usize {
        self.inputs
    }

    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Blocks of one row.
    pub(super) fn blocks(&self) -> usize {
        self.inputs.div_ceil(BLOCK)
    }

    /// The blocks of each [`COLUMNS`] outputs.
    pub(super) fn panels(&self) -> impl IndexedParallelIterator<Item = &[WeightBlock]> {
        self.panels.par_chunks_exact(self.blocks())
    }
}

impl WeightBlock {
    fn set(&mut self, column: usize, weights: &[f32]) {
        let grid = Grid::of(weights);
        self.scales[column] = grid.scale as f32;
        self.offsets[column] = grid.offset as f32;
        for (at, weight) in weights.iter().enumerate() {
            self.values[at / 2][column][at % 2] = grid.nearest(f64::from(*weight));
        }
    }
}

/// 256 evenly spaced values, from `offset` up.
#[derive(Clone, Copy)]
struct Grid {
    scale: f64,
    offset: f64,
}

impl Grid {
    /// The better of two grids: one that spans the weights, on which the values of Q4_1 lie (its ends are taken, its 15
    /// steps are 17 of ours each), and one with zero in its middle, on which those of Q8_0 do.
    fn of(weights: &[f32]) -> Self {
        let fold = |join: fn(f32, f32) -> f32| f64::from(weights.iter().copied().reduce(join).unwrap_or(0.0));
        let (low, high) = (fold(f32::min), fold(f32::max));
        let spanning = Self { scale: (high - low) / 255.0, offset: low };
        let step = high.max(-low) / 127.0;
        let centred = Self { scale: step, offset: -128.0 * step };
        if centred.error(weights) < spanning.error(weights) { centred } else { spanning }
    }

    /// The nearest value's index.
    fn nearest(self, weight: f64) -> u8 {
        // The cast cuts towards zero and stops at the ends; a grid without width is 0/0 here, which becomes 0.
        ((weight - self.offset) / self.scale + 0.5) as u8
    }

    /// Sum of squares.
    fn error(self, weights: &[f32]) -> f64 {
        let errors = weights.iter().map(|weight| {
            let weight = f64::from(*weight);
            f64::from(self.nearest(weight)) * self.scale + self.offset - weight
        });
        errors.map(|error| error * error).sum()
    }
}
