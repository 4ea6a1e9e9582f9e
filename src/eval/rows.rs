//! One line of a JSONL file: what is to be judged, and which answer is expected where the file says so.
//!
//! Four forms are known, told apart by their fields. Fields without meaning here (source, license, split, ...) may
//! stand beside them.
//!
//! | form | fields |
//! |---|---|
//! | row | `persona`, `context`, `response`; `case_id`, `id` or `item_id`; `label` 1 or 0 |
//! | published PRISM row | the same with `profile` (a text) for `persona` |
//! | group | `persona`, `context`, `positive` (or `positives`), `negatives` `[{text, kind?, persona?}]`; `group_id` |
//! | diagnosis | `persona`, `context`, `aligned`, `task_error`, `stance_error`, `style_error`; `group_id` |
//!
//! A negative with its own persona is a **profile swap**: it is judged under that persona. In place of a persona a line or
//! a negative may have `persona_id`, which names one of [`Known`]. [`transcript`] tells how `context` and `dialogue` are
//! read. An identifier that is missing is the number of the line.
//!
//! [`transcript`]: super::transcript

use std::collections::HashMap;

use serde_json::{Value, json};

use super::fields::{self, FieldError, Fields};
use super::transcript;
use crate::persona::{Persona, Registry, TraitTarget};
use crate::prism::{Candidate, Dimension, Group, Turn};

const NEGATIVE: &str = "a string or an object {text, kind, persona}";

/// What the file expects of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// Nothing.
    Single,
    /// It fits the persona.
    Positive,
    /// It does not fit.
    Negative,
}

/// The dimension that an annotated negative breaks.
pub type Violation = Dimension;

/// One response of a line and where it stands in the line's groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub id: String,
    /// Index into [`Item::groups`].
    pub group: usize,
    /// Index into that group's candidates.
    pub candidate: usize,
    pub role: Role,
    pub violated: Option<Violation>,
}

/// A line that can be judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Ties rows together for the ranking metrics: rows with the same key are one group, on whatever line they stand.
    pub key: String,
    /// The candidates by persona: the line's own first, then one group for each swapped profile.
    pub groups: Vec<Group>,
    /// The responses in the order of the line.
    pub rows: Vec<Row>,
}

/// A line that cannot be judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    pub id: Option<String>,
    /// From 1.
    pub line: usize,
    pub message: String,
}

impl BadLine {
    /// The error object that stands for the line in the output.
    pub fn to_json(&self) -> Value {
        json!({"id": self.id, "line": self.line, "error": {"code": "invalid_argument", "message": self.message}})
    }
}

/// Whom a line may mean beside the persona that it describes.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The personas that a `persona_id` may name.
    pub registry: Registry,
    /// The persona of lines that say nothing of theirs.
    pub default: Option<Persona>,
}

impl Known {
    /// Puts the personas that a line names into their places.
    fn fill_in(&self, line: &mut Value) -> Result<(), FieldError> {
        for (index, negative) in
            line.get_mut("negatives").and_then(Value::as_array_mut).into_iter().flatten().enumerate()
        {
            self.fill_in_one(negative, &format!("negatives[{index}]."), None)?;
        }
        self.fill_in_one(line, "", self.default.as_ref())
    }

    fn fill_in_one(&self, value: &mut Value, path: &str, default: Option<&Persona>) -> Result<(), FieldError> {
        let Value::Object(object) = value else { return Ok(()) };
        let has = |key: &&str| object.get(*key).is_some_and(|value| !value.is_null());
        let inline = ["persona", "profile"].into_iter().find(has);
        let field = format!("{path}persona_id");
        let persona = match (inline, object.get("persona_id").filter(|id| !id.is_null())) {
            (Some(inline), Some(_)) => return Err(format!("{field} and {path}{inline} are both set; keep one")),
            (None, Some(id)) => match self.registry.get(&fields::text(id, &field)?) {
                Ok(named) => Some(&named.persona),
                Err(unknown) => return Err(format!("{field}: {unknown}")),
            },
            (None, None) => default,
            (Some(_), None) => None,
        };
        if let Some(persona) = persona {
            object.insert("persona".to_owned(), json!(persona));
        }
        Ok(())
    }
}

impl Item {
    /// Reads one line, which describes its persona. `line` counts from 1 and is the default identifier.
    pub fn parse(text: &str, line: usize) -> Result<Self, BadLine> {
        Self::parse_knowing(&Known::default(), text, line)
    }

    /// The same of a line that may name its persona.
    pub fn parse_knowing(known: &Known, text: &str, line: usize) -> Result<Self, BadLine> {
        read(known, text, line, |row, _| {
            if ["positive", "positives", "negatives"].iter().any(|key| row.has(key)) {
                ranked(row, line)
            } else if row.has("aligned") {
                diagnosis(row, line)
            } else {
                single(row, line)
            }
        })
    }
}

