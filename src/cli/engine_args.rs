//! The flags of the engine and of the verdict cache, for the server.

use std::time::Duration;

use clap::Args;

use super::CliError;
use super::values::whole;
use crate::service::{CacheSettings, EngineSettings};

const MIB: usize = 1 << 20;

const ENGINE: EngineSettings = EngineSettings::DEFAULT;

/// The verdict cache's default size, in MiB.
const VERDICTS: usize = CacheSettings::DEFAULT.bytes as usize / MIB;

/// Most that any count or size may be.
const MOST: usize = 1 << 40;

/// How the model's time and memory are shared between calls.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Engine and caches")]
pub struct EngineArgs {
    /// Tokens of one forward pass, at most: work can be stopped or overtaken between passes.
    #[arg(long, value_name = "N")]
    #[arg(default_value_t = ENGINE.chunk_tokens, value_parser = whole(1, 65_536))]
    chunk_tokens: usize,
    /// Tokens of one lane that are worked on at a time; what arrives beyond that waits. Guard calls never wait.
    #[arg(long, value_name = "N")]
    #[arg(default_value_t = ENGINE.max_batch_tokens, value_parser = whole(1, MOST))]
    max_batch_tokens: usize,
    /// How long an idle model waits after the first call for others to run with it. Guard calls never wait.
    #[arg(long, value_name = "MS")]
    #[arg(default_value_t = 0, value_parser = whole(0, 10_000))]
    batch_delay_ms: usize,
    /// Memory for the keys and values of text under way and of text that may come again, in MiB.
    #[arg(long, value_name = "MIB")]
    #[arg(default_value_t = ENGINE.kv_bytes / MIB, value_parser = whole(1, MOST / MIB))]
    kv_cache_mb: usize,
    /// Tokens that may wait or run in the guard lane; a call beyond that is refused at once, but for one that comes alone.
    #[arg(long, value_name = "N")]
    #[arg(default_value_t = ENGINE.queue_tokens[0], value_parser = whole(1, MOST))]
    queue_tokens_guard: usize,
    /// The same for the train lane.
    #[arg(long, value_name = "N")]
    #[arg(default_value_t = ENGINE.queue_tokens[1], value_parser = whole(1, MOST))]
    queue_tokens_train: usize,
    /// The same for the batch lane.
    #[arg(long, value_name = "N")]
    #[arg(default_value_t = ENGINE.queue_tokens[2], value_parser = whole(1, MOST))]
    queue_tokens_batch: usize,
    /// Memory for verdicts, in MiB, about 1,500 in each; 0 keeps none.
    #[arg(long, value_name = "MIB")]
    #[arg(default_value_t = VERDICTS, value_parser = whole(0, MOST / MIB))]
    verdict_cache_mb: usize,
    /// How long a verdict is kept, in seconds; 0: for ever.
    #[arg(long, value_name = "S")]
    #[arg(default_value_t = 0, value_parser = whole(0, 1 << 30))]
    verdict_cache_ttl_s: usize,
}

impl EngineArgs {
    /// The engine's settings; those that do not go together are an error that names both.
    pub fn engine(&self) -> Result<EngineSettings, CliError> {
        if self.chunk_tokens > self.max_batch_tokens {
            return Err(CliError::Setting(format!(
                "--chunk-tokens {} is more than --max-batch-tokens {}: a pass cannot hold more than what is worked on",
                self.chunk_tokens, self.max_batch_tokens
            )));
        }
        Ok(EngineSettings {
            chunk_tokens: self.chunk_tokens,
            max_batch_tokens: self.max_batch_tokens,
            batch_delay: Duration::from_millis(self.batch_delay_ms as u64),
            kv_bytes: self.kv_cache_mb * MIB,
            queue_tokens: [self.queue_tokens_guard, self.queue_tokens_train, self.queue_tokens_batch],
        })
    }

    pub fn cache(&self) -> CacheSettings {
        let ttl = Some(Duration::from_secs(self.verdict_cache_ttl_s as u64)).filter(|ttl| !ttl.is_zero());
        CacheSettings { bytes: (self.verdict_cache_mb * MIB) as u64, ttl }
    }
}
