//! Our own form: the fields of a [`Persona`], as one persona, a table or a list of several.

use super::id;
use super::node::{Node, Table};
use super::problem::Problems;
use crate::persona::{Persona, Polarity, Trait, TraitTarget};

/// The fields of a persona.
pub const FIELDS: [&str; 4] = ["name", "traits", "description", "facts"];

/// The key under which a file may hold several, for forms that have no list at the top.
pub const SEVERAL: &str = "personas";

const TRAIT_FIELDS: [&str; 2] = ["trait", "polarity"];

/// One persona, unless something about it is wrong; `more` are fields that may stand beside its own, `path` leads to it.
pub fn persona(table: &Table, path: &str, more: &[&str], problems: &mut Problems<'_>) -> Option<Persona> {
    let before = problems.found.len();
    only(table, path, &[more, &FIELDS].concat(), problems);
    let persona = Persona {
        name: text(table, path, "name", problems),
        traits: traits(table, path, problems),
        description: text(table, path, "description", problems).unwrap_or_default(),
        facts: facts(table, path, problems),
    };
    (problems.found.len() == before).then_some(persona)
}

/// Several personas under their ids: the keys of a table, or the field `id` of each item of a list.
pub fn several(node: &Node, path: &str, problems: &mut Problems<'_>) -> Vec<(String, Persona)> {
    match node {
        Node::Table(table) => {
            let entries = table.iter().filter_map(|(key, value)| {
                let id = checked(key, &join(path, key), problems)?;
                let fields = entry(value, &id, problems)?;
                let persona = persona(fields, &id, &[], problems)?;
                Some((id, persona))
            });
            entries.collect()
        }
        Node::List(items) => {
            let entries = items.iter().enumerate().filter_map(|(index, item)| {
                let place = format!("{path}[{index}]");
                let fields = entry(item, &place, problems)?;
                let id = match fields.get("id") {
                    Some(Node::Text(id)) => checked(id, &join(&place, "id"), problems)?,
                    Some(other) => {
                        problems.wrong(join(&place, "id"), other.kind(), &format!("a text of {}", id::RULE));
                        return None;
                    }
                    None => {
                        problems.push(join(&place, "id"), format!("it is missing; it must be a text of {}", id::RULE));
                        return None;
                    }
                };
                let persona = persona(fields, &id, &["id"], problems)?;
                Some((id, persona))
            });
            entries.collect()
        }
        other => {
            problems.wrong(
                path,
                other.kind(),
                "a table of personas by their ids, or a list of personas with an id each",
            );
            Vec::new()
        }
    }
}

/// The id, if it may be one.
pub fn checked(text: &str, path: &str, problems: &mut Problems<'_>) -> Option<String> {
    if !id::is_id(text) {
        problems.push(path, format!("it is no id; an id has {}", id::RULE));
        return None;
    }
    Some(text.to_owned())
}

fn entry<'a>(node: &'a Node, path: &str, problems: &mut Problems<'_>) -> Option<&'a Table> {
    match node {
        Node::Table(table) if table.contains_key("spec") => {
            problems.push(path, "it is a character card; a card stands in a file of its own");
            None
        }
        Node::Table(table) => Some(table),
        other => {
            problems.wrong(path, other.kind(), &format!("a persona, a table with any of {}", FIELDS.join(", ")));
            None
        }
    }
}

/// A field's full name.
pub fn join(path: &str, key: &str) -> String {
    let key = if id::is_id(key) { key } else { &format!("({})", id::shown(key)) };
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// A typing mistake must not change what is judged.
pub fn only(table: &Table, path: &str, allowed: &[&str], problems: &mut Problems<'_>) {
    for key in table.keys().filter(|key| !allowed.contains(&key.as_str())) {
        problems.push(join(path, key), format!("it is not known; allowed are {}", allowed.join(", ")));
    }
}

fn no_text(node: &Node, place: String, problems: &mut Problems<'_>) {
    let allowed = match node {
        Node::Boolean | Node::Number | Node::Date => "a text; put it in quotes",
        Node::Nothing | Node::Text(_) | Node::List(_) | Node::Table(_) => "a text",
    };
    problems.wrong(place, node.kind(), allowed);
}

/// The text of a field; None if it is missing or wrong.
pub fn text(table: &Table, path: &str, key: &str, problems: &mut Problems<'_>) -> Option<String> {
    match table.get(key)? {
        Node::Text(text) => Some(text.clone()),
        Node::Nothing => None,
        other => {
            no_text(other, join(path, key), problems);
            None
        }
    }
}

/// The items of a list; none if it is missing or wrong.
fn items<'a>(table: &'a Table, path: &str, (key, allowed): (&str, &str), problems: &mut Problems<'_>) -> &'a [Node] {
    match table.get(key) {
        Some(Node::List(items)) => items,
        None | Some(Node::Nothing) => &[],
        Some(other) => {
            problems.wrong(join(path, key), other.kind(), allowed);
            &[]
        }
    }
}

fn facts(table: &Table, path: &str, problems: &mut Problems<'_>) -> Vec<String> {
    let mut facts = Vec::new();
    for (index, item) in items(table, path, ("facts", "a list of texts"), problems).iter().enumerate() {
        match item {
            Node::Text(fact) => facts.push(fact.clone()),
            other => no_text(other, format!("{}[{index}]", join(path, "facts")), problems),
        }
    }
    facts
}

fn traits(table: &Table, path: &str, problems: &mut Problems<'_>) -> Vec<TraitTarget> {
    let mut traits = Vec::new();
    for (index, item) in items(table, path, ("traits", "a list of {trait, polarity}"), problems).iter().enumerate() {
        let path = format!("{}[{index}]", join(path, "traits"));
        let Node::Table(target) = item else {
            problems.wrong(path, item.kind(), "a table {trait, polarity}");
            continue;
        };
        only(target, &path, &TRAIT_FIELDS, problems);
        let trait_ = word(target, &path, "trait", Trait::ALL.map(|one| (one.name(), one)), problems);
        let polarity = word(target, &path, "polarity", Polarity::ALL.map(|one| (one.name(), one)), problems);
        if let (Some(trait_), Some(polarity)) = (trait_, polarity) {
            traits.push(TraitTarget { trait_, polarity });
        }
    }
    traits
}

/// One of a few words.
fn word<T: Copy, const N: usize>(
    table: &Table,
    path: &str,
    key: &str,
    allowed: [(&str, T); N],
    problems: &mut Problems<'_>,
) -> Option<T> {
    let names = || format!("one of {}", allowed.map(|(name, _)| name).join(", "));
    let place = join(path, key);
    match table.get(key) {
        Some(Node::Text(text)) => {
            let found = allowed.iter().find(|(name, _)| name == text).map(|(_, value)| *value);
            if found.is_none() {
                problems.wrong(place, &id::shown(text), &names());
            }
            found
        }
        None => {
            problems.push(place, format!("it is missing; it must be {}", names()));
            None
        }
        Some(other) => {
            problems.wrong(place, other.kind(), &names());
            None
        }
    }
}
