//! What a judge is opened with, and what a call may override.

use std::path::PathBuf;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::{CacheSettings, EngineSettings, LimitSettings, RedisSettings};
use crate::numerics::Numerics;
use crate::prism::{Calibration, EvidenceKind, LabelOrder, Layout, LikelihoodScale, Options};

/// Parameters under which a backbone's letters are at chance, so that the likelihood is its default evidence.
/// Measured for 135M (docs/judge-quality.md); the paper's 7B judges read letters well.
const SMALL_BACKBONE: u64 = 1_000_000_000;

/// What a judge is opened with.
#[derive(Clone, Debug)]
pub struct JudgeConfig {
    /// Shown in verdicts; the registry name or the file name.
    pub model_name: String,
    pub model_path: PathBuf,
    /// None: the built-in wording.
    pub label_spaces: Option<PathBuf>,
    pub prompt_template: Option<PathBuf>,
    /// None: the processors this process may use, cgroup quota included.
    pub threads: Option<usize>,
    pub numerics: Numerics,
    pub answer_slot: AnswerSlot,
    pub overrides: OptionOverrides,
    pub engine: EngineSettings,
    pub cache: CacheSettings,
    /// The second tier of the verdict cache.
    pub redis: Option<RedisSettings>,
    pub limits: LimitSettings,
}

/// Spelling of the letters at the answer slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum AnswerSlot {
    /// The spelling that holds most probability over a few probe prompts when the model loads.
    #[default]
    Auto,
    /// `A`, `B`, `C`.
    Bare,
    /// ` A`, ` B`, ` C`, as the published implementation scores.
    Space,
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
    /// Per nat; finite and above zero.
    pub likelihood_t: Option<f64>,
    /// In nats; finite.
    pub likelihood_b: Option<f64>,
}

impl OptionOverrides {
    /// `defaults` with what this caller sets.
    pub fn over(&self, defaults: &Options) -> Options {
        Options {
            evidence: self.evidence.unwrap_or(defaults.evidence),
            layout: self.layout.unwrap_or(defaults.layout),
            label_order: self.label_order.unwrap_or(defaults.label_order),
            calibration: self.calibration.unwrap_or(defaults.calibration),
            persona_block: self.persona_block.unwrap_or(defaults.persona_block),
            scale: LikelihoodScale {
                t: self.likelihood_t.unwrap_or(defaults.scale.t),
                b: self.likelihood_b.unwrap_or(defaults.scale.b),
            },
        }
    }
}

impl From<Options> for OptionOverrides {
    /// Everything set, so that no default counts.
    fn from(options: Options) -> Self {
        let Options { evidence, layout, label_order, calibration, persona_block, scale: LikelihoodScale { t, b } } =
            options;
        Self {
            evidence: Some(evidence),
            layout: Some(layout),
            label_order: Some(label_order),
            calibration: Some(calibration),
            persona_block: Some(persona_block),
            likelihood_t: Some(t),
            likelihood_b: Some(b),
        }
    }
}

/// The options of a backbone that nobody configured.
pub fn defaults(parameters: u64) -> Options {
    let small = parameters < SMALL_BACKBONE;
    Options {
        evidence: if small { EvidenceKind::Likelihood } else { EvidenceKind::LabelSlot },
        layout: Layout::Shared,
        label_order: LabelOrder::Content,
        calibration: Calibration::None,
        persona_block: false,
        scale: LikelihoodScale::default(),
    }
}
