//! The dialogue before a response, in the three ways that files write it.
//!
//! - `context` or `dialogue` as a list of `{speaker, text}`: the turns as they are.
//! - `context` as a string: one turn, spoken by `User`, whatever the text looks like.
//! - `dialogue` as a string: a transcript, one `Speaker: text` a line. A line that names no speaker continues the turn
//!   above it; before the first speaker it belongs to `User`.
//!
//! The field decides, never the text, so that a message such as `Note: call me` cannot turn into a speaker.

use serde_json::Value;

use super::fields::{self, FieldError, Fields};
use crate::prism::Turn;

const USER: &str = "User";
const TURN: &str = "an object {speaker, text}";

/// Longest speaker's name of a transcript, in characters.
const SPEAKER_LIMIT: usize = 40;

/// Reads `context` or `dialogue`; exactly one of them must be there.
pub fn context(row: &Fields<'_>) -> Result<Vec<Turn>, FieldError> {
    match (row.get("context"), row.get("dialogue")) {
        (Some(_), Some(_)) => Err("context and dialogue are both set; keep one".to_owned()),
        (Some(Value::String(text)), None) => Ok(single(text)),
        (None, Some(Value::String(text))) => Ok(transcript(text)),
        (Some(value), None) => turns(value, "context"),
        (None, Some(value)) => turns(value, "dialogue"),
        (None, None) => Err(fields::missing("context", "a string or a list of {speaker, text}, [] for none")),
    }
}

/// One turn of the user; blank text is no turn.
pub fn single(text: &str) -> Vec<Turn> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    vec![Turn { speaker: USER.to_owned(), text: text.to_owned() }]
}

fn turns(value: &Value, name: &str) -> Result<Vec<Turn>, FieldError> {
    if !value.is_array() {
        return Err(fields::wrong(name, value, "a string or a list of {speaker, text}"));
    }
    fields::items(value, name, TURN)?
        .into_iter()
        .map(|(name, item)| {
            let turn = Fields::new(fields::object(item, &name, TURN)?, &name);
            turn.only(&["speaker", "text"])?;
            Ok(Turn { speaker: turn.required_text("speaker")?, text: turn.required_text("text")? })
        })
        .collect()
}

fn transcript(text: &str) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    for line in text.lines() {
        match (speaker(line), turns.last_mut()) {
            (Some((speaker, text)), _) => {
                turns.push(Turn { speaker: speaker.to_owned(), text: text.to_owned() });
            }
            (None, Some(turn)) => {
                turn.text.push('\n');
                turn.text.push_str(line);
            }
            (None, None) if line.trim().is_empty() => {}
            (None, None) => turns.push(Turn { speaker: USER.to_owned(), text: line.to_owned() }),
        }
    }
    turns
}

/// Splits `Speaker: text`. A speaker is short, at most four words, and holds no mark that ends or joins sentences.
fn speaker(line: &str) -> Option<(&str, &str)> {
    let (name, text) = line.split_once(':')?;
    let name = name.trim();
    let plausible = !name.is_empty()
        && name.chars().count() <= SPEAKER_LIMIT
        && name.split_whitespace().count() <= 4
        && !name.contains(['?', '!', ',', ';', '"', '/'])
        && (text.is_empty() || text.starts_with(char::is_whitespace));
    plausible.then(|| (name, text.trim_start()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn read(json: &str) -> Result<Vec<(String, String)>, FieldError> {
        let value: Value = serde_json::from_str(json).unwrap();
        let turns = context(&Fields::new(value.as_object().unwrap(), ""))?;
        Ok(turns.into_iter().map(|turn| (turn.speaker, turn.text)).collect())
    }

    fn pairs(turns: &[(&str, &str)]) -> Vec<(String, String)> {
        turns.iter().map(|(speaker, text)| ((*speaker).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn a_context_string_is_one_turn_of_the_user_even_if_it_looks_like_a_transcript() {
        assert_eq!(read(r#"{"context":"Note: call me"}"#).unwrap(), pairs(&[("User", "Note: call me")]));
        assert_eq!(read(r#"{"context":" "}"#).unwrap(), []);
    }

    #[test]
    fn a_dialogue_string_is_a_transcript_with_continued_turns() {
        let turns = read(r#"{"dialogue":"User: Hi.\nsee https://a.b\nDr. Mary Ann Lee: Yes: no\r\nWell, then: go"}"#);
        let expected = [("User", "Hi.\nsee https://a.b"), ("Dr. Mary Ann Lee", "Yes: no\nWell, then: go")];
        assert_eq!(turns.unwrap(), pairs(&expected));
        assert_eq!(read(r#"{"dialogue":"hello\nBot: hi"}"#).unwrap(), pairs(&[("User", "hello"), ("Bot", "hi")]));
    }

    #[test]
    fn errors_name_the_turn_and_the_kind_that_was_found() {
        assert_eq!(
            read(r#"{"context":[{"speaker":"User","text":3}]}"#).unwrap_err(),
            "context[0].text is a number; it must be a string"
        );
        assert_eq!(
            read(r#"{"context":7}"#).unwrap_err(),
            "context is a number; it must be a string or a list of {speaker, text}"
        );
        assert!(
            read(r#"{"context":[{"speaker":"A","txt":"x"}]}"#).unwrap_err().contains("context[0].txt is not known")
        );
        assert!(read("{}").unwrap_err().starts_with("context is missing"));
        assert!(read(r#"{"context":"a","dialogue":"b"}"#).unwrap_err().contains("both"));
    }
}
