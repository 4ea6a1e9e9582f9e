//! From inverse prompts to the engine's prompts, and from its readings to the method's.

use super::{ErrorCode, JudgeError};
use crate::engine::{Prompt, Read as TokenRead, Reading as TokenReading};
use crate::model::{ChatMessage, TextSession, TokenId, TokenizedPrompt};
use crate::prism::{InversePrompt, Read, Reading};
use crate::telemetry::catalogue::LIMIT_REFUSALS;

/// Renders and tokenises one inverse prompt. One of more than `limit` tokens is an error with both numbers; a text that
/// must have more is refused before the work of tokenising it.
pub fn tokenize(
    text: &mut TextSession<'_>,
    prompt: &InversePrompt,
    limit: usize,
) -> Result<TokenizedPrompt, JudgeError> {
    let refuse = |message: String| Err(JudgeError::new(ErrorCode::InvalidArgument, message));
    let too_long = |count: String| {
        LIMIT_REFUSALS.increment(["tokens"]);
        refuse(format!(
            "the prompt has {count} tokens and this judge reads at most {limit}: shorten the response, the context or \
             the persona"
        ))
    };
    let bytes = prompt.messages.iter().map(|message| message.text.len()).sum();
    let fewest = text.model().tokenizer().fewest_tokens(bytes);
    if fewest > limit {
        return too_long(format!("at least {fewest}"));
    }
    let messages: Vec<ChatMessage<'_>> =
        prompt.messages.iter().map(|message| ChatMessage { role: message.role.name(), text: &message.text }).collect();
    let tokens = match prompt.read {
        Read::LabelSlot { .. } => text.prompt(&messages),
        Read::Response { .. } => text.response(&messages),
    };
    match tokens {
        Ok(tokens) if tokens.dropped > 0 => refuse(format!(
            "the text holds {} bytes that this model's vocabulary cannot express, such as control characters: remove them",
            tokens.dropped
        )),
        Ok(tokens) if tokens.ids.len() > limit => too_long(tokens.ids.len().to_string()),
        Ok(tokens) => Ok(tokens),
        Err(error) => refuse(error.to_string()),
    }
}

/// What the engine reads of a tokenised prompt; `letters` are the ids of the answer slot.
pub fn request(prompt: &InversePrompt, tokens: TokenizedPrompt, letters: [TokenId; 3]) -> Prompt {
    let read = match prompt.read {
        Read::LabelSlot { .. } => TokenRead::Next(letters.to_vec()),
        Read::Response { .. } => TokenRead::Span(tokens.span),
    };
    Prompt { ids: tokens.ids, read }
}

/// The method's reading of the engine's answer to `prompt`.
pub fn reading(prompt: &InversePrompt, answer: &TokenReading) -> Reading {
    match (prompt.read, answer.log_probs.as_slice()) {
        (Read::LabelSlot { .. }, &[a, b, c]) => {
            let label_mass = (a.exp() + b.exp() + c.exp()).min(1.0);
            Reading::LabelScores { log_scores: [a, b, c], label_mass }
        }
        (_, log_probs) => Reading::ResponseScore { log_prob: log_probs.iter().sum() },
    }
}
