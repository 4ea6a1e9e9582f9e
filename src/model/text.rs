//! From conversations to token ids: the chat template writes the structure, messages stay text.

use std::ops::Range;

use super::session::TextSession;
use super::{ChatMessage, ChatTemplate, Gguf, ModelError, TokenId, Tokenizer};

/// Spellings that the answer letters may have at the answer slot.
pub const ANSWER_SPELLINGS: [[&str; 3]; 2] = [["A", "B", "C"], [" A", " B", " C"]];

/// The tokenizer and the chat template of one model.
pub struct TextModel {
    tokenizer: Tokenizer,
    template: ChatTemplate,
}

/// A conversation as token ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenizedPrompt {
    pub ids: Vec<TokenId>,
    /// The ids that are read: the response with the token that closes it; empty, at the end, for a prompt.
    pub span: Range<usize>,
    /// The rendered conversation. It is for people: only the ids tell structure from text that looks like it.
    pub text: String,
    /// Bytes of the text that the vocabulary cannot express and that no id stands for ([`Tokenizer::missing_bytes`]).
    pub dropped: usize,
    /// Where the plain text after the last control token starts in `text`.
    pub(super) tail: usize,
}

/// Why a conversation has no token ids.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    #[error("the chat template cannot render this conversation: {0}")]
    Template(String),
    #[error("a message role is a lower-case word such as user, not {0:?}")]
    Role(String),
    #[error("the chat template changes or drops the text of message {index} ({role})")]
    Altered { index: usize, role: String },
    #[error(
        "the text of a message changes the structure that the chat template writes; it would be read as control tokens"
    )]
    Structure,
    #[error("the texts use every noncharacter and private-use character of Unicode; none is left to mark them with")]
    NoMarker,
    #[error("a response is the last message and has the role assistant")]
    NotAssistant,
    #[error(
        "the chat template rewrites earlier turns when a response is added, so that the response has no fixed prompt"
    )]
    NotAPrefix,
    #[error("the chat template does not close an assistant's turn with a control token")]
    Unclosed,
    #[error(transparent)]
    Model(#[from] ModelError),
}

impl TextModel {
    /// Reads both from a model file.
    pub fn from_gguf(gguf: &Gguf) -> Result<Self, ModelError> {
        let tokenizer = Tokenizer::from_gguf(gguf)?;
        let template = ChatTemplate::from_gguf(gguf, &tokenizer)?;
        Ok(Self::new(tokenizer, template))
    }

    /// Joins a tokenizer and a template.
    pub fn new(tokenizer: Tokenizer, template: ChatTemplate) -> Self {
        Self { tokenizer, template }
    }

    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    pub fn template(&self) -> &ChatTemplate {
        &self.template
    }

    /// Starts on the conversations of one request.
    pub fn session(&self) -> TextSession<'_> {
        TextSession::new(self)
    }

    /// [`TextSession::prompt`] of a single conversation.
    pub fn prompt(&self, messages: &[ChatMessage<'_>]) -> Result<TokenizedPrompt, TextError> {
        self.session().prompt(messages)
    }

    /// [`TextSession::response`] of a single conversation.
    pub fn response(&self, messages: &[ChatMessage<'_>]) -> Result<TokenizedPrompt, TextError> {
        self.session().response(messages)
    }

    /// The ids of the three answer letters after `prompt`, for each of [`ANSWER_SPELLINGS`]; None where a letter does
    /// not add exactly one token of its own to the prompt's tokens.
    pub fn answer_spellings(
        &self,
        prompt: &TokenizedPrompt,
    ) -> Result<[Option<[TokenId; 3]>; ANSWER_SPELLINGS.len()], TextError> {
        let tail = &prompt.text[prompt.tail..];
        let base = self.tokenizer.encode_plain(tail)?;
        let mut spellings = [None; ANSWER_SPELLINGS.len()];
        for (found, letters) in spellings.iter_mut().zip(ANSWER_SPELLINGS) {
            let mut ids = [0; 3];
            let mut single = true;
            for (id, letter) in ids.iter_mut().zip(letters) {
                match self.tokenizer.encode_plain(&format!("{tail}{letter}"))?.as_slice() {
                    [before @ .., last] if before == base => *id = *last,
                    _ => single = false,
                }
            }
            let distinct = ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2];
            *found = (single && distinct).then_some(ids);
        }
        Ok(spellings)
    }
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
