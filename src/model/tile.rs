//! The kernel of attention: queries against one tile of absolute positions.
//!
//! Level one reduces a tile: the largest score, the sum of the exponentials and the values weighted by them. Level two
//! merges tile after tile in the order of positions. Each number is one chain of operations that depends on the query
//! and on its path alone: columns and rows are computed side by side, but never summed across, and no query reads the
//! values of a position that it does not see, so that a later value which is not finite stays where it is.

// `with_simd` builds a struct from each signature and needs its lifetimes named.
#![allow(clippy::needless_lifetimes)]

use pulp::{Arch, Simd, with_simd};

use super::kernels::{LANES, exp, fold};

/// Positions of a tile. Tiles lie at fixed absolute positions: tile `i` begins at `i * TILE`.
pub const TILE: usize = 64;

/// Rows that share each load of a key or value; with four vectors of columns they fill the registers of AVX-512.
const ROWS: usize = 6;

/// Distance of two rows of scores: a part's last vector of scores may hang over the tile.
const STRIDE: usize = TILE + LANES;

/// Consecutive positions of a tile that lie side by side in memory.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    /// Offset of the first position in the tile.
    pub at: usize,
    pub len: usize,
    /// Transposed keys from the first position on, and the distance of two dimensions.
    pub keys: (&'a [f32], usize),
    /// Values from the first position on, `[position][value width]`.
    pub values: &'a [f32],
}

impl Part<'_> {
    /// Whether both are the same memory, not merely the same numbers.
    pub fn is(&self, other: &Self) -> bool {
        (self.at, self.len) == (other.at, other.len) && std::ptr::eq(self.keys.0.as_ptr(), other.keys.0.as_ptr())
    }
}

/// Queries and what they have seen so far. A row is one query head of one token.
#[derive(Default)]
pub struct Rows {
    /// `[row][head dim]`, rotated and scaled.
    pub queries: Vec<f32>,
    /// Positions that a row sees: its own and all before it. Ascends within a run.
    pub visible: Vec<usize>,
    pub head_dim: usize,
    /// Head dimension in whole lanes.
    pub width: usize,
    /// Largest score and sum of exponentials.
    peaks: Vec<(f32, f32)>,
    /// `[row][width]`: the weighted values, to be divided by the sum.
    sums: Vec<f32>,
    /// Scores and weighted values of one block of rows in one tile.
    scores: Vec<f32>,
    partial: Vec<f32>,
}

impl Rows {
    /// Forgets all rows; keeps the memory.
    pub fn clear(&mut self, head_dim: usize) {
        self.head_dim = head_dim;
        self.width = head_dim.next_multiple_of(LANES);
        self.queries.clear();
        self.visible.clear();
    }

    /// Makes room for the results of all rows.
    pub fn prepare(&mut self) {
        let rows = self.visible.len();
        self.peaks.clear();
        self.peaks.resize(rows, (f32::NEG_INFINITY, 0.0));
        self.sums.clear();
        self.sums.resize(rows * self.width, 0.0);
        self.scores.resize(ROWS * STRIDE, 0.0);
        self.partial.resize(ROWS * self.width, 0.0);
    }

    /// The result of a row, which must not be finished before.
    pub fn finish(&mut self, row: usize) -> &[f32] {
        let scale = 1.0 / self.peaks[row].1;
        let sums = &mut self.sums[row * self.width..][..self.head_dim];
        sums.iter_mut().for_each(|sum| *sum *= scale);
        sums
    }
}

/// Lets the rows `range` (which all see at least the first position of the tile at `start`) attend a tile. `parts`
/// begin at the tile's first position and leave no gap up to the last position that a row sees.
#[with_simd(attend_tile = Arch::new())]
#[inline(always)]
pub fn attend_tile_with<'a, 'b, S: Simd>(
    simd: S,
    rows: &'a mut Rows,
    range: std::ops::Range<usize>,
    start: usize,
    parts: &'a [Part<'b>],
) {
    let mut row = range.start;
    while row < range.end {
        row += match range.end - row {
            ROWS.. => attend_block::<S, ROWS>(simd, rows, row, start, parts),
            3.. => attend_block::<S, 3>(simd, rows, row, start, parts),
            _ => attend_block::<S, 1>(simd, rows, row, start, parts),
        }
    }
}

