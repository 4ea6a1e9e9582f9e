//! Policies and decisions.

use tonic_types::FieldViolation;

use super::{OnWire, Violations, optional};
use crate::server::pb;
use crate::service::check::{
    Checked, Decision, Fault, Ground, Measure, OnError, Policy, PolicyFields, Ruling, Thresholds,
};

on_wire!(Decision: Allow, Warn, Block, Abstain);
on_wire!(OnError: Allow, Block);

/// A policy that came with a request.
pub fn policy(wire: pb::Policy) -> Result<Policy, Vec<FieldViolation>> {
    let mut violations = Violations::default();
    let on_error = optional(Some(wire.on_error), "policy.on_error", &mut violations).unwrap_or_default();
    let fields = PolicyFields {
        block: thresholds(wire.block),
        warn: thresholds(wire.warn),
        on_error,
        budget_ms: wire.budget_ms,
        min_tokens: wire.min_tokens,
    };
    match Policy::try_from(fields) {
        Ok(policy) => violations.finish(policy),
        Err(faults) => {
            for Fault { field, message } in faults {
                let dot = if field.is_empty() { "" } else { "." };
                violations.push(format!("policy{dot}{field}"), message);
            }
            Err(violations.0)
        }
    }
}

fn thresholds(wire: Option<pb::Thresholds>) -> Thresholds {
    let pb::Thresholds { s_prism, task_framing, interpersonal_stance, linguistic_style } = wire.unwrap_or_default();
    Thresholds { s_prism, task_framing, interpersonal_stance, linguistic_style }
}

/// The answer to a check by the policy of that name.
pub fn checked(checked: Checked, request_id: String, policy_name: String) -> pb::CheckResponse {
    let Ruling { decision, failed, reason } = checked.ruling;
    let (verdict, error) = match checked.ground {
        Ground::Verdict(verdict) => (Some(super::verdict(*verdict)), None),
        Ground::Length => (None, None),
        Ground::Error(error) => (None, Some(super::error(error))),
    };
    pb::CheckResponse {
        request_id,
        decision: decision.number(),
        reason,
        failed: failed.map_or("", Measure::name).to_owned(),
        verdict,
        error,
        policy_name,
    }
}
