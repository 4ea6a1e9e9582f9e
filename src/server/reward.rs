//! Wire messages to shapings.

use super::convert::{OnWire, Violations, optional};
use super::pb;
use crate::prism::{Aggregation, RewardSignal, Shaping};

/// How the rewards of a group are made.
pub fn of_group(wire: Option<pb::Shaping>, violations: &mut Violations) -> Option<Shaping> {
    let wire = wire?;
    let weights = wire
        .weights
        .map_or([1.0; 3], |weights| [weights.task_framing, weights.interpersonal_stance, weights.linguistic_style]);
    let aggregation = known::<Aggregation>(wire.aggregation, "shaping.aggregation", violations)?;
    let signal = known::<RewardSignal>(wire.signal, "shaping.signal", violations)?;
    match Shaping::new(weights, aggregation, signal, wire.group_z_score) {
        Ok(shaping) => Some(shaping),
        Err(error) => {
            violations.push(error.field(), error.to_string());
            None
        }
    }
}

/// How the reward of a single response is made.
pub fn of_one(wire: Option<pb::Shaping>, violations: &mut Violations) -> Option<Shaping> {
    if wire.as_ref().is_some_and(|wire| wire.group_z_score) {
        let message = "it compares the candidates of a group, and this request has one: use ScoreGroup or Rank";
        violations.push("shaping.group_z_score", message);
    }
    of_group(wire, violations)
}

/// A value, or its default for UNSPECIFIED; None for one that is not known.
fn known<T: OnWire + Default>(number: i32, field: &str, violations: &mut Violations) -> Option<T> {
    if number == 0 { Some(T::default()) } else { optional(Some(number), field, violations) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn wire() -> pb::Shaping {
        pb::Shaping {
            weights: Some(pb::DimensionWeights { task_framing: 3.0, interpersonal_stance: 0.0, linguistic_style: 0.5 }),
            aggregation: pb::Aggregation::Min as i32,
            signal: pb::RewardSignal::Margin as i32,
            group_z_score: true,
        }
    }

    /// The fields at fault.
    fn refused(read: fn(Option<pb::Shaping>, &mut Violations) -> Option<Shaping>, wire: pb::Shaping) -> Vec<String> {
        let mut violations = Violations::default();
        assert_eq!(read(Some(wire), &mut violations), None);
        let found = violations.finish(()).unwrap_err();
        found.into_iter().map(|violation| format!("{}: {}", violation.field, violation.description)).collect()
    }

    #[test]
    fn every_part_arrives_and_what_is_left_out_has_its_default() {
        let mut violations = Violations::default();
        let expected = Shaping::new([3.0, 0.0, 0.5], Aggregation::Min, RewardSignal::Margin, true).unwrap();
        assert_eq!(of_group(Some(wire()), &mut violations), Some(expected));
        assert_eq!(of_group(Some(pb::Shaping::default()), &mut violations), Some(Shaping::default()));
        assert_eq!(of_one(Some(pb::Shaping::default()), &mut violations), Some(Shaping::default()));
        assert_eq!((of_group(None, &mut violations), of_one(None, &mut violations)), (None, None));
        assert!(violations.finish(()).is_ok());
    }

    #[test]
    fn what_cannot_be_is_named() {
        let unset = pb::Shaping { weights: Some(pb::DimensionWeights::default()), ..wire() };
        assert_eq!(
            refused(of_group, unset),
            ["shaping.weights: all three weights are 0; at least one must be above 0"]
        );
        let unknown = pb::Shaping { aggregation: 9, ..wire() };
        assert_eq!(
            refused(of_group, unknown),
            ["shaping.aggregation: 9 is not known here; allowed are AGGREGATION_MEAN, AGGREGATION_MIN, \
              AGGREGATION_GEOMETRIC"]
        );
        let unknown = pb::Shaping { signal: -1, ..wire() };
        assert_eq!(
            refused(of_group, unknown),
            ["shaping.signal: -1 is not known here; allowed are REWARD_SIGNAL_EVIDENCE, REWARD_SIGNAL_MARGIN"]
        );
        let geometric = pb::Shaping { aggregation: pb::Aggregation::Geometric as i32, ..wire() };
        assert!(refused(of_group, geometric)[0].starts_with("shaping.aggregation: the geometric mean is of the"));
    }

    #[test]
    fn a_single_response_has_nothing_to_be_compared_with() {
        let mut violations = Violations::default();
        of_one(Some(wire()), &mut violations);
        let found = violations.finish(()).unwrap_err();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].field, "shaping.group_z_score");
    }
}