/// Attends `R` rows from `first` on; returns `R`.
#[inline(always)]
fn attend_block<S: Simd, const R: usize>(
    simd: S,
    rows: &mut Rows,
    first: usize,
    start: usize,
    parts: &[Part<'_>],
) -> usize {
    let Rows { queries, visible, head_dim, width, peaks, sums, scores, partial } = rows;
    let (dim, width) = (*head_dim, *width);
    let seen: [usize; R] = std::array::from_fn(|row| (visible[first + row] - start).min(TILE));
    let (all, most) = seen.iter().fold((TILE, 0), |(all, most), seen| (all.min(*seen), most.max(*seen)));
    let queries: [&[f32]; R] = std::array::from_fn(|row| &queries[(first + row) * dim..][..dim]);
    for part in parts.iter().take_while(|part| part.at < most) {
        let columns = part.len.min(most - part.at).next_multiple_of(LANES);
        product(simd, queries, part.keys, columns, (&mut scores[part.at..], STRIDE), false);
    }
    let tile: [(f32, f32); R] = std::array::from_fn(|row| exponentials(&mut scores[row * STRIDE..][..TILE], seen[row]));
    for part in parts.iter().take_while(|part| part.at < most) {
        let shared = part.len.min(all.saturating_sub(part.at));
        if shared > 0 {
            let weights: [&[f32]; R] = std::array::from_fn(|row| &scores[row * STRIDE + part.at..][..shared]);
            product(simd, weights, (part.values, width), width, (partial, width), part.at > 0);
        }
        for (row, seen) in seen.iter().enumerate() {
            let own = part.len.min(seen.saturating_sub(part.at));
            if own > shared {
                let weights = [&scores[row * STRIDE + part.at..][shared..own]];
                let values = &part.values[shared * width..];
                product(simd, weights, (values, width), width, (&mut partial[row * width..], width), true);
            }
        }
    }
    for (row, tile) in tile.iter().enumerate() {
        let sums = &mut sums[(first + row) * width..][..width];
        merge(&mut peaks[first + row], sums, *tile, &partial[row * width..][..width], start == 0);
    }
    R
}

/// Replaces the scores that are seen by `exp(score - largest)` and the rest by zero; returns the largest and the sum.
#[inline(always)]
fn exponentials(scores: &mut [f32], seen: usize) -> (f32, f32) {
    scores[seen..].fill(f32::NEG_INFINITY);
    let mut lanes = [f32::NEG_INFINITY; LANES];
    for chunk in scores.chunks_exact(LANES) {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane = if *value > *lane { *value } else { *lane };
        }
    }
    let max = fold(lanes, |a, b| if b > a { b } else { a });
    let mut sums = [0f32; LANES];
    for chunk in scores.chunks_exact_mut(LANES) {
        for (sum, value) in sums.iter_mut().zip(chunk) {
            let e = exp(*value - max);
            *value = e;
            *sum += e;
        }
    }
    (max, fold(sums, |a, b| a + b))
}

/// Joins a tile to the tiles before it.
#[inline(always)]
fn merge(seen: &mut (f32, f32), sums: &mut [f32], tile: (f32, f32), partial: &[f32], is_first: bool) {
    if is_first {
        *seen = tile;
        sums.copy_from_slice(partial);
        return;
    }
    let max = if tile.0 > seen.0 { tile.0 } else { seen.0 };
    let (old, new) = (exp(seen.0 - max), exp(tile.0 - max));
    *seen = (max, seen.1.mul_add(old, tile.1 * new));
    for (sum, partial) in sums.iter_mut().zip(partial) {
        *sum = sum.mul_add(old, partial * new);
    }
}

/// `out[row][..columns] = x[row] * w`, added to what is there if `accumulate`: one chain of fused multiply-adds an
/// element, in the order of `x`. `w` is row-major with its stride; `columns` are whole lanes.
#[inline(always)]
fn product<S: Simd, const R: usize>(
    simd: S,
    x: [&[f32]; R],
    (w, stride): (&[f32], usize),
    columns: usize,
    (out, out_stride): (&mut [f32], usize),
    accumulate: bool,
) {
    let mut column = 0;
    if S::F32_LANES == LANES {
        while column + 4 * S::F32_LANES <= columns {
            strip::<S, R, 4>(simd, x, (&w[column..], stride), (&mut out[column..], out_stride), accumulate);
            column += 4 * S::F32_LANES;
        }
    }
    while column + 2 * S::F32_LANES <= columns {
        strip::<S, R, 2>(simd, x, (&w[column..], stride), (&mut out[column..], out_stride), accumulate);
        column += 2 * S::F32_LANES;
    }
    while column < columns {
        strip::<S, R, 1>(simd, x, (&w[column..], stride), (&mut out[column..], out_stride), accumulate);
        column += S::F32_LANES;
    }
}

/// `V` vectors of columns of a product, held in registers.
#[inline(always)]
fn strip<S: Simd, const R: usize, const V: usize>(
    simd: S,
    x: [&[f32]; R],
    (w, stride): (&[f32], usize),
    (out, out_stride): (&mut [f32], usize),
    accumulate: bool,
) {
    let size = V * S::F32_LANES;
    let inner = x[0].len();
    let x = x.map(|row| &row[..inner]);
    let mut sums = [[simd.splat_f32s(0.0); V]; R];
    if accumulate {
        for (row, sums) in sums.iter_mut().enumerate() {
            sums.copy_from_slice(S::as_simd_f32s(&out[row * out_stride..][..size]).0);
        }
    }
    for k in 0..inner {
        let w = &S::as_simd_f32s(&w[k * stride..][..size]).0[..V];
        for (x, sums) in x.iter().zip(&mut sums) {
            let x = simd.splat_f32s(x[k]);
            for (sum, w) in sums.iter_mut().zip(w) {
                *sum = simd.mul_add_f32s(x, *w, *sum);
            }
        }
    }
    for (row, sums) in sums.iter().enumerate() {
        S::as_mut_simd_f32s(&mut out[row * out_stride..][..size]).0.copy_from_slice(sums);
    }
}
