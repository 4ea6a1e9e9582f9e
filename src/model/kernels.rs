//! Element-wise kernels. Each runs with the widest instructions of the machine (`pulp` picks them once) and reduces
//! over fixed lanes, so that its bits do not depend on how rows are grouped.

// `with_simd` builds a struct from each signature and needs its lifetimes named.
#![allow(clippy::needless_lifetimes)]

use pulp::{Arch, Simd, with_simd};

/// Lanes of every reduction, whatever the machine's vectors hold.
pub const LANES: usize = 16;

/// Values of a vocabulary that are summed before they join the total: in one long sum, the many tokens of small
/// probability would each round to nothing beside the few of large probability (measured: all log-probabilities 1e-5
/// too high).
const SUM_SPAN: usize = 512;

/// e^x for softmax and SiLU: relative error below 3e-7; 0 below -87, saturates above 88, NaN stays NaN.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // Cody-Waite reduction to |r| <= ln2/2 and a degree-6 Taylor-like polynomial (Cephes expf coefficients).
    const SHIFT: f32 = 12_582_912.0 + 127.0;
    let clamped = if x > 88.0 { 88.0 } else { x };
    let shifted = clamped.mul_add(std::f32::consts::LOG2_E, SHIFT);
    let n = shifted - SHIFT;
    let r = n.mul_add(-0.693_359_4, clamped);
    let r = n.mul_add(2.121_944_4e-4, r);
    let mut p = 1.987_569_2e-4f32;
    p = p.mul_add(r, 1.398_199_9e-3);
    p = p.mul_add(r, 8.333_452e-3);
    p = p.mul_add(r, 4.166_579_6e-2);
    p = p.mul_add(r, 0.166_666_66);
    p = p.mul_add(r, 0.5);
    let value = p.mul_add(r * r, r) + 1.0;
    let scale = f32::from_bits(shifted.to_bits() << 23);
    if x < -87.0 { 0.0 } else { value * scale }
}

#[inline(always)]
pub(super) fn fold(lanes: [f32; LANES], join: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = lanes;
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] = join(lanes[i], lanes[i + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// `out = x / sqrt(mean(x^2) + epsilon) * weight`, row by row. A row whose mean overflows becomes NaN: dividing by
/// infinity would make zeros of it, which look like a result.
#[with_simd(rms_norm = Arch::new())]
#[inline(always)]
pub fn rms_norm_with<'a, S: Simd>(_: S, x: &'a [f32], weight: &'a [f32], epsilon: f32, out: &'a mut [f32]) {
    let width = weight.len();
    for (x, out) in x.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
        let mut lanes = [0f32; LANES];
        let chunks = x.chunks_exact(LANES);
        for (lane, value) in lanes.iter_mut().zip(chunks.remainder()) {
            *lane = value * value;
        }
        for chunk in chunks {
            for (lane, value) in lanes.iter_mut().zip(chunk) {
                *lane = value.mul_add(*value, *lane);
            }
        }
        let mean = fold(lanes, |a, b| a + b) / width as f32;
        let scale = if mean.is_finite() { 1.0 / (mean + epsilon).sqrt() } else { f32::NAN };
        for ((out, x), weight) in out.iter_mut().zip(x).zip(weight) {
            *out = x * scale * weight;
        }
    }
}

/// `out = silu(gate) * up` where each row of `fused` holds the gate and then the up projection.
#[with_simd(silu_gate = Arch::new())]
#[inline(always)]
pub fn silu_gate_with<'a, S: Simd>(_: S, fused: &'a [f32], width: usize, out: &'a mut [f32]) {
    for (fused, out) in fused.chunks_exact(2 * width).zip(out.chunks_exact_mut(width)) {
        let (gate, up) = fused.split_at(width);
        for ((out, gate), up) in out.iter_mut().zip(gate).zip(up) {
            *out = gate / (1.0 + exp(-gate)) * up;
        }
    }
}

