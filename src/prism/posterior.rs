//! Posterior, evidence and S_PRISM (Eq. 1-3), in f64, from log-scores.
//!
//! Sums over permutations are taken in sorted order, so that no bit depends on the order of the readings.

use super::{Dimension, DimensionVerdicts, Label, LikelihoodScale, Posterior};

/// A value that is not finite; no posterior is made from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a log-score is not finite")]
pub(super) struct NonFinite;

/// Passes finite values on.
pub(super) fn finite(value: f64) -> Result<f64, NonFinite> {
    if value.is_finite() { Ok(value) } else { Err(NonFinite) }
}

/// Eq. 1: softmax of the log-scores of A, B, C. Safe for any finite input: the maximum is subtracted first. Swapping the
/// scores of A and C swaps their probabilities and changes no bit.
pub(super) fn softmax(scores: [f64; 3]) -> Result<Posterior, NonFinite> {
    for score in scores {
        finite(score)?;
    }
    let max = scores.into_iter().fold(f64::NEG_INFINITY, f64::max);
    let [a, b, c] = scores.map(|score| (score - max).exp());
    // A and C first: their order must not show in the rounding.
    let sum = (a + c) + b;
    Ok(Posterior { aligned: a / sum, indeterminate: b / sum, contradictory: c / sum })
}

/// Mean of finite values, the same bits in any order; None for no values.
pub(super) fn mean(values: impl IntoIterator<Item = f64>) -> Result<Option<f64>, NonFinite> {
    let mut values = values.into_iter().map(finite).collect::<Result<Vec<f64>, NonFinite>>()?;
    if values.is_empty() {
        return Ok(None);
    }
    values.sort_by(f64::total_cmp);
    finite(values.iter().sum::<f64>() / values.len() as f64).map(Some)
}

/// Log-scores by displayed letter, mapped back to canonical order.
pub(super) fn canonical(order: [Label; 3], displayed: [f64; 3]) -> [f64; 3] {
    let mut scores = [0.0; 3];
    for (label, score) in order.into_iter().zip(displayed) {
        scores[label as usize] = score;
    }
    scores
}

/// The posterior of the likelihood estimator: q = softmax(t*delta/2, b, -t*delta/2), delta in nats.
pub(super) fn likelihood(delta: f64, scale: LikelihoodScale) -> Result<Posterior, NonFinite> {
    let half = finite(scale.t * finite(delta)? / 2.0)?;
    softmax([half, scale.b, -half])
}

/// Eq. 3: the mean of the three evidences.
pub(super) fn s_prism(dimensions: &DimensionVerdicts) -> f64 {
    Dimension::ALL.iter().map(|dimension| dimensions.get(*dimension).evidence).sum::<f64>() / 3.0
}

