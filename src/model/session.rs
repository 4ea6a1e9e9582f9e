//! The conversations of one request. The prompts of a group repeat each other: what they share is checked and tokenised
//! once. The ids are those that each conversation gets alone.

use std::collections::HashMap;
use std::sync::Arc;

use super::chat::Turn;
use super::guard::{Layout, Markers};
use super::{ChatMessage, TextError, TextModel, TokenId, TokenizedPrompt};

/// A text model, and what it has found out about one request so far.
pub struct TextSession<'a> {
    model: &'a TextModel,
    /// Token ids of parts of the text between control tokens: tokens never cross one.
    parts: HashMap<Box<str>, Arc<[TokenId]>>,
    /// Control tokens of conversations with nothing in them to mistake, by their roles and whether they have text.
    skeletons: HashMap<(String, bool), Arc<[TokenId]>>,
    /// What comes before responses: a few, each before many.
    beginnings: Vec<Arc<Beginning>>,
    /// Whether the vocabulary cannot express a byte.
    missing: [bool; 256],
}

/// The conversation before a response, up to where the response would start.
struct Beginning {
    /// Roles and texts.
    messages: Vec<(String, String)>,
    layout: Layout,
    /// Where the last control token ends.
    tail: usize,
    /// Ids up to there.
    head: Vec<TokenId>,
    /// Ids after it.
    rest: Vec<TokenId>,
}

impl<'a> TextSession<'a> {
    pub(super) fn new(model: &'a TextModel) -> Self {
        let mut missing = [false; 256];
        model.tokenizer().missing_bytes().iter().for_each(|byte| missing[usize::from(*byte)] = true);
        let (parts, skeletons) = (HashMap::new(), HashMap::new());
        Self { model, parts, skeletons, beginnings: Vec::new(), missing }
    }

