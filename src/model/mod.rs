//! The backbone: weights, tokenizer, chat template and the decoder over token trees.
//! Knows nothing above it: no persona, no label, no request.

mod added;
mod chat;
mod error;
mod fetch;
mod gguf;
mod guard;
mod pre;
pub mod registry;
mod text;
mod tokenizer;

pub use added::AddedTokens;
pub use chat::{ChatMessage, ChatTemplate};
pub use error::ModelError;
pub use fetch::{Condition, Progress};
pub use gguf::Gguf;
pub use text::{ANSWER_SPELLINGS, TextError, TextModel, TokenizedPrompt};
pub use tokenizer::Tokenizer;

/// A token of the model's vocabulary.
pub type TokenId = u32;