/// The dimension of least evidence; the first in canonical order on a tie.
pub(super) fn weakest(dimensions: &DimensionVerdicts) -> Dimension {
    let [first, rest @ ..] = Dimension::ALL;
    let evidence = |dimension: Dimension| dimensions.get(dimension).evidence;
    rest.into_iter().fold(first, |weakest, next| if evidence(next) < evidence(weakest) { next } else { weakest })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;
    use crate::prism::DimensionVerdict;

    fn close(posterior: Posterior, expected: [f64; 3]) {
        let Posterior { aligned, indeterminate, contradictory } = posterior;
        for (found, expected) in [aligned, indeterminate, contradictory].into_iter().zip(expected) {
            assert!((found - expected).abs() < 1e-15, "{found} against {expected}");
        }
    }

    fn verdict(posterior: Posterior) -> DimensionVerdict {
        DimensionVerdict { posterior, evidence: posterior.aligned, label_mass: None, label_order: vec![] }
    }

    fn verdicts(posteriors: [[f64; 3]; 3]) -> DimensionVerdicts {
        let [task_framing, interpersonal_stance, linguistic_style] =
            posteriors.map(|q| verdict(softmax(q.map(f64::ln)).unwrap()));
        DimensionVerdicts { task_framing, interpersonal_stance, linguistic_style }
    }

    /// The worked example of the paper's Figure 2, from log-scores.
    #[test]
    fn figure_2_of_the_paper() {
        let figure = verdicts([[0.62, 0.25, 0.13], [0.28, 0.52, 0.20], [0.71, 0.20, 0.09]]);
        close(figure.interpersonal_stance.posterior, [0.28, 0.52, 0.20]);
        assert!((s_prism(&figure) - 0.5367).abs() < 5e-5);
        assert_eq!(weakest(&figure), Dimension::InterpersonalStance);
    }

    #[test]
    fn a_tie_for_the_weakest_goes_to_the_first() {
        let tie = [0.2, 0.3, 0.5];
        assert_eq!(weakest(&verdicts([[0.4, 0.3, 0.3], tie, tie])), Dimension::InterpersonalStance);
        assert_eq!(weakest(&verdicts([tie, tie, tie])), Dimension::TaskFraming);
    }

    /// Expected values from Python: `e = [math.exp(v - max(x)) for v in x]; [v / sum(e) for v in e]`.
    #[test]
    fn softmax_and_likelihood_give_the_values_of_python() {
        close(softmax([1.0, 2.0, 3.0]).unwrap(), [0.09003057317038046, 0.24472847105479767, 0.6652409557748219]);
        let ours = LikelihoodScale { t: 1.0, b: 0.0 };
        close(likelihood(2.0, ours).unwrap(), [0.6652409557748219, 0.24472847105479767, 0.09003057317038046]);
        let other = LikelihoodScale { t: 0.5, b: 0.25 };
        close(likelihood(-3.0, other).unwrap(), [0.12195165230972886, 0.33149896042409155, 0.5465493872661796]);
    }

    #[test]
    fn what_is_not_finite_is_an_error() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(softmax([0.0, bad, 0.0]), Err(NonFinite));
            assert_eq!(mean([0.0, bad]), Err(NonFinite));
            assert_eq!(likelihood(bad, LikelihoodScale::default()), Err(NonFinite));
        }
        assert_eq!(mean([f64::MAX, f64::MAX]), Err(NonFinite));
        assert_eq!(mean([]), Ok(None));
    }

    #[test]
    fn huge_scores_are_safe() {
        close(softmax([1e30, -1e30, 0.0]).unwrap(), [1.0, 0.0, 0.0]);
        close(softmax([-1e30, -1e30, -1e30]).unwrap(), [1.0 / 3.0; 3]);
        close(likelihood(-1e30, LikelihoodScale::default()).unwrap(), [0.0, 0.0, 1.0]);
    }

    proptest! {
        #[test]
        fn a_posterior_sums_to_one_and_lies_between_0_and_1(scores in prop::array::uniform3(-1e30..1e30f64)) {
            let q = softmax(scores).unwrap();
            prop_assert!((q.aligned + q.indeterminate + q.contradictory - 1.0).abs() < 1e-12);
            for value in [q.aligned, q.indeterminate, q.contradictory] {
                prop_assert!((0.0..=1.0).contains(&value));
            }
        }

        #[test]
        fn the_opposite_persona_swaps_aligned_and_contradictory_bit_by_bit(scores in prop::array::uniform3(-30.0..30f64)) {
            let [a, b, c] = scores;
            let (one, other) = (softmax([a, b, c]).unwrap(), softmax([c, b, a]).unwrap());
            prop_assert_eq!(one.aligned.to_bits(), other.contradictory.to_bits());
            prop_assert_eq!(one.indeterminate.to_bits(), other.indeterminate.to_bits());
            prop_assert_eq!(one.contradictory.to_bits(), other.aligned.to_bits());
        }

        #[test]
        fn more_contrast_is_never_less_aligned(delta in -80.0..80f64, step in 0.0..10f64, t in 0.01..3f64, b in -5.0..5f64) {
            let scale = LikelihoodScale { t, b };
            let (less, more) = (likelihood(delta, scale).unwrap(), likelihood(delta + step, scale).unwrap());
            prop_assert!(more.aligned >= less.aligned - 1e-15);
            prop_assert!(more.contradictory <= less.contradictory + 1e-15);
        }

        #[test]
        fn a_mean_has_the_same_bits_in_any_order(values in prop::collection::vec(-1e6..1e6f64, 1..7), turn in 0usize..7) {
            let mut turned = values.clone();
            turned.rotate_left(turn % values.len());
            let (one, other) = (mean(values).unwrap().unwrap(), mean(turned).unwrap().unwrap());
            prop_assert_eq!(one.to_bits(), other.to_bits());
        }
    }
}
