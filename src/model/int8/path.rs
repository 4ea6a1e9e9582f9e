//! Which instructions multiply; all give the same bits.

use std::sync::LazyLock;

use super::weights::WeightBlock;
use super::{COLUMNS, RowBlock, plain};

/// Rows that are multiplied together at most: their sums fit into the registers of AVX-512.
pub(super) const ROWS: usize = 6;

/// Results of up to [`ROWS`] rows.
pub(super) type Tile = [[f32; COLUMNS]; ROWS];

/// A set of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni,
}

impl Path {
    /// The sets that this machine has, the best last.
    pub fn available() -> Vec<Self> {
        let mut paths = vec![Self::Plain];
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            if has!("avx2") && has!("fma") {
                paths.push(Self::Avx2);
            }
            if has!("avx512f") && has!("avx512bw") && has!("avx512vnni") {
                paths.push(Self::Avx512Vnni);
            }
        }
        paths
    }

    /// The best of this machine, found once.
    pub fn best() -> Self {
        static BEST: LazyLock<Path> = LazyLock::new(|| Path::available().last().copied().unwrap_or(Path::Plain));
        *BEST
    }

    /// Multiplies `weights`, the blocks of one panel, with one to [`ROWS`] rows of as many blocks each. Rows of `out`
    /// that have no counterpart stay as they are.
    pub fn run(self, weights: &[WeightBlock], rows: &[RowBlock], out: &mut Tile) {
        let count = rows.len() / weights.len();
        assert!((1..=ROWS).contains(&count) && count * weights.len() == rows.len(), "rows do not fit the weights");
        match self {
            Self::Plain => plain::tile(weights, rows, out),
            // SAFETY: only `available` makes these values, where the machine has the instructions; the lengths are
            // asserted above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe {
                match count {
                    1 => super::x86::avx2::<1>(weights, rows, out),
                    2 => super::x86::avx2::<2>(weights, rows, out),
                    3 => super::x86::avx2::<3>(weights, rows, out),
                    4 => super::x86::avx2::<4>(weights, rows, out),
                    5 => super::x86::avx2::<5>(weights, rows, out),
                    _ => super::x86::avx2::<ROWS>(weights, rows, out),
                }
            },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => unsafe {
                match count {
                    1 => super::x86::avx512_vnni::<1>(weights, rows, out),
                    2 => super::x86::avx512_vnni::<2>(weights, rows, out),
                    3 => super::x86::avx512_vnni::<3>(weights, rows, out),
                    4 => super::x86::avx512_vnni::<4>(weights, rows, out),
                    5 => super::x86::avx512_vnni::<5>(weights, rows, out),
                    _ => super::x86::avx512_vnni::<ROWS>(weights, rows, out),
                }
            },
        }
    }
}
