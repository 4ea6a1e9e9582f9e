//! The product with AVX2 and with AVX-512 VNNI.
//!
//! Weights are widened to 16 bits when they are loaded, so that no sum of two products can saturate, whatever the
//! weights are; the widening is shared by all rows of a tile.

// Rows and parts index several arrays at once: sums, results, weights.
#![allow(clippy::needless_range_loop)]

use std::arch::asm;
use std::arch::x86_64::*;

use super::path::Tile;
use super::weights::{PAIRS, WeightBlock};
use super::{BLOCK, RowBlock};

/// f32 or i32 of one AVX2 register.
const LANES_256: usize = 8;

/// f32 or i32 of one AVX-512 register.
const LANES_512: usize = 16;

/// Two neighbouring activations as one 32-bit lane.
///
/// # Safety
/// `pair` is below [`PAIRS`].
#[inline(always)]
unsafe fn pair_of(row: &RowBlock, pair: usize) -> i32 {
    const { assert!(2 * PAIRS == BLOCK) };
    // SAFETY: two of the block's values; the read needs no alignment.
    unsafe { row.values.as_ptr().add(2 * pair).cast::<i32>().read_unaligned() }
}

/// `R` rows, 16 outputs at a time; results stay in `out` between blocks, since 16 registers hold the integer sums alone.
///
/// # Safety
/// The machine has AVX2 and FMA, and `rows` holds `R` times as many blocks as `weights`.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn avx2<const R: usize>(weights: &[WeightBlock], rows: &[RowBlock], out: &mut Tile) {
    /// Registers of one half of a panel.
    const HALF: usize = 2;
    let blocks = weights.len();
    out[..R].iter_mut().for_each(|row| row.fill(0.0));
    for (block, w) in weights.iter().enumerate() {
        for half in 0..2 {
            let mut sums = [[_mm256_setzero_si256(); HALF]; R];
            for pair in 0..PAIRS {
                for part in 0..HALF {
                    let column = (half * HALF + part) * LANES_256;
                    // SAFETY: eight outputs of one pair, 16 bytes, the last of them the last of the pair.
                    let w = unsafe { _mm_loadu_si128(w.values[pair].as_ptr().add(column).cast()) };
                    let w = _mm256_cvtepu8_epi16(w);
                    for row in 0..R {
                        // SAFETY: the caller's contract, and `pair` is in range.
                        let x = unsafe { pair_of(rows.get_unchecked(row * blocks + block), pair) };
                        let products = _mm256_madd_epi16(w, _mm256_set1_epi32(x));
                        sums[row][part] = _mm256_add_epi32(sums[row][part], products);
                    }
                }
            }
            for part in 0..HALF {
                let column = (half * HALF + part) * LANES_256;
                // SAFETY: eight of 32 scales and offsets, the last of them the last.
                let (scale, offset) = unsafe {
                    (_mm256_loadu_ps(w.scales.as_ptr().add(column)), _mm256_loadu_ps(w.offsets.as_ptr().add(column)))
                };
                for row in 0..R {
                    let x = &rows[row * blocks + block];
                    let scale = _mm256_mul_ps(scale, _mm256_set1_ps(x.scale));
                    let target = out[row][column..].as_mut_ptr();
                    // SAFETY: eight of 32 results, the last of them the last.
                    unsafe {
                        let result = _mm256_fmadd_ps(offset, _mm256_set1_ps(x.sum), _mm256_loadu_ps(target));
                        let result = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[row][part]), scale, result);
                        _mm256_storeu_ps(target, result);
                    }
                }
            }
        }
    }
}

/// Adds two products to each lane. The compiler splits the intrinsic (`_mm512_dpwssd_epi32`) into a multiplication and
/// an addition, which takes twice the units: 1.1 times slower on Zen 4.
#[inline]
#[target_feature(enable = "avx512f,avx512vnni")]
fn add_products(sum: &mut __m512i, a: __m512i, b: __m512i) {
    // SAFETY: registers only; the caller has the instruction.
    unsafe {
        asm!(
            "vpdpwssd {sum}, {a}, {b}",
            sum = inout(zmm_reg) *sum, a = in(zmm_reg) a, b = in(zmm_reg) b,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
}

/// `R` rows, all outputs of the panel at once; integer sums and results stay in registers.
///
/// # Safety
/// The machine has AVX-512 F, BW and VNNI, and `rows` holds `R` times as many blocks as `weights`.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) unsafe fn avx512_vnni<const R: usize>(weights: &[WeightBlock], rows: &[RowBlock], out: &mut Tile) {
    /// Registers of a panel.
    const PARTS: usize = 2;
    let blocks = weights.len();
    let mut results = [[_mm512_setzero_ps(); PARTS]; R];
    for (block, w) in weights.iter().enumerate() {
        let mut sums = [[_mm512_setzero_si512(); PARTS]; R];
        for pair in 0..PAIRS {
            let mut widened = [_mm512_setzero_si512(); PARTS];
            for (part, widened) in widened.iter_mut().enumerate() {
                // SAFETY: 16 outputs of one pair, 32 bytes, the last of them the last of the pair.
                let w = unsafe { _mm256_loadu_si256(w.values[pair].as_ptr().add(part * LANES_512).cast()) };
                *widened = _mm512_cvtepu8_epi16(w);
            }
            for row in 0..R {
                // SAFETY: the caller's contract, and `pair` is in range.
                let x = _mm512_set1_epi32(unsafe { pair_of(rows.get_unchecked(row * blocks + block), pair) });
                for part in 0..PARTS {
                    add_products(&mut sums[row][part], widened[part], x);
                }
            }
        }
        for part in 0..PARTS {
            // SAFETY: 16 of 32 scales and offsets, the last of them the last.
            let (scale, offset) = unsafe {
                let column = part * LANES_512;
                (_mm512_loadu_ps(w.scales.as_ptr().add(column)), _mm512_loadu_ps(w.offsets.as_ptr().add(column)))
            };
            for row in 0..R {
                let x = &rows[row * blocks + block];
                let scale = _mm512_mul_ps(scale, _mm512_set1_ps(x.scale));
                let result = _mm512_fmadd_ps(offset, _mm512_set1_ps(x.sum), results[row][part]);
                results[row][part] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[row][part]), scale, result);
            }
        }
    }
    for (out, results) in out.iter_mut().zip(results) {
        for (part, result) in results.into_iter().enumerate() {
            // SAFETY: 16 of 32 results, the last of them the last.
            unsafe { _mm512_storeu_ps(out[part * LANES_512..].as_mut_ptr(), result) };
        }
    }
}
