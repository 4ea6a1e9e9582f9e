#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::Aggregation::{Geometric, Mean, Min};
use super::RewardSignal::{Evidence, Margin};
use super::*;
use crate::prism::{Conclusion, Posterior};

/// Posteriors by dimension: aligned, indeterminate, contradictory.
fn verdicts(posteriors: [[f64; 3]; 3]) -> DimensionVerdicts {
    let [task_framing, interpersonal_stance, linguistic_style] =
        posteriors.map(|[aligned, indeterminate, contradictory]| {
            DimensionVerdict::new(Posterior { aligned, indeterminate, contradictory }, None, Vec::new())
        });
    DimensionVerdicts { task_framing, interpersonal_stance, linguistic_style }
}

/// Evidence 1/2, 1/4, 1/8; margins 1/4, -1/4, -3/4.
fn powers() -> DimensionVerdicts {
    verdicts([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5], [0.125, 0.0, 0.875]])
}

fn reward(weights: [f64; 3], aggregation: Aggregation, signal: RewardSignal) -> f64 {
    Shaping::new(weights, aggregation, signal, false).unwrap().reward(&powers())
}

#[test]
fn rewards_are_those_that_are_computed_by_hand() {
    // (1/2 + 1/4 + 1/8) / 3 and (1/4 - 1/4 - 3/4) / 3
    assert_eq!(reward([1.0; 3], Mean, Evidence), 0.875 / 3.0);
    assert_eq!(reward([1.0; 3], Mean, Margin), -0.25);
    // (4/2 + 2/4 + 2/8) / 8 and (4/4 - 2/4 - 6/4) / 8
    assert_eq!(reward([4.0, 2.0, 2.0], Mean, Evidence), 2.75 / 8.0);
    assert_eq!(reward([4.0, 2.0, 2.0], Mean, Margin), -0.125);
    assert_eq!(reward([1.0; 3], Min, Evidence), 0.125);
    assert_eq!(reward([1.0; 3], Min, Margin), -0.75);
    // The cube root of 1/64; the fourth root of (1/2)^2 * 1/4 * 1/8 = 2^-7.
    assert!((reward([1.0; 3], Geometric, Evidence) - 0.25).abs() < 1e-15);
    assert!((reward([2.0, 1.0, 1.0], Geometric, Evidence) - 2f64.powf(-1.75)).abs() < 1e-15);
}

#[test]
fn a_weight_of_0_takes_a_dimension_out_and_its_size_does_not_count_for_the_least() {
    for (weights, expected) in [([1.0, 1.0, 0.0], 0.25), ([1e-300, 1e300, 0.0], 0.25), ([7.0, 0.0, 0.0], 0.5)] {
        assert_eq!(reward(weights, Min, Evidence), expected);
    }
    assert_eq!(reward([0.0, 3.0, 0.0], Mean, Evidence), 0.25);
    assert_eq!(reward([0.0, 3.0, 0.0], Mean, Margin), -0.25);
    assert!((reward([0.0, 0.0, 0.1], Geometric, Evidence) - 0.125).abs() < 1e-16);
}

#[test]
fn a_dimension_without_evidence_makes_the_geometric_mean_0_if_it_counts() {
    let none = verdicts([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.25, 0.5, 0.25]]);
    let geometric = |weights| Shaping::new(weights, Geometric, Evidence, false).unwrap().reward(&none);
    assert_eq!(geometric([1.0, 1.0, 1.0]), 0.0);
    // Far too small for the mean's sum, and above zero all the same.
    assert_eq!(geometric([1e300, 1e-300, 1.0]), 0.0);
    assert!((geometric([1.0, 0.0, 1.0]) - 0.5).abs() < 1e-15);
}