    pub fn model(&self) -> &'a TextModel {
        self.model
    }

    /// Forgets conversations that will not come again; the tokens of their texts stay known.
    pub fn forget_conversations(&mut self) {
        self.beginnings.clear();
        self.skeletons.clear();
    }

    /// The conversation up to the point where the model would answer.
    pub fn prompt(&mut self, messages: &[ChatMessage<'_>]) -> Result<TokenizedPrompt, TextError> {
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
    pub fn response(&mut self, messages: &[ChatMessage<'_>]) -> Result<TokenizedPrompt, TextError> {
        let Some((ChatMessage { role: "assistant", .. }, before)) = messages.split_last() else {
            return Err(TextError::NotAssistant);
        };
        let beginning = self.beginning(before)?;
        let Beginning { layout: prefix, tail, head, rest: prompt_end, .. } = &*beginning;
        let mut full = self.layout(messages, false)?;
        if !(full.text.starts_with(&prefix.text) && full.controls.starts_with(&prefix.controls)) {
            return Err(TextError::NotAPrefix);
        }
        let closing = *full.controls.get(prefix.controls.len()).ok_or(TextError::Unclosed)?;
        full.text.truncate(closing.end);
        full.controls.truncate(prefix.controls.len() + 1);

        let rest = self.encode(&full, *tail)?;
        let start = head.len() + prompt_end.iter().zip(&rest).take_while(|(a, b)| a == b).count();
        let ids = [head.as_slice(), &rest].concat();
        let dropped = self.dropped(&full.text);
        Ok(TokenizedPrompt { span: start..ids.len(), ids, text: full.text, dropped, tail: closing.end })
    }

    /// The part of a conversation that all responses to it share. Tokens never cross a control token, so that a prompt
    /// and the same prompt with a response share the ids up to the prompt's last one.
    fn beginning(&mut self, before: &[ChatMessage<'_>]) -> Result<Arc<Beginning>, TextError> {
        let same = |known: &[(String, String)]| {
            known.len() == before.len()
                && known.iter().zip(before).all(|((role, text), message)| role == message.role && text == message.text)
        };
        if let Some(beginning) = self.beginnings.iter().find(|beginning| same(&beginning.messages)) {
            return Ok(Arc::clone(beginning));
        }
        let layout = self.layout(before, true)?;
        let tail = layout.controls.last().map_or(0, |control| control.end);
        let head =
            self.encode(&Layout { text: layout.text[..tail].to_owned(), controls: layout.controls.clone() }, 0)?;
        let rest = self.encode(&layout, tail)?;
        let messages = before.iter().map(|message| (message.role.to_owned(), message.text.to_owned())).collect();
        let beginning = Arc::new(Beginning { messages, layout, tail, head, rest });
        self.beginnings.push(Arc::clone(&beginning));
        Ok(beginning)
    }

    /// Renders a conversation and finds its structure; fails rather than let a text take part in it.
    fn layout(&mut self, messages: &[ChatMessage<'_>], add_generation_prompt: bool) -> Result<Layout, TextError> {
        let lower = |role: &str| role.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        if let Some(message) = messages.iter().find(|message| !lower(message.role)) {
            return Err(TextError::Role(message.role.to_owned()));
        }
        let turns = self.model.template().arrange(messages);
        let layout = self.scan(&turns, add_generation_prompt)?;
        let mut from = 0;
        for (index, turn) in turns.iter().enumerate() {
            let text = turn.text.trim();
            let at = layout.text[from..].find(text);
            let at = at.ok_or_else(|| TextError::Altered { index, role: turn.role.to_owned() })?;
            from += at + text.len();
        }
        let skeleton = self.skeleton(&turns, add_generation_prompt)?;
        let same = layout.controls.iter().map(|control| control.id).eq(skeleton.iter().copied());
        if same { Ok(layout) } else { Err(TextError::Structure) }
    }

    /// The control tokens of the same conversation with nothing in it to mistake: it must have the same.
    fn skeleton(&mut self, turns: &[Turn<'_>], add_generation_prompt: bool) -> Result<Arc<[TokenId]>, TextError> {
        let harmless: Vec<_> = turns.iter().map(|turn| turn.with_text(harmless(&turn.text))).collect();
        // A role is letters and underscores, so that commas and colons divide.
        let kinds = harmless.iter().map(|turn| format!("{}:{},", turn.role, turn.text)).collect();
        let key = (kinds, add_generation_prompt);
        if let Some(known) = self.skeletons.get(&key) {
            return Ok(Arc::clone(known));
        }
        let layout = self.scan(&harmless, add_generation_prompt)?;
        let ids: Arc<[TokenId]> = layout.controls.iter().map(|control| control.id).collect();
        self.skeletons.insert(key, Arc::clone(&ids));
        Ok(ids)
    }

    fn scan(&self, turns: &[Turn<'_>], add_generation_prompt: bool) -> Result<Layout, TextError> {
        let (added, template) = (self.model.tokenizer().added_tokens(), self.model.template());
        let markers = Markers::choose(added, turns, template.source()).ok_or(TextError::NoMarker)?;
        let marked: Vec<_> = turns.iter().map(|turn| turn.with_text(markers.mark(added, &turn.text))).collect();
        let rendered = template.render(&marked, add_generation_prompt).map_err(TextError::Template)?;
        Ok(markers.scan(added, &rendered))
    }

    /// The ids of a layout from byte `from` on, which is 0 or the end of a control token. Each stretch between control
    /// tokens gets the ids that it has as one string, as the model's own tokenizer does it.
    fn encode(&mut self, layout: &Layout, from: usize) -> Result<Vec<TokenId>, TextError> {
        let mut ids = Vec::new();
        let tokenizer = self.model.tokenizer();
        let bos = tokenizer.bos().filter(|_| from == 0 && tokenizer.add_bos());
        let written = layout.controls.first().is_some_and(|first| first.start == 0 && Some(first.id) == bos);
        ids.extend(bos.filter(|_| !written));
        let mut at = from;
        let end = layout.text.len();
        let controls = layout.controls.iter().filter(|control| control.start >= from);
        for (start, next, id) in
            controls.map(|control| (control.start, control.end, Some(control.id))).chain([(end, end, None)])
        {
            if at < start {
                for part in tokenizer.parts(&layout.text[at..start]) {
                    ids.extend_from_slice(&self.part(part)?);
                }
            }
            ids.extend(id);
            at = next;
        }
        Ok(ids)
    }

    fn part(&mut self, text: &str) -> Result<Arc<[TokenId]>, TextError> {
        if let Some(known) = self.parts.get(text) {
            return Ok(Arc::clone(known));
        }
        let tokenizer = self.model.tokenizer();
        let ids: Arc<[TokenId]> = tokenizer.encode_plain(text)?.into();
        if ids.iter().any(|id| tokenizer.added_tokens().contains(*id)) {
            return Err(TextError::Structure);
        }
        self.parts.insert(text.into(), Arc::clone(&ids));
        Ok(ids)
    }

    fn dropped(&self, text: &str) -> usize {
        text.bytes().filter(|byte| self.missing[usize::from(*byte)]).count()
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
