//! The judge that every front end calls.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Cancel, JudgeError};
use crate::digest::Digest;
use crate::prism::{Calibration, Dimension, EvidenceKind, Group, Label, LabelOrder, Layout, Options, Verdict};

/// What a judge is opened with.
#[derive(Clone, Debug)]
pub struct JudgeConfig {
    /// Shown in verdicts; the registry name or the file name.
    pub model_name: String,
    pub model_path: PathBuf,
    /// None: the built-in wording.
    pub label_spaces: Option<PathBuf>,
    pub prompt_template: Option<PathBuf>,
    /// None: the processors this process may use.
    pub threads: Option<usize>,
    pub overrides: OptionOverrides,
}

/// Options that a caller sets; what is missing falls back to the judge's defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OptionOverrides {
    pub evidence: Option<EvidenceKind>,
    pub layout: Option<Layout>,
    pub label_order: Option<LabelOrder>,
    pub calibration: Option<Calibration>,
    pub persona_block: Option<bool>,
    pub likelihood_t: Option<f64>,
    pub likelihood_b: Option<f64>,
}

/// What a judge says of itself.
#[derive(Clone, Debug, Serialize)]
pub struct JudgeInfo {
    pub version: &'static str,
    pub model: String,
    pub model_digest: Digest,
    pub prompt_digest: Digest,
    pub label_space_digest: Digest,
    pub architecture: String,
    pub parameters: u64,
    /// Longest prompt, in tokens.
    pub context_length: usize,
    pub vocabulary: usize,
    /// The spelling of the three letters at the answer slot, e.g. ["A", "B", "C"].
    pub answer_slot: [String; 3],
    pub threads: usize,
    pub options: Options,
}

/// A verdict with everything that led to it.
#[derive(Clone, Debug)]
pub struct Explanation {
    pub verdict: Verdict,
    pub prompts: Vec<ExplainedPrompt>,
}

/// One prompt as the model saw it.
#[derive(Clone, Debug)]
pub struct ExplainedPrompt {
    pub dimension: Dimension,
    /// For the label slot: letter, label, description, in displayed order. For the likelihood: the one description
    /// that the system turn carries, with its label.
    pub labels: Vec<ShownLabel>,
    pub text: String,
    pub tokens: usize,
}

#[derive(Clone, Debug)]
pub struct ShownLabel {
    /// None for the likelihood estimator.
    pub letter: Option<String>,
    pub label: Label,
    pub description: String,
}

/// Why a judge could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Judge(#[from] JudgeError),
}

/// One model, one label space, one template: `Send + Sync`, shared by all front ends.
pub struct Judge {}

impl Judge {
    pub fn open(_config: &JudgeConfig) -> Result<Self, OpenError> {
        unimplemented!("next commit")
    }

    /// Judges a group: one result per candidate, in order. The outer error concerns the whole request.
    pub fn score(
        &self,
        _group: &Group,
        _overrides: &OptionOverrides,
        _cancel: &Cancel,
    ) -> Result<Vec<Result<Verdict, JudgeError>>, JudgeError> {
        unimplemented!("next commit")
    }

    /// Judges a group of exactly one candidate and keeps the prompts.
    pub fn explain(&self, _group: &Group, _overrides: &OptionOverrides) -> Result<Explanation, JudgeError> {
        unimplemented!("next commit")
    }

    pub fn info(&self) -> JudgeInfo {
        unimplemented!("next commit")
    }
}
