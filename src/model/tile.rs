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
pub const TILE: usize = 128;

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
    // A plain loop: closures inside the standard library lose the widest instructions.
    let mut tile = [(0.0, 0.0); R];
    for (row, tile) in tile.iter_mut().enumerate() {
        *tile = exponentials(&mut scores[row * STRIDE..][..TILE], seen[row]);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Group of two query heads, ten dimensions: neither whole blocks of rows nor whole vectors.
    const DIM: usize = 10;
    const WIDTH: usize = 16;

    fn wave(count: usize, seed: f32) -> Vec<f32> {
        (0..count).map(|at| (at as f32 * seed).sin() * 2.0).collect()
    }

    /// Keys and values of 150 positions; `cuts` says where one block of memory ends and the next begins.
    struct Path {
        keys: Vec<f32>,
        values: Vec<f32>,
        /// First position, padded length, transposed keys, values.
        blocks: Vec<(usize, usize, Vec<f32>, Vec<f32>)>,
    }

    impl Path {
        fn new(cuts: &[usize]) -> Self {
            let (keys, mut values) = (wave(150 * DIM, 0.37), wave(150 * WIDTH, 0.73));
            // What no query of the test sees.
            values[140 * WIDTH..].fill(f32::NAN);
            let mut blocks = Vec::new();
            let mut start = 0;
            for end in cuts.iter().copied().chain([150]) {
                let padded = (end - start).next_multiple_of(LANES);
                let mut transposed = vec![0.0; DIM * padded + LANES];
                for position in start..end {
                    for dim in 0..DIM {
                        transposed[dim * padded + position - start] = keys[position * DIM + dim];
                    }
                }
                blocks.push((start, padded, transposed, values[start * WIDTH..end * WIDTH].to_vec()));
                start = end;
            }
            Self { keys, values, blocks }
        }

        fn parts(&self, start: usize) -> Vec<Part<'_>> {
            let mut parts = Vec::new();
            for (first, padded, keys, values) in &self.blocks {
                let (from, to) = (start.max(*first), (start + TILE).min(first + values.len() / WIDTH));
                if from < to {
                    let skip = from - first;
                    let (keys, values) = ((&keys[skip..], *padded), &values[skip * WIDTH..]);
                    parts.push(Part { at: from - start, len: to - from, keys, values });
                }
            }
            parts
        }

        /// Two heads of each token whose position is in `tokens`, all together.
        fn attend(&self, tokens: std::ops::Range<usize>) -> Vec<Vec<f32>> {
            let mut rows = Rows::default();
            rows.clear(DIM);
            let queries = wave(150 * 2 * DIM, 0.11);
            rows.queries.extend(&queries[tokens.start * 2 * DIM..tokens.end * 2 * DIM]);
            rows.visible.extend(tokens.clone().flat_map(|token| [token + 1; 2]));
            rows.prepare();
            for start in (0..tokens.end).step_by(TILE) {
                let first = start.saturating_sub(tokens.start) * 2;
                attend_tile(&mut rows, first..tokens.len() * 2, start, &self.parts(start));
            }
            (0..tokens.len() * 2).map(|row| rows.finish(row).to_vec()).collect()
        }
    }

    #[test]
    fn attention_is_the_weighted_mean_of_the_values_that_a_query_sees() {
        let path = Path::new(&[]);
        let queries = wave(150 * 2 * DIM, 0.11);
        for (row, ours) in path.attend(0..140).iter().enumerate() {
            let seen = row / 2 + 1;
            let score = |position: usize| -> f64 {
                let key = &path.keys[position * DIM..][..DIM];
                queries[row * DIM..].iter().zip(key).map(|(q, k)| f64::from(*q) * f64::from(*k)).sum()
            };
            let weights: Vec<f64> = (0..seen).map(|position| score(position).exp()).collect();
            let total: f64 = weights.iter().sum();
            for (dim, ours) in ours.iter().enumerate() {
                let values = (0..seen).map(|position| f64::from(path.values[position * WIDTH + dim]));
                let mean = weights.iter().zip(values).map(|(weight, value)| weight * value).sum::<f64>() / total;
                assert!((f64::from(*ours) - mean).abs() < 1e-5, "row {row}: {ours} instead of {mean}");
            }
        }
    }

    #[test]
    fn the_bits_depend_on_neither_the_cuts_of_the_path_nor_the_other_queries() {
        let bits = |rows: Vec<Vec<f32>>| -> Vec<Vec<u32>> {
            rows.iter().map(|row| row.iter().map(|value| value.to_bits()).collect()).collect()
        };
        let expected = bits(Path::new(&[]).attend(0..140));
        let every: Vec<usize> = (1..150).collect();
        for cuts in [&[128][..], &[1, 63, 64, 127, 128, 129], &[17, 100], &[60, 61, 62, 63], &every] {
            let path = Path::new(cuts);
            for tokens in [0..140, 0..1, 3..4, 62..67, 127..128, 128..129, 126..131, 120..140, 139..140] {
                let answer = bits(path.attend(tokens.clone()));
                assert!(answer == expected[tokens.start * 2..tokens.end * 2], "{cuts:?}, tokens {tokens:?}");
            }
        }
    }
}
