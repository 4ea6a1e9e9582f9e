//! Rewards: numbers that are made of verdicts for those who train on them. The verdicts stay as they are.

use serde::{Deserialize, Serialize};

use super::{Dimension, DimensionVerdict, DimensionVerdicts, Verdict};

/// What a reward is made of, for each dimension.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RewardSignal {
    /// The evidence, q_d(aligned), in [0, 1].
    #[default]
    Evidence,
    /// q_d(aligned) - q_d(contradictory), in [-1, 1].
    Margin,
}

/// How a reward is made of the dimensions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aggregation {
    /// The weighted arithmetic mean.
    #[default]
    Mean,
    /// The least of the dimensions whose weight is above zero; the size of a weight does not count.
    Min,
    /// The weighted geometric mean, of the evidence only; 0 if a dimension whose weight is above zero has no evidence.
    Geometric,
}

/// How a reward is made of a verdict. The default gives S_PRISM, to the last bit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shaping {
    weights: [f64; 3],
    aggregation: Aggregation,
    signal: RewardSignal,
    group_z_score: bool,
}

/// A shaping that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ShapingError {
    #[error("the weight is {weight}; it must be finite and at least 0")]
    Weight { dimension: Dimension, weight: f64 },
    #[error("all three weights are 0; at least one must be above 0")]
    NoWeight,
    #[error("the geometric mean is of the evidence only, and the signal is the margin, which may be below 0")]
    GeometricMargin,
}

impl ShapingError {
    /// The field of the request at fault.
    pub fn field(&self) -> String {
        match self {
            Self::Weight { dimension, .. } => format!("shaping.weights.{}", dimension.name()),
            Self::NoWeight => "shaping.weights".to_owned(),
            Self::GeometricMargin => "shaping.aggregation".to_owned(),
        }
    }
}

impl Default for Shaping {
    fn default() -> Self {
        let (aggregation, signal) = Default::default();
        Self { weights: [1.0; 3], aggregation, signal, group_z_score: false }
    }
}

impl Shaping {
    /// `weights` are in the order of [`Dimension::ALL`]; only their ratios count. With `group_z_score`, rewards are
    /// compared within their group ([`z_scores`]).
    ///
    /// # Errors
    /// A weight is below 0 or not finite, all are 0, or a geometric mean of margins is asked for.
    pub fn new(
        weights: [f64; 3],
        aggregation: Aggregation,
        signal: RewardSignal,
        group_z_score: bool,
    ) -> Result<Self, ShapingError> {
        for (dimension, weight) in Dimension::ALL.into_iter().zip(weights) {
            if !(weight.is_finite() && weight >= 0.0) {
                return Err(ShapingError::Weight { dimension, weight });
            }
        }
        if weights == [0.0; 3] {
            return Err(ShapingError::NoWeight);
        }
        if (aggregation, signal) == (Aggregation::Geometric, RewardSignal::Margin) {
            return Err(ShapingError::GeometricMargin);
        }
        Ok(Self { weights, aggregation, signal, group_z_score })
    }

    pub fn weights(&self) -> [f64; 3] {
        self.weights
    }

    pub fn aggregation(&self) -> Aggregation {
        self.aggregation
    }

    pub fn signal(&self) -> RewardSignal {
        self.signal
    }

    pub fn group_z_score(&self) -> bool {
        self.group_z_score
    }

    /// What logs call it. The weights are not in it.
    pub fn name(&self) -> &'static str {
        use Aggregation::{Geometric, Mean, Min};
        use RewardSignal::{Evidence, Margin};
        match (self.aggregation, self.signal, self.group_z_score) {
            (Mean, Evidence, false) => "mean_evidence",
            (Mean, Evidence, true) => "mean_evidence_z",
            (Mean, Margin, false) => "mean_margin",
            (Mean, Margin, true) => "mean_margin_z",
            (Min, Evidence, false) => "min_evidence",
            (Min, Evidence, true) => "min_evidence_z",
            (Min, Margin, false) => "min_margin",
            (Min, Margin, true) => "min_margin_z",
            (Geometric, _, false) => "geometric_evidence",
            (Geometric, _, true) => "geometric_evidence_z",
        }
    }

    /// The reward of one verdict by itself: in [0, 1] of the evidence, in [-1, 1] of the margin. Always finite.
    pub fn reward(&self, dimensions: &DimensionVerdicts) -> f64 {
        // Weights of any size become shares of the largest, whose sums cannot overflow.
        let largest = self.weights.into_iter().fold(0.0, f64::max);
        let weighted = Dimension::ALL.into_iter().zip(self.weights).filter(|(_, weight)| *weight > 0.0);
        let parts: Vec<(f64, f64)> =
            weighted.map(|(dimension, weight)| (weight / largest, self.signal.of(dimensions.get(dimension)))).collect();
        let mean = |value: fn(f64) -> f64| {
            let [sum, weights] = parts
                .iter()
                .fold([0.0; 2], |[sum, weights], (weight, part)| [sum + weight * value(*part), weights + weight]);
            sum / weights
        };
        match self.aggregation {
            Aggregation::Mean => mean(|part| part),
            Aggregation::Min => parts.iter().map(|(_, part)| *part).fold(f64::INFINITY, f64::min),
            // Its logarithm would be infinite.
            Aggregation::Geometric if parts.iter().any(|(_, part)| *part <= 0.0) => 0.0,
            Aggregation::Geometric => mean(f64::ln).exp(),
        }
    }

    /// The rewards of a group's results, in order; None where there is no verdict. Such a candidate takes no part in
    /// z-scores.
    pub fn rewards<E>(&self, results: &[Result<Verdict, E>]) -> Vec<Option<f64>> {
        let reward = |result: &Result<Verdict, E>| Some(self.reward(&result.as_ref().ok()?.dimensions));
        let mut rewards: Vec<Option<f64>> = results.iter().map(reward).collect();
        if self.group_z_score {
            let scores = z_scores(&rewards.iter().copied().flatten().collect::<Vec<_>>());
            rewards.iter_mut().flatten().zip(scores).for_each(|(reward, score)| *reward = score);
        }
        rewards
    }
}

impl RewardSignal {
    fn of(self, verdict: &DimensionVerdict) -> f64 {
        match self {
            Self::Evidence => verdict.evidence,
            Self::Margin => verdict.posterior.aligned - verdict.posterior.contradictory,
        }
    }
}

/// (value - mean) / standard deviation for each of some finite values, with n - 1 in the denominator; 0 for all if they
/// are equal or there is only one. No bit depends on their order.
pub fn z_scores(values: &[f64]) -> Vec<f64> {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let spread = values.iter().map(|value| value - least).fold(0.0, f64::max);
    if spread == 0.0 {
        return vec![0.0; values.len()];
    }
    // From 0 to 1: equal values cannot differ by their rounding, and no square is lost however close the values are.
    let scaled: Vec<f64> = values.iter().map(|value| (value - least) / spread).collect();
    let mean = sum(scaled.iter().copied()) / values.len() as f64;
    let squares = sum(scaled.iter().map(|value| (value - mean).powi(2)));
    let deviation = (squares / (values.len() - 1) as f64).sqrt();
    scaled.into_iter().map(|value| (value - mean) / deviation).collect()
}

/// A sum that has the same bits in any order.
fn sum(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.into_iter().sum()
}

#[cfg(test)]
#[path = "shaping_tests.rs"]
mod tests;
