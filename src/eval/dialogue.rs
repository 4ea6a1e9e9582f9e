//! One line of a JSONL file of dialogues: `persona` (or `profile`), `dialogue` (or `context`) with all turns, and maybe
//! `agent`. Persona, turns and identifier are read as those of a row.

use super::fields::Fields;
use super::rows::{self, BadLine, Known};
use super::transcript;
use crate::persona::Persona;
use crate::prism::Turn;

/// A dialogue whose turns can be judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DialogueLine {
    pub id: String,
    pub persona: Persona,
    pub turns: Vec<Turn>,
    /// Whose turns are judged; empty if the line does not say.
    pub agent: String,
}

impl DialogueLine {
    /// Reads one line. `line` counts from 1 and is the default identifier.
    pub fn parse(text: &str, line: usize) -> Result<Self, BadLine> {
        rows::read(&Known::default(), text, line, |row: &Fields<'_>, id: Option<String>| {
            Ok(Self {
                id: id.unwrap_or_else(|| line.to_string()),
                persona: rows::persona_of(row)?,
                turns: transcript::context(row)?,
                agent: row.text("agent")?.unwrap_or_default(),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn a_line_is_a_persona_and_a_dialogue() {
        let line = r#"{"id":7,"persona":{"name":"Ada","description":"Kind."},"dialogue":"Bo: Hi.\nAda: Hello.","x":1}"#;
        let read = DialogueLine::parse(line, 3).unwrap();
        assert_eq!((read.id.as_str(), read.persona.name.as_deref(), read.agent.as_str()), ("7", Some("Ada"), ""));
        let speakers: Vec<&str> = read.turns.iter().map(|turn| turn.speaker.as_str()).collect();
        assert_eq!(speakers, ["Bo", "Ada"]);
        let line = r#"{"profile":"Kind.","context":[{"speaker":"Bo","text":"Hi."}],"agent":"Bo"}"#;
        let read = DialogueLine::parse(line, 3).unwrap();
        assert_eq!((read.id.as_str(), read.agent.as_str(), read.turns.len()), ("3", "Bo", 1));
    }

    #[test]
    fn a_wrong_line_is_named() {
        let refused = |line: &str| DialogueLine::parse(line, 3).unwrap_err();
        assert!(refused(r#"{"id":"a","dialogue":[]}"#).message.starts_with("persona is missing"));
        assert!(refused(r#"{"profile":"Kind."}"#).message.starts_with("context is missing"));
        let bad = refused(r#"{"id":"a","profile":"Kind.","dialogue":[],"agent":3}"#);
        assert_eq!((bad.id.as_deref(), bad.line), (Some("a"), 3));
        assert_eq!(bad.message, "agent is a number; it must be a string");
    }
}
