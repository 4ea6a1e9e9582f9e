//! Shape of a backbone, read from the file's metadata.

use super::matmul::{MIN_SHARE, UNCUT};
use super::{Gguf, ModelError};

/// Architectures that the decoder block computes today.
pub const SUPPORTED: &[&str] = &["llama"];

/// No size of a real backbone is larger, and the product of two that are not can be computed.
const LARGEST: usize = 1 << 24;

/// Shape of one decoder-only backbone.
#[derive(Clone, Debug, PartialEq)]
pub struct DecoderConfig {
    pub architecture: String,
    pub layers: usize,
    pub hidden: usize,
    pub feed_forward: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
    pub vocabulary: usize,
    /// Longest sequence the backbone was trained for, in tokens.
    pub context_length: usize,
    pub rope_theta: f32,
    pub norm_epsilon: f32,
}

impl DecoderConfig {
    /// Reads and checks the shape; an unsupported architecture is named with what is supported.
    pub fn from_gguf(gguf: &Gguf) -> Result<Self, ModelError> {
        let architecture = gguf.string("general.architecture")?.to_owned();
        if !SUPPORTED.contains(&architecture.as_str()) {
            return Err(ModelError::Unsupported(format!(
                "architecture {architecture} of {} is not supported; supported: {}",
                gguf.path().display(),
                SUPPORTED.join(", ")
            )));
        }
        let key = |name: &str| format!("{architecture}.{name}");
        let refuse = |what: &str| {
            Err(ModelError::Unsupported(format!("{} needs {what}, not supported yet", gguf.path().display())))
        };
        if gguf.value(&key("rope.scaling.type")).is_some_and(|kind| kind.to_string().is_ok_and(|k| k != "none")) {
            return refuse("rope scaling");
        }
        for (tensor, what) in [("rope_freqs.weight", "rope frequency factors"), ("blk.0.attn_q.bias", "a query bias")] {
            if gguf.has_tensor(tensor) {
                return refuse(what);
            }
        }
        let hidden = gguf.integer(&key("embedding_length"))?;
        let heads = gguf.integer(&key("attention.head_count"))?;
        let given = |name: &str| gguf.value(&key(name)).map(|_| key(name));
        let optional = |name: &str, default: usize| given(name).map_or(Ok(default), |key| gguf.integer(&key));
        let config = Self {
            architecture: architecture.clone(),
            layers: gguf.integer(&key("block_count"))?,
            hidden,
            feed_forward: gguf.integer(&key("feed_forward_length"))?,
            heads,
            kv_heads: optional("attention.head_count_kv", heads)?,
            head_dim: optional("attention.key_length", hidden.checked_div(heads).unwrap_or(0))?,
            vocabulary: gguf.rows("token_embd.weight")?,
            context_length: gguf.integer(&key("context_length"))?,
            rope_theta: given("rope.freq_base").map_or(Ok(10_000.0), |key| gguf.float(&key))?,
            norm_epsilon: gguf.float(&key("attention.layer_norm_rms_epsilon"))?,
        };
        let rotated = optional("rope.dimension_count", config.head_dim)?;
        if rotated != config.head_dim {
            return refuse(&format!("rotating {rotated} of {} dimensions", config.head_dim));
        }
        config.check(gguf)?;
        Ok(config)
    }

    fn check(&self, gguf: &Gguf) -> Result<(), ModelError> {
        let sizes = [self.layers, self.hidden, self.feed_forward, self.heads, self.kv_heads, self.head_dim];
        let shape_ok = sizes.iter().chain([&self.context_length]).all(|size| (1..=LARGEST).contains(size))
            && self.heads.is_multiple_of(self.kv_heads)
            && self.head_dim.is_multiple_of(2);
        if !shape_ok {
            return Err(ModelError::File {
                path: gguf.path().to_owned(),
                reason: format!("its metadata describes an impossible shape: {self:?}"),
            });
        }
        // The products of smaller shapes would take paths of gemm whose bits depend on the number of rows.
        let longest = self.feed_forward.max(self.heads * self.head_dim);
        let large_enough = self.vocabulary >= MIN_SHARE
            && self.hidden.min(self.feed_forward).min(self.head_dim) > 2
            && (self.hidden > 64 || longest <= UNCUT);
        if !large_enough {
            return Err(ModelError::Unsupported(format!(
                "the backbone {} is too small to be computed: {self:?}",
                gguf.path().display()
            )));
        }
        Ok(())
    }

    /// Columns of the fused query, key and value projection.
    pub fn qkv_columns(&self) -> usize {
        (self.heads + 2 * self.kv_heads) * self.head_dim
    }

    /// Query heads that share one key/value head.
    pub fn group(&self) -> usize {
        self.heads / self.kv_heads
    }
}
