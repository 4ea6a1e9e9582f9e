//! The three lanes of work.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Who waits for the answer, in the order in which the model serves them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum Lane {
    /// A person, through a chat product: overtakes everything else at the next chunk.
    Guard,
    /// A training run.
    #[default]
    Train,
    /// Nobody: files, nightly evaluations. Gets at least one in eight of the chunks that guard work leaves.
    Batch,
}

impl Lane {
    pub const ALL: [Self; 3] = [Self::Guard, Self::Train, Self::Batch];

    pub fn name(self) -> &'static str {
        match self {
            Self::Guard => "guard",
            Self::Train => "train",
            Self::Batch => "batch",
        }
    }
}
