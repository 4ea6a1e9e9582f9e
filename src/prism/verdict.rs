//! The verdict: names are fixed and equal on every transport.

use serde::{Deserialize, Serialize};

use super::{Dimension, Label};
use crate::digest::Digest;
use crate::numerics::Numerics;

/// Probabilities of the three labels of one dimension; they sum to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Posterior {
    pub aligned: f64,
    pub indeterminate: f64,
    pub contradictory: f64,
}

/// One dimension of a verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DimensionVerdict {
    #[serde(flatten)]
    pub posterior: Posterior,
    /// e_d = q_d(aligned), Eq. 2, in [0, 1].
    pub evidence: f64,
    /// Share of the next-token probability that the three labels hold at the answer slot, in [0, 1], mean over the
    /// displayed orders. None for the likelihood estimator, which reads no answer slot.
    pub label_mass: Option<f64>,
    /// The displayed orders that were scored, first letter first. Empty for the likelihood estimator.
    pub label_order: Vec<[Label; 3]>,
}

impl DimensionVerdict {
    /// What follows from a posterior: Eq. 2.
    pub fn new(posterior: Posterior, label_mass: Option<f64>, label_order: Vec<[Label; 3]>) -> Self {
        Self { posterior, evidence: posterior.aligned, label_mass, label_order }
    }
}

/// The three dimensions, by name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DimensionVerdicts {
    pub task_framing: DimensionVerdict,
    pub interpersonal_stance: DimensionVerdict,
    pub linguistic_style: DimensionVerdict,
}

impl DimensionVerdicts {
    pub fn get(&self, dimension: Dimension) -> &DimensionVerdict {
        match dimension {
            Dimension::TaskFraming => &self.task_framing,
            Dimension::InterpersonalStance => &self.interpersonal_stance,
            Dimension::LinguisticStyle => &self.linguistic_style,
        }
    }
}

/// What judged, so that a verdict can be replayed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Provenance {
    pub model: String,
    pub model_digest: Digest,
    /// Prompt template, chat template, answer slot, persona block, t and b of the likelihood.
    pub prompt_digest: Digest,
    pub label_space_digest: Digest,
    pub evidence: super::EvidenceKind,
    pub layout: super::Layout,
    pub label_order: super::LabelOrder,
    pub calibration: super::Calibration,
    /// Arithmetic of the model.
    pub numerics: Numerics,
}

/// Tokens of one judgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenCounts {
    /// Tokens of all prompts of this candidate, as if each were run alone.
    pub prompt: u64,
    /// Tokens that went through the model for this candidate: those that no earlier candidate, no other call of the same
    /// tenant and no cache had computed already. 0 for a verdict from the verdict cache.
    pub computed: u64,
}

/// How often something stands in a text that people do not see or that imitates the model's own structure. It was judged
/// as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextCounts {
    /// Control characters (C0, C1, delete) other than tab, line feed and the carriage return before one.
    pub control: u64,
    /// Characters that change the direction in which text is shown.
    pub bidi: u64,
    /// Characters that are not shown: zero width, tags, variation selectors and others that Unicode calls
    /// default-ignorable. Joiners after letters that they shape and after emoji do not count, nor does an emoji's style.
    pub invisible: u64,
    /// Texts that are spelt like a control or user-defined token of the model.
    pub special_tokens: u64,
}

impl std::iter::Sum for TextCounts {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), |sum, other| Self {
            control: sum.control + other.control,
            bidi: sum.bidi + other.bidi,
            invisible: sum.invisible + other.invisible,
            special_tokens: sum.special_tokens + other.special_tokens,
        })
    }
}

/// What is odd about the texts of one judgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextWarnings {
    /// In the response.
    pub response: TextCounts,
    /// In the persona and the context, which a group shares.
    pub request: TextCounts,
}

/// The judgement of one candidate response.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    pub id: String,
    /// S_PRISM, Eq. 3: the mean of the three evidences, in [0, 1].
    pub s_prism: f64,
    pub dimensions: DimensionVerdicts,
    /// The dimension of least evidence; the first in canonical order on a tie.
    pub weakest_dimension: Dimension,
    pub judge: Provenance,
    pub tokens: TokenCounts,
    /// Whether the judgement was made for another call, or for the same text earlier in this one: nothing was computed.
    pub cached: bool,
    /// Of this call's own texts, whether or not the verdict is from the cache.
    pub warnings: TextWarnings,
}