/// Reads a line's object with its identifier, if it has one.
pub(super) fn read<T>(
    known: &Known,
    text: &str,
    line: usize,
    read: impl FnOnce(&Fields<'_>, Option<String>) -> Result<T, FieldError>,
) -> Result<T, BadLine> {
    let bad = |id, message| BadLine { id, line, message };
    let mut value: Value = serde_json::from_str(text).map_err(|error| bad(None, syntax(text, &error)))?;
    let filled_in = known.fill_in(&mut value);
    let row = fields::object(&value, "the line", "an object").map_err(|message| bad(None, message))?;
    let row = Fields::new(row, "");
    let id = identifier(&row).map_err(|message| bad(None, message))?;
    filled_in.and_then(|()| read(&row, id.clone())).map_err(|message| bad(id, message))
}

/// The identifier of a line: the row's own before the group's.
fn identifier(row: &Fields<'_>) -> Result<Option<String>, FieldError> {
    for key in ["case_id", "id", "item_id", "group_id"] {
        if let Some(id) = row.identifier(key)? {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

fn group_identifier(row: &Fields<'_>, line: usize) -> Result<String, FieldError> {
    Ok(row.identifier("group_id")?.or(row.identifier("id")?).unwrap_or_else(|| line.to_string()))
}

/// A row: one persona, one response.
fn single(row: &Fields<'_>, line: usize) -> Result<Item, FieldError> {
    let persona = persona_of(row)?;
    let context = transcript::context(row)?;
    let response = row.required_text("response")?;
    let id = identifier(row)?.unwrap_or_else(|| line.to_string());
    let role = match row.get("label") {
        None => Role::Single,
        Some(Value::Bool(true)) => Role::Positive,
        Some(Value::Bool(false)) => Role::Negative,
        Some(label) if label.as_i64() == Some(1) => Role::Positive,
        Some(label) if label.as_i64() == Some(0) => Role::Negative,
        Some(other) => return Err(format!("label is {other}; it must be 1 or 0")),
    };
    let key = case_group(row, &role)?.unwrap_or_else(|| id.clone());
    let mut plan = Plan::new(persona, context);
    plan.add(id, response, None, role, None);
    Ok(plan.finish(key))
}

/// The group of a labelled row, by the published rule: a negative follows `source_case_id`, other rows `group_id`,
/// `id`, or the case id without its suffix.
fn case_group(row: &Fields<'_>, role: &Role) -> Result<Option<String>, FieldError> {
    if *role == Role::Negative
        && let Some(source) = row.identifier("source_case_id")?
    {
        return Ok(Some(case_stem(&source).to_owned()));
    }
    if let Some(id) = row.identifier("group_id")?.or(row.identifier("id")?) {
        return Ok(Some(id));
    }
    Ok(row.identifier("case_id")?.map(|id| case_stem(&id).to_owned()))
}

fn case_stem(case_id: &str) -> &str {
    let stem = ["_NEG", "_neg_"].iter().fold(case_id, |id, mark| id.split_once(mark).map_or(id, |(stem, _)| stem));
    stem.strip_suffix("_pos").unwrap_or(stem)
}

/// A group: positives that fit, negatives that do not.
fn ranked(row: &Fields<'_>, line: usize) -> Result<Item, FieldError> {
    let id = group_identifier(row, line)?;
    let mut plan = Plan::new(persona_of(row)?, transcript::context(row)?);
    let positives = positives(row)?;
    if positives.is_empty() {
        return Err(fields::missing("positive", "a string or a list of strings"));
    }
    let several = positives.len() > 1;
    for (index, text) in positives.into_iter().enumerate() {
        let id = if several { format!("{id}/positive/{index}") } else { format!("{id}/positive") };
        plan.add(id, text, None, Role::Positive, None);
    }
    for (index, (name, value)) in row.list("negatives", NEGATIVE)?.into_iter().enumerate() {
        let id = format!("{id}/negative/{index}");
        if let Value::String(text) = value {
            plan.add(id, text.clone(), None, Role::Negative, None);
            continue;
        }
        let negative = Fields::new(fields::object(value, &name, NEGATIVE)?, &name);
        let swap = negative.get("persona").map(|value| persona(value, &negative.name("persona"))).transpose()?;
        let violated = negative.text("kind")?.as_deref().and_then(violation);
        plan.add(id, negative.required_text("text")?, swap, Role::Negative, violated);
    }
    Ok(plan.finish(id))
}

fn positives(row: &Fields<'_>) -> Result<Vec<String>, FieldError> {
    let mut texts = Vec::new();
    for key in ["positive", "positives"] {
        match row.get(key) {
            None => {}
            Some(Value::String(text)) => texts.push(text.clone()),
            Some(Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    texts.push(fields::text(item, &format!("{key}[{index}]"))?);
                }
            }
            Some(other) => return Err(fields::wrong(key, other, "a string or a list of strings")),
        }
    }
    Ok(texts)
}

/// A diagnosis group: one reply that fits, and replies that break exactly one dimension each.
fn diagnosis(row: &Fields<'_>, line: usize) -> Result<Item, FieldError> {
    let id = group_identifier(row, line)?;
    let mut plan = Plan::new(persona_of(row)?, transcript::context(row)?);
    plan.add(format!("{id}/aligned"), row.required_text("aligned")?, None, Role::Positive, None);
    for key in ["task_error", "stance_error", "style_error"] {
        if let Some(text) = row.text(key)? {
            plan.add(format!("{id}/{key}"), text, None, Role::Negative, violation(key));
        }
    }
    Ok(plan.finish(id))
}

fn violation(kind: &str) -> Option<Violation> {
    match kind {
        "task_error" => Some(Dimension::TaskFraming),
        "stance_error" => Some(Dimension::InterpersonalStance),
        "style_error" => Some(Dimension::LinguisticStyle),
        _ => None,
    }
}

/// The line's persona: `persona`, or `profile` as its description.
pub(super) fn persona_of(row: &Fields<'_>) -> Result<Persona, FieldError> {
    match (row.get("persona"), row.text("profile")?) {
        (Some(_), Some(_)) => Err("persona and profile are both set; keep one".to_owned()),
        (Some(value), None) => persona(value, "persona"),
        (None, Some(description)) => Ok(Persona { description, ..Persona::default() }),
        (None, None) => Err(fields::missing("persona", "an object {name, traits, description, facts}")),
    }
}

fn persona(value: &Value, name: &str) -> Result<Persona, FieldError> {
    let shape = "an object {name, traits, description, facts} (a plain text goes into profile)";
    let persona = Fields::new(fields::object(value, name, shape)?, name);
    persona.only(&["name", "traits", "description", "facts"])?;
    let mut traits = Vec::new();
    for (name, value) in persona.list("traits", "{trait, polarity}")? {
        let target = Fields::new(fields::object(value, &name, "an object {trait, polarity}")?, &name);
        target.only(&["trait", "polarity"])?;
        traits.push(TraitTarget { trait_: one_of(&target, "trait")?, polarity: one_of(&target, "polarity")? });
    }
    let mut facts = Vec::new();
    for (name, value) in persona.list("facts", "strings")? {
        facts.push(fields::text(value, &name)?);
    }
    let description = persona.text("description")?.unwrap_or_default();
    Ok(Persona { name: persona.text("name")?, traits, description, facts })
}

/// A value of an enumeration; the error lists what is allowed.
fn one_of<T: serde::de::DeserializeOwned>(target: &Fields<'_>, key: &str) -> Result<T, FieldError> {
    let text = target.required_text(key)?;
    serde_json::from_value(Value::String(text)).map_err(|error| format!("{}: {error}", target.name(key)))
}

/// Collects the responses of a line under the personas that judge them.
struct Plan {
    groups: Vec<Group>,
    rows: Vec<Row>,
}

impl Plan {
    fn new(persona: Persona, context: Vec<Turn>) -> Self {
        Self { groups: vec![Group { persona, context, candidates: Vec::new() }], rows: Vec::new() }
    }

    fn add(&mut self, id: String, response: String, swap: Option<Persona>, role: Role, violated: Option<Violation>) {
        let group = swap.map_or(0, |persona| self.group(persona));
        let candidates = &mut self.groups[group].candidates;
        candidates.push(Candidate { id: id.clone(), response });
        self.rows.push(Row { id, group, candidate: candidates.len() - 1, role, violated });
    }

    /// The group of a swapped profile; swaps with the same profile share one.
    fn group(&mut self, persona: Persona) -> usize {
        if let Some(known) = self.groups.iter().position(|group| group.persona == persona) {
            return known;
        }
        let context = self.groups[0].context.clone();
        self.groups.push(Group { persona, context, candidates: Vec::new() });
        self.groups.len() - 1
    }

    /// Drops groups that no response uses and renumbers the rest.
    fn finish(mut self, key: String) -> Item {
        let mut kept = HashMap::new();
        for (index, group) in self.groups.iter().enumerate() {
            if !group.candidates.is_empty() {
                kept.insert(index, kept.len());
            }
        }
        self.groups.retain(|group| !group.candidates.is_empty());
        for row in &mut self.rows {
            row.group = kept.get(&row.group).copied().unwrap_or(row.group);
        }
        Item { key, groups: self.groups, rows: self.rows }
    }
}

/// Puts serde_json's message into plain words: the line is always line 1 to it.
fn syntax(text: &str, error: &serde_json::Error) -> String {
    let detail = error.to_string();
    let detail = detail.split(" at line ").next().unwrap_or(&detail);
    let column = error.column();
    if detail.contains("surrogate") || detail.contains("hex escape") {
        return format!(
            "not valid JSON at column {column}: a \\u escape is cut short or is half of a surrogate pair, which is no \
             character"
        );
    }
    let hint =
        if text.trim_start().starts_with('[') { "; each line must be one object, not part of a list" } else { "" };
    format!("not valid JSON at column {column}: {detail}{hint}")
}

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
