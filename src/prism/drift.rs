//! How a persona holds over the turns of a dialogue: the curve of a value, in numbers.

use serde::Serialize;

use super::{Dimension, Verdict};

/// A curve over the judged turns of a dialogue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Drift {
    /// Mean over the turns that have a value.
    pub mean: f64,
    /// Change from one judged turn to the next: the slope of the line of least squares; 0 for a single value.
    pub slope: f64,
    /// The last value less the first.
    pub change: f64,
    pub lowest: f64,
    /// The place in the dialogue of the first turn that has the lowest value, from 0.
    pub lowest_turn: usize,
}

impl Drift {
    /// `curve` has the judged turns in order, each with its place in the dialogue and its value. A turn without a value
    /// keeps its place on the line. None if no turn has one.
    pub fn of(curve: &[(usize, Option<f64>)]) -> Option<Self> {
        let points = || curve.iter().enumerate().filter_map(|(at, (_, value))| Some((at as f64, (*value)?)));
        let (_, first) = points().next()?;
        let count = points().count() as f64;
        // From the first value on, so that a flat curve is flat to the last bit.
        let middle = points().map(|(at, _)| at).sum::<f64>() / count;
        let above = points().map(|(_, value)| value - first).sum::<f64>() / count;
        let [products, squares] = points().fold([0.0; 2], |[products, squares], (at, value)| {
            let (x, y) = (at - middle, value - first - above);
            [products + x * y, squares + x * x]
        });
        let valued = curve.iter().filter_map(|(turn, value)| Some((*turn, (*value)?)));
        let (lowest_turn, lowest) = valued.reduce(|lowest, next| if next.1 < lowest.1 { next } else { lowest })?;
        let (_, last) = points().next_back()?;
        Some(Self {
            mean: first + above,
            slope: if squares > 0.0 { products / squares } else { 0.0 },
            change: last - first,
            lowest,
            lowest_turn,
        })
    }
}

/// The curves of S_PRISM and of the evidence for each dimension.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DialogueDrift {
    pub s_prism: Drift,
    pub task_framing: Drift,
    pub interpersonal_stance: Drift,
    pub linguistic_style: Drift,
}

impl DialogueDrift {
    /// Of the judged turns in order, each with its place in the dialogue and, unless it failed, its verdict. None if all
    /// failed.
    pub fn of(turns: &[(usize, Option<&Verdict>)]) -> Option<Self> {
        let curve = |value: &dyn Fn(&Verdict) -> f64| {
            let points: Vec<_> = turns.iter().map(|(turn, verdict)| (*turn, verdict.map(value))).collect();
            Drift::of(&points)
        };
        let evidence = |dimension| curve(&|verdict: &Verdict| verdict.dimensions.get(dimension).evidence);
        Some(Self {
            s_prism: curve(&|verdict| verdict.s_prism)?,
            task_framing: evidence(Dimension::TaskFraming)?,
            interpersonal_stance: evidence(Dimension::InterpersonalStance)?,
            linguistic_style: evidence(Dimension::LinguisticStyle)?,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn drift(curve: &[(usize, Option<f64>)]) -> Drift {
        Drift::of(curve).unwrap()
    }

    #[test]
    fn a_straight_line_has_its_own_slope_and_ends() {
        let found = drift(&[(1, Some(0.75)), (3, Some(0.5)), (5, Some(0.25)), (7, Some(0.0))]);
        let expected = Drift { mean: 0.375, slope: -0.25, change: -0.75, lowest: 0.0, lowest_turn: 7 };
        assert_eq!(found, expected);
    }

    /// By hand: x = 0, 1, 2, 3 with mean 3/2; y = 1/2, 1, 0, 1/4 with mean 7/16. Sum of (x - 3/2) y = -3/4 - 1/2 + 0 + 3/8
    /// = -7/8; sum of squares 5. The slope is -7/40.
    #[test]
    fn a_crooked_curve_has_the_slope_of_least_squares() {
        let found = drift(&[(0, Some(0.5)), (2, Some(1.0)), (3, Some(0.0)), (9, Some(0.25))]);
        assert_eq!((found.mean, found.change, found.lowest, found.lowest_turn), (0.4375, -0.25, 0.0, 3));
        assert!((found.slope + 7.0 / 40.0).abs() < 1e-16, "{}", found.slope);
    }

    /// By hand: x = 0, 2 with y = 0, 1: the slope is 1/2, not 1.
    #[test]
    fn a_turn_that_failed_keeps_its_place_and_has_no_part() {
        let found = drift(&[(0, Some(0.0)), (1, None), (2, Some(1.0)), (3, None)]);
        assert_eq!(found, Drift { mean: 0.5, slope: 0.5, change: 1.0, lowest: 0.0, lowest_turn: 0 });
        assert_eq!(Drift::of(&[(0, None), (4, None)]), None);
        assert_eq!(Drift::of(&[]), None);
    }

    #[test]
    fn a_single_turn_is_its_own_mean_and_does_not_change() {
        assert_eq!(drift(&[(4, Some(0.3))]), Drift { mean: 0.3, slope: 0.0, change: 0.0, lowest: 0.3, lowest_turn: 4 });
    }

    #[test]
    fn equal_values_are_flat_to_the_last_bit_and_the_first_of_them_is_the_lowest() {
        let curve: Vec<_> = (0..7).map(|turn| (2 * turn + 1, Some(0.1))).collect();
        assert_eq!(drift(&curve), Drift { mean: 0.1, slope: 0.0, change: 0.0, lowest: 0.1, lowest_turn: 1 });
    }
}
