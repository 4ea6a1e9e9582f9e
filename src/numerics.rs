//! The arithmetic of the model's projections: a setting that changes every score, so that every verdict names it.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// How the projections of the decoder are stored and multiplied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum Numerics {
    /// Weights and activations in f32.
    #[default]
    F32,
    /// Weights in 8-bit integers with a scale and an offset a block, activations in 16-bit ones: faster, a third of the
    /// memory, and other bits than f32 (docs/int8.md says how far apart).
    Int8,
}

impl Numerics {
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Int8 => "int8",
        }
    }
}
