//! What a policy says of a verdict, of a short response, and of a failure.

use super::{Measure, OnError, Policy, Thresholds};
use crate::prism::Verdict;
use crate::service::JudgeError;
use crate::telemetry::catalogue::CHECKS;

/// What a guardrail says of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    Allow,
    Warn,
    Block,
    /// Too short to be judged.
    Abstain,
}

impl Decision {
    /// As the metrics call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Warn => "warn",
            Self::Block => "block",
            Self::Abstain => "abstain",
        }
    }
}

/// A decision, and why. The reason is one sentence with the numbers and has nothing of the caller's texts.
#[derive(Clone, Debug, PartialEq)]
pub struct Ruling {
    pub decision: Decision,
    /// What fell short: of all that did, the one that misses its threshold by most. None where nothing did.
    pub failed: Option<Measure>,
    pub reason: String,
}

/// What a ruling stands on.
#[derive(Clone, Debug)]
pub enum Ground {
    Verdict(Box<Verdict>),
    /// The response is too short.
    Length,
    /// There is no verdict: whatever is decided, it is no pass.
    Error(JudgeError),
}

impl Ground {
    /// As the metrics call it.
    fn name(&self) -> &'static str {
        match self {
            Self::Verdict(_) => "verdict",
            Self::Length => "length",
            Self::Error(_) => "error",
        }
    }
}

/// The answer to a check.
#[derive(Clone, Debug)]
pub struct Checked {
    pub ruling: Ruling,
    pub ground: Ground,
}

impl Checked {
    /// Counts it, once.
    fn new(ruling: Ruling, ground: Ground) -> Self {
        CHECKS.increment([ruling.decision.name(), ground.name()]);
        Self { ruling, ground }
    }
}

impl Policy {
    /// What this policy says of a verdict.
    pub fn decide(&self, verdict: &Verdict) -> Ruling {
        for (decision, name, thresholds) in
            [(Decision::Block, "block", self.block()), (Decision::Warn, "warn", self.warn())]
        {
            if let Some((failed, reason)) = short_of(thresholds, name, verdict) {
                return Ruling { decision, failed: Some(failed), reason };
            }
        }
        let reached = Measure::ALL.into_iter().filter_map(|measure| {
            // Where both are set, this one is the higher.
            let least = self.warn().get(measure).or(self.block().get(measure))?;
            Some(format!("{} {} (at least {least})", measure.name(), shown(measure.of(verdict), least)))
        });
        let reason = format!("nothing falls short: {}", reached.collect::<Vec<_>>().join(", "));
        Ruling { decision: Decision::Allow, failed: None, reason }
    }

    /// The answer to a check of a response of so many tokens, if that is too short for this policy.
    pub fn abstain(&self, tokens: usize) -> Option<Checked> {
        let least = self.min_tokens();
        (tokens < least).then(|| {
            let reason = format!("not judged: the response has {tokens} tokens and this policy judges from {least} on");
            Checked::new(Ruling { decision: Decision::Abstain, failed: None, reason }, Ground::Length)
        })
    }

    /// The answer to a check that was judged, or should have been.
    ///
    /// # Errors
    /// The caller's own: a wrong field, or a caller who has gone away.
    pub fn conclude(&self, judged: Result<Verdict, JudgeError>) -> Result<Checked, JudgeError> {
        match judged {
            Ok(verdict) => Ok(Checked::new(self.decide(&verdict), Ground::Verdict(Box::new(verdict)))),
            Err(error) if error.code.is_callers() => Err(error),
            Err(error) => {
                let (decision, says) = match self.on_error() {
                    OnError::Allow => (Decision::Allow, "allows"),
                    OnError::Block => (Decision::Block, "blocks"),
                };
                let reason = format!("not judged ({}): this policy {says} what it cannot judge", error.code.name());
                Ok(Checked::new(Ruling { decision, failed: None, reason }, Ground::Error(error)))
            }
        }
    }
}

/// The measure that misses its threshold by most, the first of equals, and a sentence about it.
fn short_of(thresholds: &Thresholds, name: &str, verdict: &Verdict) -> Option<(Measure, String)> {
    let short = Measure::ALL.into_iter().filter_map(|measure| {
        let (value, least) = (measure.of(verdict), thresholds.get(measure)?);
        (value < least).then_some((measure, value, least))
    });
    let short: Vec<(Measure, f64, f64)> = short.collect();
    // From the end, because of equals `max_by` takes the last.
    let missing = |(_, value, least): &(Measure, f64, f64)| least - value;
    let (measure, value, least) = *short.iter().rev().max_by(|a, b| missing(a).total_cmp(&missing(b)))?;
    let mut reason = format!("{} is {}, below the {name} threshold {least}", measure.name(), shown(value, least));
    if let more @ 1.. = short.len() - 1 {
        reason.push_str(&format!("; {more} more fall short by less"));
    }
    Some((measure, reason))
}

/// A value with four decimals, or with as many as it takes to stand on its own side of a threshold.
fn shown(value: f64, least: f64) -> String {
    let short = format!("{value:.4}");
    let same = short.parse::<f64>().is_ok_and(|short| (short < least) == (value < least));
    if same { short } else { value.to_string() }
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
