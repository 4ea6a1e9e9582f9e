//! f32 matrix products on a fixed thread pool, by the `gemm` crate.
//!
//! Contract (architecture decision 4): every element is one chain of fused multiply-adds in the order of `k`, cut at
//! places that depend on `k` alone. Its bits therefore depend on neither the number of rows nor the threads nor the
//! column split, as long as no product takes one of gemm's paths for small shapes (single rows or columns, at most
//! 16 x 16 results of two rows-contiguous operands, at most 64 x 64 results with a long `k`). `check` refuses those.

use gemm::Parallelism;
use rayon::ThreadPool;

/// The fewest rows that take gemm's blocked path.
pub const MIN_ROWS: usize = 2;

/// Columns of one vector of the widest kernel; column splits are multiples of it.
const LANES: usize = 16;

/// The fewest columns that one thread takes: with [`MIN_ROWS`] rows, more results than gemm's path for 16 x 16 takes.
pub const MIN_SHARE: usize = 144;

/// The longest inner dimension that gemm never cuts.
pub const UNCUT: usize = 512;

/// A `[k, n]` matrix to multiply with, in one of two layouts.
#[derive(Clone, Copy)]
pub enum Layout {
    /// Element (k, n) at `k * stride + n`: the fast layout, nothing is packed.
    ByInput { stride: usize },
    /// Element (k, n) at `n * stride + k`: an embedding table used as a head.
    ByOutput { stride: usize },
}

/// One right-hand side.
#[derive(Clone, Copy)]
pub struct Operand<'a> {
    pub data: &'a [f32],
    pub layout: Layout,
}

/// Sizes of one product: `[rows, inner] x [inner, columns]`.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub rows: usize,
    pub inner: usize,
    pub columns: usize,
}

/// A row-major destination whose rows are `stride` apart.
pub struct Output<'a> {
    pub data: &'a mut [f32],
    pub stride: usize,
    /// Adds to what is there instead of overwriting it.
    pub accumulate: bool,
}

/// A row-major left-hand side whose rows are `stride` apart.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    pub data: &'a [f32],
    pub stride: usize,
}

/// `out = x * w` on the calling thread.
pub fn multiply(shape: Shape, x: Rows<'_>, w: Operand<'_>, out: Output<'_>) {
    check(shape, x, w, &out);
    // SAFETY: `check` proved that every element of the three matrices lies inside its slice, and `out` is exclusive.
    unsafe { columns(shape, x, w, out.data.as_mut_ptr(), &out, 0..shape.columns) }
}

/// `out = x * w` with the columns split over the pool.
pub fn multiply_parallel(pool: &ThreadPool, shape: Shape, x: Rows<'_>, w: Operand<'_>, out: Output<'_>) {
    check(shape, x, w, &out);
    let shares = (shape.columns / MIN_SHARE).clamp(1, pool.current_num_threads());
    let border = |share: usize| {
        if share == shares { shape.columns } else { shape.columns / LANES * share / shares * LANES }
    };
    let target = Shared::new(out.data);
    pool.scope(|scope| {
        for share in 0..shares {
            let (out, target) = (&out, target);
            scope.spawn(move |_| {
                let range = border(share)..border(share + 1);
                // SAFETY: as in `multiply`; the column ranges of the tasks are disjoint, so no element is written twice.
                unsafe { columns(shape, x, w, target.get(), out, range) }
            });
        }
    });
}

/// A pointer that tasks share to write disjoint elements of one buffer.
#[derive(Clone, Copy)]
pub(super) struct Shared(*mut f32);

impl Shared {
    pub(super) fn new(buffer: &mut [f32]) -> Self {
        Self(buffer.as_mut_ptr())
    }

    pub(super) fn get(self) -> *mut f32 {
        self.0
    }
}

// SAFETY: the pointer is only used for disjoint elements, by tasks that end before the borrow it came from.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

