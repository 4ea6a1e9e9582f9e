//! The guardrail: may a response be shown? Policies, and what they make of a verdict or of its failure; where the sentences
//! of a response end that is still being written. It judges nothing and knows no transport.

mod decide;
mod policies;
mod policy;
mod sentences;

pub use decide::{Checked, Decision, Ground, Ruling};
pub use policies::Policies;
pub use policy::{Fault, Measure, OnError, Policy, PolicyFields, Thresholds};
pub use sentences::Sentences;
