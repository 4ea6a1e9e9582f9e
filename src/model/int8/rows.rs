//! Activations, rounded to 16 bits in blocks.

// `with_simd` builds a struct from each signature and needs its lifetimes named.
#![allow(clippy::needless_lifetimes)]

use pulp::{Arch, Simd, with_simd};

use super::BLOCK;

/// The largest rounded activation: 32 of them times 8-bit weights stay far inside 32 bits.
const LIMIT: f32 = 32_767.0;

/// Below this largest magnitude a block counts as zero: the factor that rounds it would not be finite.
const TINY: f32 = 1e-33;

/// Added and subtracted, it rounds a small number to an integer, halves to even.
const ROUND: f32 = 12_582_912.0;

/// One block of one row: `value = scale * integer`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct RowBlock {
    pub(super) values: [i16; BLOCK],
    /// NaN if the block holds a value that is not finite, so that no result of the row is a number.
    pub(super) scale: f32,
    /// `scale` times the sum of the integers.
    pub(super) sum: f32,
}

/// Rounds one row; inputs that are missing in the last block count as zero.
#[with_simd(quantise = Arch::new())]
#[inline(always)]
pub fn quantise_with<'a, S: Simd>(_: S, x: &'a [f32], out: &'a mut [RowBlock]) {
    for (x, out) in x.chunks(BLOCK).zip(out) {
        let mut padded = [0f32; BLOCK];
        match x.first_chunk::<BLOCK>() {
            Some(whole) => padded = *whole,
            None => padded[..x.len()].copy_from_slice(x),
        }
        *out = round(&padded);
    }
}

#[inline(always)]
fn round(x: &[f32; BLOCK]) -> RowBlock {
    // The bits of magnitudes order like the magnitudes, with infinity and NaN on top.
    let largest = f32::from_bits(x.iter().fold(0, |most, x| most.max(x.to_bits() & 0x7fff_ffff)));
    if !largest.is_finite() {
        return RowBlock { values: [0; BLOCK], scale: f32::NAN, sum: f32::NAN };
    }
    if largest < TINY {
        return RowBlock::default();
    }
    let factor = LIMIT / largest;
    let scale = largest / LIMIT;
    let mut values = [0i16; BLOCK];
    let mut sum = 0i32;
    for (value, x) in values.iter_mut().zip(x) {
        let rounded = (x * factor + ROUND).to_bits() as i32 - ROUND.to_bits() as i32;
        *value = rounded as i16;
        sum += rounded;
    }
    RowBlock { values, scale, sum: scale * sum as f32 }
}
