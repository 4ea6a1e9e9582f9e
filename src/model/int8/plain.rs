//! The product in plain Rust: what the other paths must equal, and what runs where they cannot.

use super::path::Tile;
use super::weights::WeightBlock;
use super::{COLUMNS, RowBlock};

/// See [`super::path::Path::run`].
pub(super) fn tile(weights: &[WeightBlock], rows: &[RowBlock], out: &mut Tile) {
    for (row, out) in rows.chunks_exact(weights.len()).zip(out) {
        *out = [0.0; COLUMNS];
        for (w, x) in weights.iter().zip(row) {
            let mut sums = [0i32; COLUMNS];
            for (w, x) in w.values.iter().zip(x.values.chunks_exact(2)) {
                let (a, b) = (i32::from(x[0]), i32::from(x[1]));
                for (sum, w) in sums.iter_mut().zip(w) {
                    *sum += a * i32::from(w[0]) + b * i32::from(w[1]);
                }
            }
            for ((out, sum), (scale, offset)) in out.iter_mut().zip(sums).zip(w.scales.iter().zip(&w.offsets)) {
                *out = offset.mul_add(x.sum, *out);
                *out = (sum as f32).mul_add(scale * x.scale, *out);
            }
        }
    }
}
