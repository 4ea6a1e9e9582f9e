//! The backbone: weights, tokenizer, chat template and the decoder over token trees.
//! Knows nothing above it: no persona, no label, no request.

mod added;
mod attention;
mod chat;
mod config;
mod decoder;
mod error;
mod fetch;
mod gguf;
mod guard;
mod int8;
mod kernels;
mod kv;
mod matmul;
mod pre;
pub mod registry;
mod text;
mod tokenizer;
mod weights;

pub use added::AddedTokens;
pub use chat::{ChatMessage, ChatTemplate};
pub use config::DecoderConfig;
pub use decoder::{Ancestor, Decoder, Hidden, RowScores, RunSpec};
pub use error::ModelError;
pub use fetch::{Condition, Progress};
pub use gguf::Gguf;
pub use kv::KvBlock;
pub use text::{ANSWER_SPELLINGS, TextError, TextModel, TokenizedPrompt};
pub use tokenizer::Tokenizer;
pub use weights::Weights;

/// A token of the model's vocabulary.
pub type TokenId = u32;
