//! How the cache is set up, and what one call wants of it.

use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// What one call wants of the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum CacheControl {
    /// Take what is there; compute and keep what is not. Calls that want the same at the same time share one computation.
    #[default]
    Use,
    /// Compute, and replace what is there.
    Refresh,
    /// Compute; neither read nor write, and share with nobody.
    Off,
}

/// How large the cache is and how long it keeps things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSettings {
    /// Bytes of memory, at most; beyond that the least recently used judgement goes first. 0 keeps nothing.
    pub bytes: u64,
    /// How long a judgement is kept; None: for ever.
    pub ttl: Option<Duration>,
}

impl CacheSettings {
    /// About 100,000 judgements.
    pub const DEFAULT: Self = Self { bytes: 64 << 20, ttl: None };
}

impl Default for CacheSettings {
    fn default() -> Self {
        Self::DEFAULT
    }
}
