//! The engine's settings.

use std::time::Duration;

/// Sizes are in tokens of one token tree: text that prompts share counts once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineSettings {
    /// Tokens of one forward pass, at most. Work can be stopped or overtaken between passes: smaller is more prompt,
    /// larger is a little faster.
    pub chunk_tokens: usize,
    /// Tokens of one lane that are merged into the model's tree at a time; what arrives beyond that waits in its lane.
    /// Guard work never waits.
    pub max_batch_tokens: usize,
    /// How long an idle model waits after the first arrival for others to share a pass with. Guard work never waits.
    pub batch_delay: Duration,
    /// Bytes of keys and values that may be held, those in use included.
    pub kv_bytes: usize,
    /// Tokens that may wait or run in the lanes guard, train and batch. A piece of work that is larger than its lane
    /// is taken when the lane is empty.
    pub queue_tokens: [usize; 3],
}

impl EngineSettings {
    pub const DEFAULT: Self = Self {
        chunk_tokens: 256,
        max_batch_tokens: 16_384,
        batch_delay: Duration::ZERO,
        kv_bytes: 512 << 20,
        queue_tokens: [1 << 18, 1 << 22, 1 << 22],
    };
}

impl Default for EngineSettings {
    fn default() -> Self {
        Self::DEFAULT
    }
}
