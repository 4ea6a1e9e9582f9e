//! Every path against the plain one to the last bit, and the plain one against f64 within the bound of its rounding.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use rayon::ThreadPoolBuilder;

use super::*;

fn pool(threads: usize) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

/// Numbers of very different sizes, zeros among them.
fn values(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    let scaled = (0..count).map(|_| {
        let size = next();
        if size > 0.9 { 0.0 } else { next() * (size * 6.0).exp() }
    });
    scaled.collect()
}

fn product(path: Path, threads: usize, w: &Packed, x: &[f32], rows: usize) -> Vec<f32> {
    let mut out = vec![0.0; rows * w.outputs()];
    let output = Output { data: &mut out, stride: w.outputs(), accumulate: false };
    multiply_by(path, &pool(threads), w, (rows, Rows { data: x, stride: w.inputs() }), &mut Vec::new(), output);
    out
}

/// NaN has many bit patterns, and all of them are the same failure.
fn bits(values: &[f32]) -> Vec<Option<u32>> {
    values.iter().map(|value| (!value.is_nan()).then(|| value.to_bits())).collect()
}

/// The product in f64 and how far the integer one may be from it: half a step of each activation times its weight, half
/// a step of each weight times its activation, their product, and the rounding of the chain over the blocks.
fn exact(weights: &[f32], x: &[f32]) -> (f64, f64) {
    let spread = |values: &[f32]| {
        let fold = |join: fn(f32, f32) -> f32| f64::from(values.iter().copied().reduce(join).unwrap());
        fold(f32::max) - fold(f32::min)
    };
    let (mut sum, mut bound) = (0.0, 0.0);
    for (weights, x) in weights.chunks(BLOCK).zip(x.chunks(BLOCK)) {
        let largest = x.iter().fold(0f64, |most, x| most.max(f64::from(x.abs())));
        let weight_step = spread(weights) / 255.0;
        let (x_error, w_error) = (0.500_01 * largest / 32_767.0, 0.500_01 * weight_step * (BLOCK as f64).sqrt());
        for (w, x) in weights.iter().zip(x) {
            let (w, x) = (f64::from(*w), f64::from(*x));
            sum += w * x;
            // The grid is chosen by its sum of squares: a single weight may be off by more than half of this step.
            bound += x_error * w.abs() + w_error * x.abs() + x_error * w_error;
            bound += 1e-5 * (w.abs() + weight_step * 255.0) * largest;
        }
    }
    (sum, bound)
}

#[test]
fn the_best_path_is_one_of_this_machine() {
    assert!(Path::available().contains(&Path::best()));
    println!("paths: {:?}", Path::available());
}

proptest! {
    #[test]
    fn all_paths_give_the_same_bits_for_any_rows_and_threads(
        (inputs, outputs, rows) in (1..200usize, 1..150usize, 1..23usize), seed in any::<u64>(), threads in 1..4usize
    ) {
        let (weights, x) = (values(inputs * outputs, seed), values(inputs * rows, !seed));
        let w = Packed::new(inputs, &weights);
        let expected = product(Path::Plain, 1, &w, &x, rows);
        for path in Path::available() {
            prop_assert_eq!(bits(&product(path, threads, &w, &x, rows)), bits(&expected), "{:?}", path);
            let last = product(path, threads, &w, &x[(rows - 1) * inputs..], 1);
            prop_assert_eq!(bits(&last), bits(&expected[(rows - 1) * outputs..]), "{:?}, last row alone", path);
        }
        for (row, out) in expected.chunks_exact(outputs).enumerate() {
            for (column, out) in out.iter().enumerate() {
                let (exact, bound) = exact(&weights[column * inputs..][..inputs], &x[row * inputs..][..inputs]);
                prop_assert!((f64::from(*out) - exact).abs() <= bound, "{} instead of {} +- {}", out, exact, bound);
            }
        }
    }

    #[test]
    fn the_largest_integers_saturate_nowhere(
        signs in prop::collection::vec(any::<(bool, bool)>(), 64), rows in 1..8usize, size in -30..30i32
    ) {
        // Ends of both grids only, in every mix of signs.
        let size = 2f32.powi(size);
        let pick = |sign: bool| if sign { size } else { -size };
        let row: Vec<f32> = signs.iter().map(|(_, x)| pick(*x)).collect();
        let weights: Vec<f32> = (0..40).flat_map(|_| signs.iter().map(|(w, _)| pick(*w))).collect();
        let (w, x) = (Packed::new(64, &weights), row.repeat(rows));
        let exact: f64 = row.iter().zip(&weights).map(|(x, w)| f64::from(*x) * f64::from(*w)).sum();
        let expected = product(Path::Plain, 1, &w, &x, rows);
        prop_assert!(expected.iter().all(|out| (f64::from(*out) - exact).abs() <= 1e-4 * f64::from(size).powi(2)));
        for path in Path::available() {
            prop_assert_eq!(bits(&product(path, 2, &w, &x, rows)), bits(&expected));
        }
    }
}

