//! Weights in the layouts that the kernels read, dequantised to f32 (architecture decision 10).

use candle_core::{D, Tensor};

use super::error::brief;
use super::int8;
use super::{DecoderConfig, Gguf, ModelError};
use crate::numerics::Numerics;

/// A projection.
pub enum Projection {
    /// Stored `[inputs, outputs]`, so that gemm reads it without packing.
    F32 {
        inputs: usize,
        outputs: usize,
        data: Vec<f32>,
    },
    Int8(int8::Packed),
}

impl Projection {
    fn parameters(&self) -> usize {
        match self {
            Self::F32 { data, .. } => data.len(),
            Self::Int8(packed) => packed.inputs() * packed.outputs(),
        }
    }
}

/// One decoder block.
pub struct Block {
    pub attention_norm: Vec<f32>,
    /// Query, key and value side by side; query and key rows in half-split rotary order.
    pub qkv: Projection,
    pub attention_output: Projection,
    pub feed_forward_norm: Vec<f32>,
    /// Gate and up side by side.
    pub gate_up: Projection,
    pub down: Projection,
}

/// Everything the decoder multiplies with.
pub struct Weights {
    /// `[vocabulary, hidden]`.
    pub embedding: Vec<f32>,
    /// `[vocabulary, hidden]`; None when the head is tied to the embedding.
    pub head: Option<Vec<f32>>,
    pub output_norm: Vec<f32>,
    pub blocks: Vec<Block>,
}

impl Weights {
    /// Reads all tensors; a missing, misshapen, non-finite or unknown one is named.
    pub fn load(gguf: &Gguf, config: &DecoderConfig, numerics: Numerics) -> Result<Self, ModelError> {
        if let Some(name) = gguf.tensor_names().filter(|name| !is_computed(name, config.layers)).min() {
            return Err(ModelError::Unsupported(format!(
                "the tensor {name} of {} takes part in no computation that is supported",
                gguf.path().display()
            )));
        }
        let reader = Reader { gguf, numerics };
        let (hidden, vocabulary) = (config.hidden, config.vocabulary);
        let head = if gguf.has_tensor("output.weight") {
            Some(reader.flat("output.weight", &[vocabulary, hidden])?)
        } else {
            None
        };
        Ok(Self {
            embedding: reader.flat("token_embd.weight", &[vocabulary, hidden])?,
            head,
            output_norm: reader.flat("output_norm.weight", &[hidden])?,
            blocks: (0..config.layers).map(|layer| reader.block(layer, config)).collect::<Result<_, _>>()?,
        })
    }

    /// Number of weights, a tied head counted once.
    pub fn parameters(&self) -> u64 {
        let blocks = self.blocks.iter().map(|block| {
            let projections = [&block.qkv, &block.attention_output, &block.gate_up, &block.down];
            projections.map(Projection::parameters).iter().sum::<usize>()
                + block.attention_norm.len()
                + block.feed_forward_norm.len()
        });
        let rest = [&self.embedding, &self.output_norm].map(Vec::len).iter().sum::<usize>();
        (blocks.sum::<usize>() + rest + self.head.as_ref().map_or(0, Vec::len)) as u64
    }
}

/// Whether the decoder reads this tensor: one that it would leave out must not change the numbers in silence.
fn is_computed(name: &str, layers: usize) -> bool {
    const OF_BLOCK: [&str; 9] =
        ["attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down"];
    let of_block = |rest: &str| {
        let (layer, part) = rest.split_once('.')?;
        Some(layer.parse::<usize>().ok()? < layers && OF_BLOCK.contains(&part.strip_suffix(".weight")?))
    };
    ["token_embd.weight", "output.weight", "output_norm.weight"].contains(&name)
        || name.strip_prefix("blk.").and_then(of_block).unwrap_or(false)
}

struct Reader<'a> {
    gguf: &'a Gguf,
    numerics: Numerics,
}

