//! The backbone: weights, tokenizer, chat template and the decoder over token trees.
//! Knows nothing above it: no persona, no label, no request.

mod added;
mod attention;
mod chat;
mod clock;
mod config;
mod decoder;
mod error;
mod fetch;
mod gguf;
mod guard;
mod head;
mod int8;
mod kernels;
mod kv;
#[doc(hidden)] // Public for benches/forward.rs only.
pub mod matmul;
mod pre;
mod priority;
pub mod registry;
mod session;
mod text;
mod tile;
mod tokenizer;
mod weights;

pub use added::AddedTokens;
pub use chat::{ChatMessage, ChatTemplate};
pub use clock::Part;
pub use config::DecoderConfig;
pub use decoder::{Ancestor, Decoder, Hidden, RunSpec};
pub use error::ModelError;
pub use fetch::{Condition, Progress};
pub use gguf::Gguf;
pub use head::RowScores;
pub use kv::KvBlock;
pub(crate) use priority::lower as lower_priority;
pub use session::TextSession;
pub use text::{ANSWER_SPELLINGS, TextError, TextModel, TokenizedPrompt};
pub use tokenizer::Tokenizer;
pub use weights::Weights;

/// A token of the model's vocabulary.
pub type TokenId = u32;
