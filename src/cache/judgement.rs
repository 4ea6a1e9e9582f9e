//! What is kept of a verdict.

use crate::prism::{Conclusion, DimensionVerdict};

/// A verdict without what belongs to one call: no id, no provenance (every field of it is in the key), no count of
/// computed tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    pub conclusion: Conclusion,
    /// Tokens of all prompts of the candidate.
    pub prompt_tokens: u64,
}

impl Judgement {
    /// Whether every number is finite. Nothing else is kept.
    pub fn is_finite(&self) -> bool {
        let finite = |dimension: &DimensionVerdict| {
            let shares = dimension.posterior;
            let numbers = [shares.aligned, shares.indeterminate, shares.contradictory, dimension.evidence];
            numbers.into_iter().chain(dimension.label_mass).all(f64::is_finite)
        };
        let dimensions = &self.conclusion.dimensions;
        self.conclusion.s_prism.is_finite()
            && [&dimensions.task_framing, &dimensions.interpersonal_stance, &dimensions.linguistic_style]
                .into_iter()
                .all(finite)
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        let dimensions = &self.conclusion.dimensions;
        [&dimensions.task_framing, &dimensions.interpersonal_stance, &dimensions.linguistic_style]
            .into_iter()
            .map(|dimension| match std::mem::size_of_val(dimension.label_order.as_slice()) {
                0 => 0,
                // No allocation takes less room than this.
                bytes => bytes.max(32),
            })
            .sum()
    }
}