/// Largest value and sum of `exp(value - largest)` of a row.
#[with_simd(max_and_exp_sum = Arch::new())]
#[inline(always)]
pub fn max_and_exp_sum_with<'a, S: Simd>(_: S, row: &'a [f32]) -> (f32, f64) {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let chunks = row.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks.clone().chain(std::iter::once(rest)) {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane = if *value > *lane { *value } else { *lane };
        }
    }
    let max = fold(lanes, |a, b| if b > a { b } else { a });
    let mut total = 0f64;
    for span in row.chunks(SUM_SPAN) {
        let mut sums = [0f32; LANES];
        let chunks = span.chunks_exact(LANES);
        let rest = chunks.remainder();
        for chunk in chunks.chain(std::iter::once(rest)) {
            for (sum, value) in sums.iter_mut().zip(chunk) {
                *sum += exp(*value - max);
            }
        }
        total += f64::from(fold(sums, |a, b| a + b));
    }
    (max, total)
}

/// Rotates all heads of one row by half-split rotary embedding, in place, and scales them.
#[with_simd(rotate = Arch::new())]
#[inline(always)]
pub fn rotate_with<'a, S: Simd>(_: S, heads: &'a mut [f32], cos: &'a [f32], sin: &'a [f32], scale: f32) {
    let half = cos.len();
    for head in heads.chunks_exact_mut(2 * half) {
        let (a, b) = head.split_at_mut(half);
        for (((a, b), cos), sin) in a.iter_mut().zip(b).zip(cos).zip(sin) {
            let (x, y) = (*a, *b);
            *a = (x * cos - y * sin) * scale;
            *b = (y * cos + x * sin) * scale;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_agrees_with_the_standard_library() {
        for i in -8_700..=8_800 {
            let x = i as f32 / 100.0;
            let (ours, theirs) = (exp(x), f64::from(x).exp());
            assert!((f64::from(ours) / theirs - 1.0).abs() < 3e-7, "exp({x}) = {ours}, not {theirs}");
        }
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn a_sum_over_a_vocabulary_keeps_what_is_small() {
        for count in [17, 511, 513, 49_152, 151_937] {
            let row: Vec<f32> = (0..count).map(|i| if i == 3 { 18.0 } else { (i as f32 * 0.37).sin() }).collect();
            let (max, sum) = max_and_exp_sum(&row);
            let exact: f64 = row.iter().map(|value| (f64::from(*value) - 18.0).exp()).sum();
            assert_eq!(max, 18.0);
            assert!((sum / exact - 1.0).abs() < 1e-6, "{count}: {sum} instead of {exact}");
        }
    }

    #[test]
    fn a_row_of_nan_stays_nan() {
        let mut row = [0.5f32; 16];
        row[3] = f32::NAN;
        assert!(max_and_exp_sum(&row).1.is_nan());
    }

    #[test]
    fn the_norm_and_the_gate_follow_their_formulas() {
        let x: Vec<f32> = (0..40).map(|i| i as f32 * 0.25 - 4.0).collect();
        let weight: Vec<f32> = (0..20).map(|i| 1.0 + i as f32 * 0.1).collect();
        let mut out = vec![0.0; 40];
        rms_norm(&x, &weight, 1e-5, &mut out);
        for row in 0..2 {
            let mean: f64 = x[row * 20..][..20].iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / 20.0;
            for i in 0..20 {
                let expected = f64::from(x[row * 20 + i]) / (mean + 1e-5).sqrt() * f64::from(weight[i]);
                assert!((f64::from(out[row * 20 + i]) - expected).abs() < 1e-5);
            }
        }
        let mut large = [1.0, 1e20];
        rms_norm(&[1.0, 1e20], &[1.0, 1.0], 1e-5, &mut large);
        assert!(large.iter().all(|value| value.is_nan()));
        let mut gated = vec![0.0; 20];
        silu_gate(&x, 20, &mut gated);
        for i in 0..20 {
            let (gate, up) = (f64::from(x[i]), f64::from(x[20 + i]));
            assert!((f64::from(gated[i]) - gate / (1.0 + (-gate).exp()) * up).abs() < 1e-5);
        }
    }
}
