//! The backbone: weights, tokenizer, chat template and the decoder over token trees.
//! Knows nothing above it: no persona, no label, no request.

mod error;
mod gguf;

pub use error::ModelError;
pub use gguf::Gguf;

/// A token of the model's vocabulary.
pub type TokenId = u32;
