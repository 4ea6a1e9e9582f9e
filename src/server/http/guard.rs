//! What a guardrail says of a judged reply: the one place to ask a policy.

use super::batch::Judged;
use super::hosts::{DIMENSIONS, evidence};
use super::query::Query;

/// Whether a reply may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    Allow,
    /// With the reason, in plain words.
    Block(String),
}

/// Decides about one reply. One that could not be judged is let through unless the caller wants it blocked; its error is
/// part of the answer either way.
pub fn rule(judged: &Judged, query: &Query) -> Ruling {
    match judged {
        Ok(verdict) if verdict.s_prism >= query.threshold => Ruling::Allow,
        Ok(verdict) => {
            let evidence = evidence(verdict);
            let weakest = DIMENSIONS.iter().zip(evidence).min_by(|(_, a), (_, b)| a.total_cmp(b));
            let weakest = weakest.map(|(dimension, value)| format!("; least: {} {value:.3}", dimension.name()));
            let weakest = weakest.unwrap_or_default();
            Ruling::Block(format!("out of persona: S is {:.3}, below {}{weakest}", verdict.s_prism, query.threshold))
        }
        Err(_) if !query.block_on_error => Ruling::Allow,
        Err(error) => Ruling::Block(format!("the reply could not be judged: {}", error.message)),
    }
}

impl Ruling {
    pub fn is_block(&self) -> bool {
        matches!(self, Self::Block(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::pb;

    fn judged(s_prism: f64) -> Judged {
        let dimension = |evidence| Some(pb::DimensionVerdict { evidence, ..pb::DimensionVerdict::default() });
        let dimensions = pb::DimensionVerdicts {
            task_framing: dimension(s_prism),
            interpersonal_stance: dimension(s_prism / 2.0),
            linguistic_style: dimension(s_prism),
        };
        Ok(pb::Verdict { s_prism, dimensions: Some(dimensions), ..pb::Verdict::default() })
    }

    #[test]
    fn a_score_below_the_threshold_blocks_and_says_why() {
        let query = Query { threshold: 0.5, ..Query::default() };
        assert_eq!(rule(&judged(0.5), &query), Ruling::Allow);
        let reason = "out of persona: S is 0.400, below 0.5; least: interpersonal_stance 0.200";
        assert_eq!(rule(&judged(0.4), &query), Ruling::Block(reason.to_owned()));
    }

    #[test]
    fn what_could_not_be_judged_passes_unless_it_must_not() {
        let error = || Err(pb::JudgeError { message: "too long".into(), ..pb::JudgeError::default() });
        assert_eq!(rule(&error(), &Query::default()), Ruling::Allow);
        let strict = Query { block_on_error: true, ..Query::default() };
        assert_eq!(rule(&error(), &strict), Ruling::Block("the reply could not be judged: too long".into()));
    }
}