#[test]
fn shapes_of_the_default_backbone_give_the_same_bits_in_any_company() {
    for (inputs, outputs) in [(576, 960), (576, 576), (1536, 576)] {
        let w = Packed::new(inputs, &values(inputs * outputs, 3));
        let x = values(61 * inputs, 4);
        let expected = product(Path::best(), 1, &w, &x, 61);
        for path in Path::available() {
            for (first, rows) in [(0, 61), (0, 1), (1, 2), (5, 6), (7, 7), (13, 48), (60, 1)] {
                let part = product(path, 3, &w, &x[first * inputs..], rows);
                let expected = &expected[first * outputs..][..rows * outputs];
                assert_eq!(bits(&part), bits(expected), "{path:?}: {rows} rows of {inputs} x {outputs}");
            }
        }
    }
}

#[test]
fn what_is_not_finite_never_becomes_a_number_and_leaves_other_rows_alone() {
    let (inputs, outputs, rows) = (70, 40, 9);
    let w = Packed::new(inputs, &values(inputs * outputs, 5));
    let clean = values(inputs * rows, 6);
    for path in Path::available() {
        let expected = product(path, 1, &w, &clean, rows);
        for bad in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            for place in [0, 31, 32, 69] {
                let mut x = clean.clone();
                x[4 * inputs + place] = bad;
                let out = product(path, 2, &w, &x, rows);
                for (row, (out, expected)) in out.chunks(outputs).zip(expected.chunks(outputs)).enumerate() {
                    if row == 4 {
                        assert!(out.iter().all(|out| !out.is_finite()), "{path:?}, {bad} at {place}");
                    } else {
                        assert_eq!(bits(out), bits(expected));
                    }
                }
            }
        }
    }
}

#[test]
fn zeros_and_vanishing_numbers_give_zero_and_huge_ones_no_wrong_number() {
    let w = Packed::new(40, &[0.5f32; 40 * 33]);
    for path in Path::available() {
        for tiny in [0.0, -0.0, 1e-45, -1e-38, 9e-34] {
            assert!(product(path, 1, &w, &[tiny; 80], 2).iter().all(|out| out.abs() < 1e-31), "{path:?} {tiny}");
        }
        for (huge, sum) in [(1e-30, 2e-29), (1e30, 2e31), (1e37, 2e38)] {
            let out = product(path, 1, &w, &[huge; 80], 2);
            assert!(out.iter().all(|out| (f64::from(*out) / sum - 1.0).abs() < 1e-5), "{path:?} {huge}: {}", out[0]);
        }
        assert!(product(path, 1, &w, &[f32::MAX; 80], 2).iter().all(|out| !out.is_finite()));
    }
    for value in [0.0, 3.0, -7.5e-6] {
        let w = Packed::new(32, &[value; 32]);
        let out = product(Path::best(), 1, &w, &[1.0; 32], 1)[0];
        assert!((out - 32.0 * value).abs() <= 1e-6 * value.abs(), "{out}");
    }
}

#[test]
fn a_product_is_added_where_that_is_asked_and_leaves_the_gap_between_rows() {
    let w = Packed::new(32, &values(32 * 35, 8));
    let x = values(32 * 3, 9);
    let plain = product(Path::Plain, 1, &w, &x, 3);
    for path in Path::available() {
        let mut out = vec![1.5f32; 40 * 3];
        let output = Output { data: &mut out, stride: 40, accumulate: true };
        multiply_by(path, &pool(2), &w, (3, Rows { data: &x, stride: 32 }), &mut Vec::new(), output);
        for (row, out) in out.chunks_exact(40).enumerate() {
            assert!(out[..35].iter().zip(&plain[row * 35..]).all(|(out, sum)| *out == 1.5 + sum));
            assert!(out[35..].iter().all(|gap| *gap == 1.5));
        }
    }
}

/// Q4_1 and Q8_0 hold weights on a grid of their own: ours must hold the same ones, or int8 adds a second rounding.
#[test]
fn weights_that_come_from_a_grid_are_kept() {
    let steps = values(BLOCK, 10);
    let q4_1 = |step: &f32| ((step.abs() * 40.0) as u32 % 14 + 1) as f32 * 0.021_3 - 0.17;
    let q8_0 = |step: &f32| ((step * 300.0) as i32 % 120) as f32 * 0.003_7;
    let mut grids: [Vec<f32>; 2] = [steps.iter().map(q4_1).collect(), steps.iter().map(q8_0).collect()];
    (grids[0][3], grids[0][9]) = (-0.17, 15.0 * 0.021_3 - 0.17);
    grids[1][5] = -127.0 * 0.003_7;
    for weights in grids {
        let w = Packed::new(BLOCK, &weights);
        for (at, weight) in weights.iter().enumerate() {
            let mut x = [0.0; BLOCK];
            x[at] = 1.0;
            let out = product(Path::best(), 1, &w, &x, 1)[0];
            assert!((out - weight).abs() <= 1e-6 * 0.5, "{out} instead of {weight}");
        }
    }
}
