//! How a request is judged. Every option is part of the verdict's provenance.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Estimator of the posterior.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum EvidenceKind {
    /// Softmax over the log-scores of the label letters at the answer slot (the paper's estimator).
    LabelSlot,
    /// Bayes' rule: log-likelihood of the response under the aligned and the contradictory description.
    Likelihood,
}

/// Order of the parts inside the inverse prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum Layout {
    /// Persona, context and response first; dimension and labels last, so that prompts share their prefix.
    Shared,
    /// Labels first, context and response last, as the published implementation does.
    Released,
}

/// Which displayed orders of the three labels are scored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum LabelOrder {
    /// One order, by the published MD5 rule over the case id and the dimension key.
    Released,
    /// One order, seeded by the digest of the request's content.
    Content,
    /// Three cyclic orders, averaged in log space: cancels additive position bias.
    Cyclic,
    /// All six orders, averaged in log space.
    All,
}

/// What is subtracted from the log-scores before the softmax.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum Calibration {
    None,
    /// The log-scores that the same prompt gives to a content-free response.
    Contextual,
}

/// Scale and tie of the likelihood estimator: q = softmax(t*delta/2, b, -t*delta/2).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LikelihoodScale {
    /// Per nat; finite and above zero.
    pub t: f64,
    /// In nats; finite.
    pub b: f64,
}

/// Everything that selects how one request is judged.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Options {
    pub evidence: EvidenceKind,
    pub layout: Layout,
    pub label_order: LabelOrder,
    pub calibration: Calibration,
    /// Whether the persona itself stands in the prefix of the inverse prompt (label slot only; labels always carry it).
    pub persona_block: bool,
    pub scale: LikelihoodScale,
}

/// Fitted for SmolLM2-135M-Instruct with the built-in wording: the least mean negative log-likelihood, over the three
/// dimensions, of labels that are known by construction. Split: the first 36 groups of `b5chat_easy` and `b5chat_hard` by
/// hash; a response under its own pole is A, under the opposite pole C, another trait's response or profile B (36, 39
/// and 41 rows, equal weight a label). Grid of 0.05 in t and 0.1 in b. See docs/judge-quality.md.
impl Default for LikelihoodScale {
    fn default() -> Self {
        Self { t: 0.4, b: 0.2 }
    }
}
