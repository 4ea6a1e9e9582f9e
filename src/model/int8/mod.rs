//! Integer projections: weights in 8 bits, activations in 16, one scale a block of [`BLOCK`] inputs on either side.
//!
//! Contract (architecture decision 4): an element is a chain over the blocks, in order, of two fused multiply-adds a
//! block; what enters it from a block is an exact integer sum. So its bits depend on its row and its column alone:
//! neither on other rows, threads and tiles nor on the instructions, which are chosen at run time ([`Path`]).
//!
//! Why 16 bits for activations: rounding them to 8 moves S by 0.02 on average, to 16 by 0.0001 (docs/int8.md).

mod path;
mod plain;
mod rows;
#[cfg(test)]
mod tests;
mod weights;
#[cfg(target_arch = "x86_64")]
mod x86;

use rayon::ThreadPool;
use rayon::prelude::*;

use super::matmul::{Output, Rows, Shared};
use path::{Path, ROWS, Tile};
pub use rows::RowBlock;
use rows::quantise;
pub use weights::Packed;

/// Inputs that share a scale. The blocks of ggml's 4 and 8-bit types hold 32 as well, so that their values lie on our
/// grid.
const BLOCK: usize = 32;

/// Outputs that are packed together.
const COLUMNS: usize = 32;

/// `out = x * w` for `rows` rows, the columns split over the pool. `scratch` holds the rounded rows; its content does
/// not matter.
pub fn multiply(
    pool: &ThreadPool,
    w: &Packed,
    (rows, x): (usize, Rows<'_>),
    scratch: &mut Vec<RowBlock>,
    out: Output<'_>,
) {
    multiply_by(Path::best(), pool, w, (rows, x), scratch, out);
}

fn multiply_by(
    path: Path,
    pool: &ThreadPool,
    w: &Packed,
    (rows, x): (usize, Rows<'_>),
    scratch: &mut Vec<RowBlock>,
    out: Output<'_>,
) {
    if rows == 0 {
        return;
    }
    let end = |stride: usize, width: usize| (rows - 1) * stride + width;
    assert!(x.stride >= w.inputs() && end(x.stride, w.inputs()) <= x.data.len(), "left operand is too short");
    assert!(out.stride >= w.outputs() && end(out.stride, w.outputs()) <= out.data.len(), "output is too short");
    let blocks = w.blocks();
    scratch.resize(scratch.len().max(rows * blocks), RowBlock::default());
    let quantised = &mut scratch[..rows * blocks];
    let (stride, accumulate) = (out.stride, out.accumulate);
    let target = Shared::new(out.data);
    pool.install(|| {
        quantised.par_chunks_exact_mut(blocks).enumerate().with_min_len(8).for_each(|(row, blocks)| {
            quantise(&x.data[row * x.stride..][..w.inputs()], blocks);
        });
        let quantised = &*quantised;
        w.panels().enumerate().for_each(|(panel, weights)| {
            let first = panel * COLUMNS;
            let width = COLUMNS.min(w.outputs() - first);
            let mut sums: Tile = [[0.0; COLUMNS]; ROWS];
            for (index, tile) in quantised.chunks(ROWS * blocks).enumerate() {
                path.run(weights, tile, &mut sums);
                for (row, sums) in sums[..tile.len() / blocks].iter().enumerate() {
                    let at = (index * ROWS + row) * stride + first;
                    // SAFETY: the row and the column exist, so that the asserted length covers them; panels and rows
                    // do not overlap, and nothing else touches `out` while it is borrowed.
                    let out = unsafe { std::slice::from_raw_parts_mut(target.get().add(at), width) };
                    match out.first_chunk_mut::<COLUMNS>() {
                        Some(whole) => put(whole, sums, accumulate),
                        None => put(out, sums, accumulate),
                    }
                }
            }
        });
    });
}

/// Writes or adds the results of one row. Inlined, so that a whole panel is a few moves and no call.
#[inline(always)]
fn put(out: &mut [f32], sums: &[f32; COLUMNS], accumulate: bool) {
    for (out, sum) in out.iter_mut().zip(sums) {
        *out = if accumulate { *out + sum } else { *sum };
    }
}