fn check(shape: Shape, x: Rows<'_>, w: Operand<'_>, out: &Output<'_>) {
    let Shape { rows, inner, columns } = shape;
    let end = |count: usize, stride: usize, width: usize| (count - 1) * stride + width;
    let blocked = rows >= MIN_ROWS && inner > 2 && columns > 1 && (columns > 64 || inner <= UNCUT);
    assert!(blocked, "shape {shape:?} would take another path of gemm");
    assert!(x.stride >= inner && end(rows, x.stride, inner) <= x.data.len(), "left operand is too short");
    assert!(out.stride >= columns && end(rows, out.stride, columns) <= out.data.len(), "output is too short");
    let fits = match w.layout {
        Layout::ByInput { stride } => stride >= columns && end(inner, stride, columns) <= w.data.len(),
        Layout::ByOutput { stride } => {
            columns >= MIN_SHARE && stride >= inner && end(columns, stride, inner) <= w.data.len()
        }
    };
    assert!(fits, "right operand is too short");
}

/// Computes some columns.
///
/// # Safety
/// `shape`, the strides and the column range must lie inside the buffers, and no one else may touch those columns.
unsafe fn columns(
    shape: Shape,
    x: Rows<'_>,
    w: Operand<'_>,
    target: *mut f32,
    out: &Output<'_>,
    range: std::ops::Range<usize>,
) {
    let (first, (column_step, row_step)) = match w.layout {
        Layout::ByInput { stride } => (range.start, (stride as isize, 1)),
        Layout::ByOutput { stride } => (range.start * stride, (1, stride as isize)),
    };
    // The transposed product (columns x rows) is column-major in memory, which is the layout gemm writes fastest.
    // SAFETY: the caller's contract.
    unsafe {
        gemm::gemm(
            range.len(),
            shape.rows,
            shape.inner,
            target.add(range.start),
            out.stride as isize,
            1,
            out.accumulate,
            w.data.as_ptr().add(first),
            column_step,
            row_step,
            x.data.as_ptr(),
            x.stride as isize,
            1,
            1.0f32,
            1.0f32,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn values(count: usize, seed: u32) -> Vec<f32> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        (0..count).map(|_| next()).collect()
    }

    fn product(pool: &ThreadPool, x: &[f32], rows: usize, inner: usize, w: Operand<'_>, columns: usize) -> Vec<f32> {
        let mut out = vec![0.0; rows * columns];
        let output = Output { data: &mut out, stride: columns, accumulate: false };
        multiply_parallel(pool, Shape { rows, inner, columns }, Rows { data: x, stride: inner }, w, output);
        out
    }

    fn pool(threads: usize) -> ThreadPool {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
    }

    #[test]
    fn a_product_is_the_sum_of_products() {
        let (rows, inner, columns) = (5, 48, 160);
        let (x, w) = (values(rows * inner, 1), values(inner * columns, 2));
        let by_output: Vec<f32> =
            (0..columns).flat_map(|n| (0..inner).map(move |k| (k, n))).map(|(k, n)| w[k * columns + n]).collect();
        let a = product(
            &pool(2),
            &x,
            rows,
            inner,
            Operand { data: &w, layout: Layout::ByInput { stride: columns } },
            columns,
        );
        let b = product(
            &pool(2),
            &x,
            rows,
            inner,
            Operand { data: &by_output, layout: Layout::ByOutput { stride: inner } },
            columns,
        );
        for row in 0..rows {
            for column in 0..columns {
                let exact: f64 =
                    (0..inner).map(|k| f64::from(x[row * inner + k]) * f64::from(w[k * columns + column])).sum();
                assert!((f64::from(a[row * columns + column]) - exact).abs() < 1e-5);
                assert!((f64::from(b[row * columns + column]) - exact).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn the_bits_of_a_row_depend_on_neither_its_neighbours_nor_the_threads() {
        let pools = [pool(1), pool(2), pool(3), pool(7)];
        for (inner, columns) in [(576, 960), (576, 576), (576, 3072), (1536, 576), (64, 512), (2048, 192)] {
            let (x, w) = (values(300 * inner, 3), values(inner * columns, 4));
            for layout in [Layout::ByInput { stride: columns }, Layout::ByOutput { stride: inner }] {
                let w = Operand { data: &w, layout };
                let whole = product(&pools[0], &x, 300, inner, w, columns);
                for (pool, rows) in pools.iter().zip([2usize, 3, 17, 64]).chain(pools.iter().zip([65, 129, 299, 300])) {
                    for first in [0, 300 - rows] {
                        let part = product(pool, &x[first * inner..], rows, inner, w, columns);
                        let same = part.iter().zip(&whole[first * columns..]).all(|(a, b)| a.to_bits() == b.to_bits());
                        assert!(same, "{rows} rows of {inner} x {columns} differ");
                    }
                }
            }
        }
    }
}