#[test]
fn what_cannot_be_is_refused_with_its_field() {
    let refused = |weights, aggregation, signal| {
        let error = Shaping::new(weights, aggregation, signal, false).unwrap_err();
        format!("{}: {error}", error.field())
    };
    for weight in [-1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -f64::MIN_POSITIVE] {
        let told = refused([1.0, weight, 1.0], Mean, Evidence);
        let expected = "shaping.weights.interpersonal_stance: the weight is ";
        assert!(told.starts_with(expected) && told.ends_with("; it must be finite and at least 0"), "{told}");
    }
    assert_eq!(
        refused([0.0, 0.0, -0.0], Min, Margin),
        "shaping.weights: all three weights are 0; at least one must be above 0"
    );
    assert_eq!(
        refused([1.0; 3], Geometric, Margin),
        "shaping.aggregation: the geometric mean is of the evidence only, and the signal is the margin, which may be \
         below 0"
    );
}

#[test]
fn every_shaping_that_can_be_has_a_name_of_its_own() {
    let mut names = std::collections::BTreeSet::new();
    for aggregation in [Mean, Min, Geometric] {
        for (signal, z) in [(Evidence, false), (Evidence, true), (Margin, false), (Margin, true)] {
            names.extend(Shaping::new([1.0; 3], aggregation, signal, z).ok().map(|shaping| shaping.name()));
        }
    }
    assert_eq!(names.len(), 10);
}

/// Python: `statistics.mean` and `statistics.stdev`, which divides by n - 1: of 1, 2, 3, 4 they are 2.5 and 1.2909944487.
#[test]
fn z_scores_are_those_of_python() {
    let expected = [-1.161895003862225, -0.3872983346207417, 0.3872983346207417, 1.161895003862225];
    for (found, expected) in z_scores(&[1.0, 2.0, 3.0, 4.0]).into_iter().zip(expected) {
        assert!((found - expected).abs() < 1e-15, "{found} and not {expected}");
    }
    // Two values lie one over the square root of two from their mean, whatever they are.
    let half = 0.5_f64.sqrt();
    for pair in [[0.0, 1.0], [-1.0, 1.0], [0.3, 0.3_f64.next_up()], [0.0, 5e-324], [1e-200, 2e-200]] {
        for (found, expected) in z_scores(&pair).into_iter().zip([-half, half]) {
            assert!((found - expected).abs() < 1e-15, "{pair:?}: {found}");
        }
    }
}

#[test]
fn equal_rewards_and_a_single_one_and_none_have_a_z_score_of_0() {
    assert!(z_scores(&[]).is_empty());
    assert_eq!(z_scores(&[0.7]), [0.0]);
    // Their mean in f64 is 0.10000000000000002, from which all three differ.
    assert_eq!(z_scores(&[0.1, 0.1, 0.1]), [0.0; 3]);
    assert_eq!(z_scores(&[0.0, -0.0]), [0.0; 2]);
}

#[test]
fn a_candidate_without_a_verdict_takes_no_part() {
    use crate::digest::Digest;
    use crate::numerics::Numerics;
    use crate::prism::{Calibration, EvidenceKind, LabelOrder, Layout, Provenance, TextWarnings, TokenCounts, Verdict};

    let digest = Digest::of_bytes(b"");
    let verdict = |evidence: f64| {
        let dimensions = verdicts([[evidence, 0.0, 1.0 - evidence]; 3]);
        let Conclusion { s_prism, dimensions, weakest_dimension } = Conclusion::new(dimensions);
        Ok(Verdict {
            id: String::new(),
            s_prism,
            dimensions,
            weakest_dimension,
            judge: Provenance {
                model: String::new(),
                model_digest: digest,
                prompt_digest: digest,
                label_space_digest: digest,
                evidence: EvidenceKind::LabelSlot,
                layout: Layout::Shared,
                label_order: LabelOrder::Content,
                calibration: Calibration::None,
                numerics: Numerics::F32,
            },
            tokens: TokenCounts { prompt: 0, computed: 0 },
            cached: false,
            warnings: TextWarnings::default(),
        })
    };
    let results = [Err("late"), verdict(0.25), Err("late"), verdict(0.5), verdict(0.75)];
    assert_eq!(Shaping::default().rewards(&results), [None, Some(0.25), None, Some(0.5), Some(0.75)]);
    let z = Shaping::new([1.0; 3], Mean, Evidence, true).unwrap();
    assert_eq!(z.rewards(&results), [None, Some(-1.0), None, Some(0.0), Some(1.0)]);
    assert_eq!(z.rewards(&results[..2]), [None, Some(0.0)]);
    assert_eq!(z.rewards(&results[..1]), [None]);
}

