//! The backbone: weights, tokenizer, chat template and the decoder over token trees.
//! Knows nothing above it: no persona, no label, no request.

mod attention;
mod config;
mod decoder;
mod error;
mod gguf;
mod kernels;
mod kv;
mod matmul;
mod weights;

pub use config::DecoderConfig;
pub use decoder::{Ancestor, Decoder, Hidden, RowScores, RunSpec};
pub use error::ModelError;
pub use gguf::Gguf;
pub use kv::KvBlock;
pub use weights::Weights;

/// A token of the model's vocabulary.
pub type TokenId = u32;
