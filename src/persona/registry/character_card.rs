//! Character cards of the community, V2 and V1 (`malfoyslastname/character-card-spec-v2`, spec_v2.md and spec_v1.md), as
//! a [`Persona`].
//!
//! | card | persona |
//! |---|---|
//! | `name` | the name |
//! | `personality` | the section `Personality:` |
//! | `description` | the section `Character Profile:`; without a `personality` it stands first, without a header |
//! | `mes_example` | the section `Dialogue Style:`: what the character says there, in quotes, a line each |
//!
//! So the summary is the cue for task framing and stance, the examples that for style, and a section that the description
//! brings along counts where the card has no field for it. All other fields say something else than who the character
//! is: what goes on (`scenario`, `first_mes`, `alternate_greetings`), what a program should do (`system_prompt`,
//! `post_history_instructions`, `character_book`, `extensions`) or where the card is from. They are not used, and a field
//! that nobody knows is none of ours.

use super::node::{Node, Table};
use super::own;
use super::placeholders::fill;
use super::problem::Problems;
use crate::persona::Persona;

/// What `spec` must say.
const SPEC: &str = "chara_card_v2";

const USED: [&str; 4] = ["name", "description", "personality", "mes_example"];

/// Fields that are in every V1 card and in no persona of our own form.
const ONLY_IN_CARDS: [&str; 2] = ["first_mes", "mes_example"];

/// A card that was read.
pub struct Read {
    pub persona: Persona,
    /// Fields that say something and are not used.
    pub unused: Vec<String>,
}

/// Whether a table is meant as a V2 card.
pub fn is_v2(table: &Table) -> bool {
    table.contains_key("spec")
}

/// Whether a table is meant as a V1 card.
pub fn is_v1(table: &Table) -> bool {
    let has = |keys: [&str; 2]| keys.iter().any(|key| table.contains_key(*key));
    has(ONLY_IN_CARDS) && !has(["traits", "facts"])
}

/// A V2 card: its fields are in `data`. What stands beside `data` repeats them for programs that know V1 alone.
pub fn v2(table: &Table, problems: &mut Problems<'_>) -> Option<Read> {
    match table.get("spec") {
        Some(Node::Text(spec)) if spec == SPEC => {}
        Some(Node::Text(_)) => {
            problems.push("spec", format!("it names another form; it must be {SPEC}: export the card as V2"));
            return None;
        }
        other => {
            problems.wrong("spec", other.map_or("missing", Node::kind), SPEC);
            return None;
        }
    }
    match table.get("data") {
        Some(Node::Table(data)) => read(data, "data", problems),
        other => {
            problems.wrong("data", other.map_or("missing", Node::kind), "a table with the fields of the card");
            None
        }
    }
}

/// A V1 card: all fields at the top.
pub fn v1(table: &Table, problems: &mut Problems<'_>) -> Option<Read> {
    read(table, "", problems)
}

fn read(fields: &Table, path: &str, problems: &mut Problems<'_>) -> Option<Read> {
    let before = problems.found.len();
    let name = own::text(fields, path, "name", problems).map(|name| name.trim().to_owned());
    let name = name.filter(|name| !name.is_empty());
    let mut filled = |key: &str| {
        let text = own::text(fields, path, key, problems).unwrap_or_default();
        fill(text.trim(), name.as_deref()).unwrap_or_else(|error| {
            problems.push(own::join(path, key), error.to_string());
            String::new()
        })
    };
    let [description, personality, examples] = ["description", "personality", "mes_example"].map(&mut filled);
    if problems.found.len() > before {
        return None;
    }
    let style = name.as_deref().map_or_else(String::new, |name| said(&examples, name));
    let sections = if personality.is_empty() {
        [("", description), ("Dialogue Style", style), ("", String::new())]
    } else {
        [("Personality", personality), ("Character Profile", description), ("Dialogue Style", style)]
    };
    let sections = sections.into_iter().filter(|(_, body)| !body.is_empty());
    let sections: Vec<String> =
        sections.map(|(header, body)| if header.is_empty() { body } else { format!("{header}:\n{body}") }).collect();
    let persona = Persona { name, description: sections.join("\n\n"), ..Persona::default() };
    let unused = fields.iter().filter(|(key, value)| !USED.contains(&key.as_str()) && !value.is_empty());
    Some(Read { persona, unused: unused.map(|(key, _)| key.clone()).collect() })
}

/// What `name` says in example conversations (`<START>` before each, `Speaker: text`), in quotes, a line each. A line
/// without one of the two speakers goes on with the turn before it.
fn said(examples: &str, name: &str) -> String {
    let mut turns: Vec<String> = Vec::new();
    let mut own = false;
    for line in examples.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let after = |speaker: &str| {
            let (head, tail) = line.split_at_checked(speaker.len())?;
            tail.strip_prefix(':').filter(|_| head.eq_ignore_ascii_case(speaker))
        };
        if line.eq_ignore_ascii_case("<start>") {
            own = false;
        } else if let Some(text) = after(name) {
            own = true;
            turns.push(text.trim().to_owned());
        } else if after(super::placeholders::USER).is_some() {
            own = false;
        } else if let (true, Some(turn)) = (own, turns.last_mut()) {
            turn.push(' ');
            turn.push_str(line);
        }
    }
    let quoted = turns.iter().map(|turn| turn.trim()).filter(|turn| !turn.is_empty()).map(|turn| format!("\"{turn}\""));
    quoted.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
#[path = "character_card_tests.rs"]
mod tests;
