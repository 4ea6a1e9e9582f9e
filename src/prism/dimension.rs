//! The three dimensions and the three labels of PRISM (arXiv 2608.26674, section 3).

use serde::{Deserialize, Serialize};

/// A dimension of persona expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dimension {
    TaskFraming,
    InterpersonalStance,
    LinguisticStyle,
}

impl Dimension {
    pub const ALL: [Self; 3] = [Self::TaskFraming, Self::InterpersonalStance, Self::LinguisticStyle];

    /// The name used in proto, JSON, metrics and docs.
    pub fn name(self) -> &'static str {
        match self {
            Self::TaskFraming => "task_framing",
            Self::InterpersonalStance => "interpersonal_stance",
            Self::LinguisticStyle => "linguistic_style",
        }
    }
}

/// A label of a dimension's label space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Label {
    Aligned,
    Indeterminate,
    Contradictory,
}

impl Label {
    /// Canonical order: A, B, C.
    pub const ALL: [Self; 3] = [Self::Aligned, Self::Indeterminate, Self::Contradictory];

    pub fn name(self) -> &'static str {
        match self {
            Self::Aligned => "aligned",
            Self::Indeterminate => "indeterminate",
            Self::Contradictory => "contradictory",
        }
    }
}