fn posterior() -> impl Strategy<Value = [f64; 3]> {
    let share = || prop_oneof![4 => 0.0..1.0f64, 1 => Just(0.0), 1 => Just(1.0)];
    (share(), share()).prop_map(|(a, b)| [a, (1.0 - a) * b, (1.0 - a) * (1.0 - b)])
}

fn weights() -> impl Strategy<Value = [f64; 3]> {
    let weight = prop_oneof![4 => 0.0..10.0f64, 1 => Just(0.0), 1 => Just(f64::MAX), 1 => Just(5e-324)];
    prop::array::uniform3(weight).prop_filter("a weight above zero", |weights| *weights != [0.0; 3])
}

proptest! {
    #[test]
    fn the_default_is_s_prism_bit_by_bit_whatever_the_size_of_equal_weights(
        posteriors in prop::array::uniform3(posterior()), weight in prop_oneof![5e-324..1e-300f64, 1e-5..1e5f64, 1e300..f64::MAX]
    ) {
        let verdicts = verdicts(posteriors);
        let s_prism = Conclusion::new(verdicts.clone()).s_prism.to_bits();
        prop_assert_eq!(Shaping::default().reward(&verdicts).to_bits(), s_prism);
        let equal = Shaping::new([weight; 3], Mean, Evidence, false).unwrap();
        prop_assert_eq!(equal.reward(&verdicts).to_bits(), s_prism);
    }

    #[test]
    fn a_reward_lies_in_its_range_and_between_the_dimensions_that_count(
        posteriors in prop::array::uniform3(posterior()),
        weights in weights(),
        aggregation in prop::sample::select(&[Mean, Min, Geometric]),
        signal in prop::sample::select(&[Evidence, Margin]),
    ) {
        let Ok(shaping) = Shaping::new(weights, aggregation, signal, false) else {
            prop_assert_eq!((aggregation, signal), (Geometric, Margin));
            return Ok(());
        };
        let verdicts = verdicts(posteriors);
        let reward = shaping.reward(&verdicts);
        let counting = Dimension::ALL.into_iter().zip(weights).filter(|(_, weight)| *weight > 0.0);
        let parts: Vec<f64> = counting.map(|(dimension, _)| signal.of(verdicts.get(dimension))).collect();
        let (least, most) = (parts.iter().copied().fold(f64::INFINITY, f64::min), parts.iter().copied().fold(-1.0, f64::max));
        let range = if signal == Evidence { 0.0..=1.0 } else { -1.0..=1.0 };
        prop_assert!(range.contains(&reward), "{reward}");
        prop_assert!((least - 1e-12..=most + 1e-12).contains(&reward), "{reward} of {parts:?}");
    }

    #[test]
    fn z_scores_have_mean_0_and_deviation_1_keep_the_order_and_follow_their_value(
        values in prop::collection::vec(prop_oneof![-1.0..1.0f64, Just(0.5)], 2..40), turn in 0usize..40
    ) {
        let scores = z_scores(&values);
        prop_assert!(scores.iter().all(|score| score.is_finite()));
        let mut turned = values.clone();
        turned.rotate_left(turn % values.len());
        let mut back = z_scores(&turned);
        back.rotate_right(turn % values.len());
        prop_assert_eq!(&back, &scores);
        for (value, score) in values.iter().zip(&scores) {
            for (other, theirs) in values.iter().zip(&scores) {
                prop_assert!((value < other) <= (score <= theirs) && (value == other) <= (score == theirs));
            }
        }
        if values.iter().any(|value| *value != values[0]) {
            let n = scores.len() as f64;
            let mean = scores.iter().sum::<f64>() / n;
            let variance = scores.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / (n - 1.0);
            prop_assert!(mean.abs() < 1e-9 && (variance - 1.0).abs() < 1e-9, "{mean} {variance}");
        }
    }
}
