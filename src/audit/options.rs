//! The options of a call in a record: as asked for, and as they were in force; and how its rewards were made.

use serde::{Deserialize, Serialize};

use super::Real;
use crate::prism::{
    Aggregation, Calibration, EvidenceKind, LabelOrder, Layout, LikelihoodScale, Options, RewardSignal, Shaping,
    ShapingError,
};
use crate::service::OptionOverrides;

/// What the caller set; null for the rest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AskedOptions {
    pub evidence: Option<EvidenceKind>,
    pub layout: Option<Layout>,
    pub label_order: Option<LabelOrder>,
    pub calibration: Option<Calibration>,
    pub persona_block: Option<bool>,
    pub likelihood_t: Option<Real>,
    pub likelihood_b: Option<Real>,
}

/// What the verdict was made under.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EffectiveOptions {
    pub evidence: EvidenceKind,
    pub layout: Layout,
    pub label_order: LabelOrder,
    pub calibration: Calibration,
    pub persona_block: bool,
    pub likelihood_t: Real,
    pub likelihood_b: Real,
}

/// How rewards were made of verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShapingRecord {
    pub weights: WeightsRecord,
    pub aggregation: Aggregation,
    pub signal: RewardSignal,
    pub group_z_score: bool,
}

/// A weight for each dimension.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WeightsRecord {
    pub task_framing: Real,
    pub interpersonal_stance: Real,
    pub linguistic_style: Real,
}

impl From<Shaping> for ShapingRecord {
    fn from(shaping: Shaping) -> Self {
        let [task_framing, interpersonal_stance, linguistic_style] = shaping.weights().map(Real);
        Self {
            weights: WeightsRecord { task_framing, interpersonal_stance, linguistic_style },
            aggregation: shaping.aggregation(),
            signal: shaping.signal(),
            group_z_score: shaping.group_z_score(),
        }
    }
}

impl TryFrom<ShapingRecord> for Shaping {
    type Error = ShapingError;

    fn try_from(record: ShapingRecord) -> Result<Self, ShapingError> {
        let WeightsRecord { task_framing, interpersonal_stance, linguistic_style } = record.weights;
        let weights = [task_framing, interpersonal_stance, linguistic_style].map(|weight| weight.0);
        Self::new(weights, record.aggregation, record.signal, record.group_z_score)
    }
}

impl From<OptionOverrides> for AskedOptions {
    fn from(overrides: OptionOverrides) -> Self {
        let OptionOverrides { evidence, layout, label_order, calibration, persona_block, likelihood_t, likelihood_b } =
            overrides;
        Self {
            evidence,
            layout,
            label_order,
            calibration,
            persona_block,
            likelihood_t: likelihood_t.map(Real),
            likelihood_b: likelihood_b.map(Real),
        }
    }
}

impl From<Options> for EffectiveOptions {
    fn from(options: Options) -> Self {
        let Options { evidence, layout, label_order, calibration, persona_block, scale: LikelihoodScale { t, b } } =
            options;
        Self { evidence, layout, label_order, calibration, persona_block, likelihood_t: Real(t), likelihood_b: Real(b) }
    }
}

impl From<EffectiveOptions> for Options {
    fn from(options: EffectiveOptions) -> Self {
        let EffectiveOptions { evidence, layout, label_order, calibration, persona_block, likelihood_t, likelihood_b } =
            options;
        let scale = LikelihoodScale { t: likelihood_t.0, b: likelihood_b.0 };
        Self { evidence, layout, label_order, calibration, persona_block, scale }
    }
}
