//! What a guardrail allows.

use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::prism::{Dimension, Verdict};

/// What a threshold is set for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    SPrism,
    Evidence(Dimension),
}

impl Measure {
    pub const ALL: [Self; 4] = [
        Self::SPrism,
        Self::Evidence(Dimension::TaskFraming),
        Self::Evidence(Dimension::InterpersonalStance),
        Self::Evidence(Dimension::LinguisticStyle),
    ];

    /// The name used in verdicts, policies and reasons.
    pub fn name(self) -> &'static str {
        match self {
            Self::SPrism => "s_prism",
            Self::Evidence(dimension) => dimension.name(),
        }
    }

    /// Its value in [0, 1].
    pub fn of(self, verdict: &Verdict) -> f64 {
        match self {
            Self::SPrism => verdict.s_prism,
            Self::Evidence(dimension) => verdict.dimensions.get(dimension).evidence,
        }
    }
}

/// Least values, each in [0, 1]; None: not asked about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Thresholds {
    pub s_prism: Option<f64>,
    pub task_framing: Option<f64>,
    pub interpersonal_stance: Option<f64>,
    pub linguistic_style: Option<f64>,
}

impl Thresholds {
    pub fn get(&self, measure: Measure) -> Option<f64> {
        match measure {
            Measure::SPrism => self.s_prism,
            Measure::Evidence(Dimension::TaskFraming) => self.task_framing,
            Measure::Evidence(Dimension::InterpersonalStance) => self.interpersonal_stance,
            Measure::Evidence(Dimension::LinguisticStyle) => self.linguistic_style,
        }
    }
}

/// What a policy says of a response that could not be judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    #[default]
    Allow,
    Block,
}

/// A policy as somebody wrote it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolicyFields {
    pub block: Thresholds,
    pub warn: Thresholds,
    pub on_error: OnError,
    /// Milliseconds; 0: no budget of its own.
    pub budget_ms: u32,
    pub min_tokens: u32,
}

/// A field of a policy that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// For example `block.s_prism`; empty for the policy as a whole.
    pub field: String,
    pub message: String,
}

/// A policy that asks for something and does not contradict itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy(PolicyFields);

impl TryFrom<PolicyFields> for Policy {
    type Error = Vec<Fault>;

    /// # Errors
    /// Every field at fault.
    fn try_from(fields: PolicyFields) -> Result<Self, Vec<Fault>> {
        let mut faults = Vec::new();
        let mut fault = |field: String, message: String| faults.push(Fault { field, message });
        for measure in Measure::ALL {
            let name = measure.name();
            for (side, thresholds) in [("block", &fields.block), ("warn", &fields.warn)] {
                if let Some(least) = thresholds.get(measure).filter(|least| !(0.0..=1.0).contains(least)) {
                    fault(format!("{side}.{name}"), format!("it is {least} and must be a number from 0 to 1"));
                }
            }
            if let (Some(block), Some(warn)) = (fields.block.get(measure), fields.warn.get(measure))
                && warn < block
            {
                let message = format!("it is {warn} and must be at least block.{name}, which is {block}");
                fault(format!("warn.{name}"), message);
            }
        }
        let asks = |thresholds: &Thresholds| Measure::ALL.iter().any(|measure| thresholds.get(*measure).is_some());
        if !asks(&fields.block) && !asks(&fields.warn) {
            let names = Measure::ALL.map(Measure::name).join(", ");
            fault(String::new(), format!("it has no threshold: set block or warn for one of {names}"));
        }
        if faults.is_empty() { Ok(Self(fields)) } else { Err(faults) }
    }
}

impl Policy {
    pub fn block(&self) -> &Thresholds {
        &self.0.block
    }

    pub fn warn(&self) -> &Thresholds {
        &self.0.warn
    }

    pub fn on_error(&self) -> OnError {
        self.0.on_error
    }

    /// Tokens from which on a response is judged.
    pub fn min_tokens(&self) -> usize {
        self.0.min_tokens as usize
    }

    /// When a judgement that begins `now` must be done, in a call that has until `deadline`.
    pub fn deadline(&self, deadline: Option<Instant>, now: Instant) -> Option<Instant> {
        let budget = Some(self.0.budget_ms).filter(|budget| *budget > 0);
        let ends = budget.and_then(|budget| now.checked_add(Duration::from_millis(budget.into())));
        [deadline, ends].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn faults(fields: PolicyFields) -> Vec<(String, String)> {
        let faults = Policy::try_from(fields).err().unwrap_or_default();
        faults.into_iter().map(|fault| (fault.field, fault.message)).collect()
    }

    fn s(least: f64) -> Thresholds {
        Thresholds { s_prism: Some(least), ..Thresholds::default() }
    }

    #[test]
    fn thresholds_are_shares_and_a_warning_comes_before_a_block() {
        for least in [0.0, 1.0, 0.5] {
            assert!(faults(PolicyFields { block: s(least), ..PolicyFields::default() }).is_empty());
            assert!(faults(PolicyFields { block: s(least), warn: s(least), ..PolicyFields::default() }).is_empty());
        }
        for least in [-1e-9, 1.000_000_1, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let found = faults(PolicyFields { block: s(least), ..PolicyFields::default() });
            assert_eq!(found, [("block.s_prism".into(), format!("it is {least} and must be a number from 0 to 1"))]);
        }
        let both = PolicyFields { block: s(0.4), warn: s(0.3), ..PolicyFields::default() };
        let message = "it is 0.3 and must be at least block.s_prism, which is 0.4";
        assert_eq!(faults(both), [("warn.s_prism".to_owned(), message.to_owned())]);
        // Of different measures they have nothing to do with each other.
        let style = Thresholds { linguistic_style: Some(0.1), ..Thresholds::default() };
        assert!(faults(PolicyFields { block: s(0.4), warn: style, ..PolicyFields::default() }).is_empty());
    }

    #[test]
    fn every_fault_is_named_and_a_policy_that_asks_for_nothing_is_one() {
        let many = PolicyFields {
            block: Thresholds { task_framing: Some(2.0), ..s(0.9) },
            warn: Thresholds { interpersonal_stance: Some(-1.0), ..s(0.1) },
            ..PolicyFields::default()
        };
        let fields: Vec<String> = faults(many).into_iter().map(|(field, _)| field).collect();
        assert_eq!(fields, ["warn.s_prism", "block.task_framing", "warn.interpersonal_stance"]);
        let nothing = faults(PolicyFields { min_tokens: 5, budget_ms: 5, ..PolicyFields::default() });
        assert_eq!(nothing.len(), 1);
        assert!(nothing[0].0.is_empty() && nothing[0].1.contains("no threshold"), "{nothing:?}");
    }

    #[test]
    fn the_earlier_of_budget_and_deadline_counts() {
        let policy = |budget_ms| Policy::try_from(PolicyFields { block: s(0.5), budget_ms, ..PolicyFields::default() });
        let (now, after) = (Instant::now(), |ms| Duration::from_millis(ms));
        let [none, short] = [0, 100].map(|budget| policy(budget).unwrap());
        assert_eq!(none.deadline(None, now), None);
        assert_eq!(none.deadline(Some(now), now), Some(now));
        assert_eq!(short.deadline(None, now), Some(now + after(100)));
        assert_eq!(short.deadline(Some(now + after(99)), now), Some(now + after(99)));
        assert_eq!(short.deadline(Some(now + after(101)), now), Some(now + after(100)));
    }
}
