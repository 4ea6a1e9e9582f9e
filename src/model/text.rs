//! From conversations to token ids: the chat template writes the structure, messages stay text.

use std::ops::Range;

use super::chat::Turn;
use super::guard::{Layout, Markers};
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
    tail: usize,
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

    /// The conversation up to the point where the model would answer.
    pub fn prompt(&self, messages: &[ChatMessage<'_>]) -> Result<TokenizedPrompt, TextError> {
        let layout = self.layout(messages, true)?;
        let tail = layout.controls.last().map_or(0, |control| control.end);
        let ids = self.encode(&layout, 0)?;
        let dropped = self.dropped(&layout.text);
        Ok(TokenizedPrompt { span: ids.len()..ids.len(), ids, text: layout.text, dropped, tail })
    }

    /// The conversation whose last message, the assistant's, is to be read: `span` marks its tokens and the control
    /// token that closes it. What the template writes after that token is left out.
    ///
    /// The span starts where the ids part from those of the prompt alone; a response that begins with white space
    /// can share its first token with the end of the prompt, and that token is then the first one read.
    pub fn response(&self, messages: &[ChatMessage<'_>]) -> Result<TokenizedPrompt, TextError> {
        let Some((ChatMessage { role: "assistant", .. }, before)) = messages.split_last() else {
            return Err(TextError::NotAssistant);
        };
        let prefix = self.layout(before, true)?;
        let mut full = self.layout(messages, false)?;
        if !(full.text.starts_with(&prefix.text) && full.controls.starts_with(&prefix.controls)) {
            return Err(TextError::NotAPrefix);
        }
        let closing = *full.controls.get(prefix.controls.len()).ok_or(TextError::Unclosed)?;
        full.text.truncate(closing.end);
        full.controls.truncate(prefix.controls.len() + 1);

        // Tokens never cross a control token, so that both share the ids up to the prompt's last one.
        let tail = prefix.controls.last().map_or(0, |control| control.end);
        let head = Layout { text: full.text[..tail].to_owned(), controls: prefix.controls.clone() };
        let mut ids = self.encode(&head, 0)?;
        let prompt_end = self.encode(&prefix, tail)?;
        let rest = self.encode(&full, tail)?;
        let start = ids.len() + prompt_end.iter().zip(&rest).take_while(|(a, b)| a == b).count();
        ids.extend(rest);
        let dropped = self.dropped(&full.text);
        Ok(TokenizedPrompt { span: start..ids.len(), ids, text: full.text, dropped, tail: closing.end })
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

    /// Renders a conversation and finds its structure; fails rather than let a text take part in it.
    fn layout(&self, messages: &[ChatMessage<'_>], add_generation_prompt: bool) -> Result<Layout, TextError> {
        let lower = |role: &str| role.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        if let Some(message) = messages.iter().find(|message| !lower(message.role)) {
            return Err(TextError::Role(message.role.to_owned()));
        }
        let turns = self.template.arrange(messages);
        let layout = self.scan(&turns, add_generation_prompt)?;
        let mut from = 0;
        for (index, turn) in turns.iter().enumerate() {
            let text = turn.text.trim();
            let at = layout.text[from..].find(text);
            let at = at.ok_or_else(|| TextError::Altered { index, role: turn.role.to_owned() })?;
            from += at + text.len();
        }
        // The same conversation with nothing in it to mistake must have the same control tokens.
        let harmless: Vec<_> = turns.iter().map(|turn| turn.with_text(harmless(&turn.text))).collect();
        let skeleton = self.scan(&harmless, add_generation_prompt)?;
        let ids = |layout: &Layout| layout.controls.iter().map(|control| control.id).collect::<Vec<_>>();
        if ids(&layout) == ids(&skeleton) { Ok(layout) } else { Err(TextError::Structure) }
    }

    fn scan(&self, turns: &[Turn<'_>], add_generation_prompt: bool) -> Result<Layout, TextError> {
        let added = self.tokenizer.added_tokens();
        let markers = Markers::choose(added, turns, self.template.source()).ok_or(TextError::NoMarker)?;
        let marked: Vec<_> = turns.iter().map(|turn| turn.with_text(markers.mark(added, &turn.text))).collect();
        let rendered = self.template.render(&marked, add_generation_prompt).map_err(TextError::Template)?;
        Ok(markers.scan(added, &rendered))
    }

    /// The ids of a layout from byte `from` on, which is 0 or the end of a control token. Each stretch between control
    /// tokens is encoded as one string, as the model's own tokenizer does.
    fn encode(&self, layout: &Layout, from: usize) -> Result<Vec<TokenId>, TextError> {
        let mut ids = Vec::new();
        let bos = self.tokenizer.bos().filter(|_| from == 0 && self.tokenizer.add_bos());
        let written = layout.controls.first().is_some_and(|first| first.start == 0 && Some(first.id) == bos);
        ids.extend(bos.filter(|_| !written));
        let mut at = from;
        let end = layout.text.len();
        let controls = layout.controls.iter().filter(|control| control.start >= from);
        for (start, next, id) in
            controls.map(|control| (control.start, control.end, Some(control.id))).chain([(end, end, None)])
        {
            if at < start {
                let plain = self.tokenizer.encode_plain(&layout.text[at..start])?;
                if plain.iter().any(|id| self.tokenizer.added_tokens().contains(*id)) {
                    return Err(TextError::Structure);
                }
                ids.extend(plain);
            }
            ids.extend(id);
            at = next;
        }
        Ok(ids)
    }

    fn dropped(&self, text: &str) -> usize {
        let missing = self.tokenizer.missing_bytes();
        text.bytes().filter(|byte| missing.binary_search(byte).is_ok()).count()
    }
}

/// A text that templates treat alike: empty, blank or neither.
fn harmless(text: &str) -> &'static str {
    match text {
        "" => "",
        _ if text.trim().is_empty() => " ",
        _ => "x",
    }
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