impl Reader<'_> {
    fn block(&self, layer: usize, config: &DecoderConfig) -> Result<Block, ModelError> {
        let name = |part: &str| format!("blk.{layer}.{part}.weight");
        let (hidden, ffn) = (config.hidden, config.feed_forward);
        let (q_rows, kv_rows) = (config.heads * config.head_dim, config.kv_heads * config.head_dim);
        let rotary = |part: &str, rows: usize| {
            let tensor = self.tensor(&name(part), &[rows, hidden])?;
            half_split(&tensor, config.head_dim).map_err(|error| self.unreadable(&name(part), &error))
        };
        Ok(Block {
            attention_norm: self.flat(&name("attn_norm"), &[hidden])?,
            qkv: self.side_by_side(
                &name("attn_q/k/v"),
                &[
                    rotary("attn_q", q_rows)?,
                    rotary("attn_k", kv_rows)?,
                    self.tensor(&name("attn_v"), &[kv_rows, hidden])?,
                ],
            )?,
            attention_output: self
                .side_by_side(&name("attn_output"), &[self.tensor(&name("attn_output"), &[hidden, q_rows])?])?,
            feed_forward_norm: self.flat(&name("ffn_norm"), &[hidden])?,
            gate_up: self.side_by_side(
                &name("ffn_gate/up"),
                &[self.tensor(&name("ffn_gate"), &[ffn, hidden])?, self.tensor(&name("ffn_up"), &[ffn, hidden])?],
            )?,
            down: self.side_by_side(&name("ffn_down"), &[self.tensor(&name("ffn_down"), &[hidden, ffn])?])?,
        })
    }

    fn tensor(&self, name: &str, shape: &[usize]) -> Result<Tensor, ModelError> {
        let tensor = self.gguf.tensor(name)?;
        if tensor.dims() != shape {
            return Err(self.fault(format!("tensor {name} has shape {:?}, expected {shape:?}", tensor.dims())));
        }
        Ok(tensor)
    }

    fn flat(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, ModelError> {
        let tensor = self.tensor(name, shape)?;
        let values = tensor.flatten_all().and_then(|tensor| tensor.to_vec1::<f32>());
        self.finite(name, values.map_err(|error| self.unreadable(name, &error))?)
    }

    /// Stacks `[outputs, inputs]` tensors by output, and transposes or packs the stack.
    fn side_by_side(&self, name: &str, parts: &[Tensor]) -> Result<Projection, ModelError> {
        let stacked = Tensor::cat(parts, 0).map_err(|error| self.unreadable(name, &error))?;
        let (outputs, inputs) = stacked.dims2().map_err(|error| self.unreadable(name, &error))?;
        let laid_out = match self.numerics {
            Numerics::F32 => stacked.transpose(D::Minus1, D::Minus2).and_then(|tensor| tensor.contiguous()),
            Numerics::Int8 => Ok(stacked),
        };
        let values = laid_out.and_then(|tensor| tensor.flatten_all()?.to_vec1::<f32>());
        let data = self.finite(name, values.map_err(|error| self.unreadable(name, &error))?)?;
        Ok(match self.numerics {
            Numerics::F32 => Projection::F32 { inputs, outputs, data },
            Numerics::Int8 => Projection::Int8(int8::Packed::new(inputs, &data)),
        })
    }

    fn finite(&self, name: &str, values: Vec<f32>) -> Result<Vec<f32>, ModelError> {
        match values.iter().position(|value| !value.is_finite()) {
            None => Ok(values),
            Some(at) => Err(self.fault(format!("tensor {name} holds {} at element {at}", values[at]))),
        }
    }

    fn unreadable(&self, name: &str, error: &candle_core::Error) -> ModelError {
        self.fault(format!("tensor {name} cannot be read: {}", brief(error)))
    }

    fn fault(&self, reason: String) -> ModelError {
        ModelError::File { path: self.gguf.path().to_owned(), reason }
    }
}

/// GGUF stores the rows of each query and key head interleaved (0, half, 1, half + 1, ...); the kernels rotate halves.
fn half_split(tensor: &Tensor, head_dim: usize) -> candle_core::Result<Tensor> {
    let (rows, columns) = tensor.dims2()?;
    tensor.reshape((rows / head_dim, head_dim / 2, 2, columns))?.transpose(1, 2)?.contiguous()?.reshape((rows, columns))
}
