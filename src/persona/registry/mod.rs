//! Personas with ids, from a folder or a file. Knows no other room: who refers to an id, and how large a persona may be,
//! is up to others.
//!
//! A [`Registry`] is one set that was read whole; [`Personas`] exchanges it for a new one while calls use it.

mod character_card;
mod folder;
mod id;
mod node;
mod own;
mod personas;
mod placeholders;
mod problem;
mod syntax;
mod yaml;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::path::Path;

use serde::Serialize;

use self::folder::{Contents, Kind, Source};
use self::node::Node;
use self::problem::Problems;
use self::syntax::Syntax;
use super::{Card, Persona, PersonaError, TraitTarget};
use crate::digest::Digest;

pub use self::folder::{SkipReason, Skipped};
pub use self::personas::Personas;
pub use self::problem::{Problem, RegistryError, UnknownPersona};

/// Personas of a set, at most.
const MOST: usize = 10_000;

/// How a persona was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    Toml,
    Yaml,
    Json,
    /// A character card of the community, V1.
    CardV1,
    /// A character card of the community, V2.
    CardV2,
    /// Plain text.
    Text,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Toml => "TOML",
            Self::Yaml => "YAML",
            Self::Json => "JSON",
            Self::CardV1 => "character card V1",
            Self::CardV2 => "character card V2",
            Self::Text => "plain text",
        })
    }
}

/// A persona and what it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    pub id: String,
    pub persona: Persona,
    /// The name that the persona is played by, from its field or its `Name:` section.
    pub name: Option<String>,
    /// SHA-256 of what the persona says.
    pub digest: Digest,
    /// Where it was written, and how.
    pub file: String,
    pub form: Form,
    /// Fields of the file that say something and are not used.
    pub unused: Vec<String>,
}

/// A set of personas, each under its id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registry {
    personas: BTreeMap<String, Named>,
    skipped: Vec<Skipped>,
}

impl Registry {
    /// The personas of a folder or a file.
    ///
    /// # Errors
    /// Everything that is wrong, in one answer.
    pub fn load(path: &Path) -> Result<Self, RegistryError> {
        let (registry, problems) = Self::read(path);
        RegistryError::unless(problems, registry)
    }

    /// The personas that are in order, and what is wrong with the others.
    pub fn read(path: &Path) -> (Self, Vec<Problem>) {
        Self::of(path, Contents::read(path))
    }

    /// The same of one file's bytes; nothing where a file of that name is not read.
    pub fn of_file(name: &Path, bytes: &[u8]) -> (Self, Vec<Problem>) {
        let files = Source::new(name, Ok(bytes.to_vec())).into_iter().collect();
        Self::of(name, Contents { files, ..Contents::default() })
    }

    fn of(path: &Path, contents: Contents) -> (Self, Vec<Problem>) {
        let mut registry = Self { skipped: contents.skipped, ..Self::default() };
        let path = path.display().to_string();
        let mut problems = Problems::of(&path);
        if let Some(reason) = contents.unreadable {
            problems.push("", reason);
        } else if contents.files.is_empty() {
            problems.push("", "there is no file of personas in it: .toml, .yaml, .yml, .json, .txt or .md");
        }
        let mut all = problems.found;
        for source in &contents.files {
            let mut problems = Problems::of(&source.name);
            for named in personas(source, &mut problems) {
                registry.add(named, &mut problems);
            }
            all.append(&mut problems.found);
        }
        (registry, all)
    }

    fn add(&mut self, named: Named, problems: &mut Problems<'_>) {
        if self.personas.len() == MOST {
            problems.push(named.id, format!("it is one too many; a set has at most {MOST} personas"));
            return;
        }
        match self.personas.entry(named.id.clone()) {
            Entry::Vacant(place) => _ = place.insert(named),
            Entry::Occupied(place) => {
                problems.push(named.id, format!("this id is taken by a persona of {}", place.get().file));
            }
        }
    }

    /// The persona of an id.
    ///
    /// # Errors
    /// There is none; the error has ids that are near.
    pub fn get(&self, id: &str) -> Result<&Named, UnknownPersona> {
        self.personas.get(id).ok_or_else(|| UnknownPersona::new(id, self))
    }

    /// In the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &Named> {
        self.personas.values()
    }

    pub fn len(&self) -> usize {
        self.personas.len()
    }

    pub fn is_empty(&self) -> bool {
        self.personas.is_empty()
    }

    /// What lies beside the files that were read.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// Asks `check` about each persona.
    ///
    /// # Errors
    /// All that it says.
    pub fn check<E: fmt::Display>(&self, check: impl Fn(&Persona) -> Result<(), E>) -> Result<(), RegistryError> {
        let problem = |named: &Named| {
            let message = check(&named.persona).err()?.to_string();
            Some(Problem { file: named.file.clone(), field: named.id.clone(), message })
        };
        RegistryError::unless(self.iter().filter_map(problem).collect(), ())
    }
}

/// The personas of one file that are in order.
fn personas(source: &Source, problems: &mut Problems<'_>) -> Vec<Named> {
    let bytes = match &source.bytes {
        Ok(bytes) => bytes,
        Err(reason) => {
            problems.push("", reason.clone());
            return Vec::new();
        }
    };
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text.strip_prefix('\u{feff}').unwrap_or(text),
        Err(error) => {
            problems.push("", format!("it is not UTF-8 from byte {} on", error.valid_up_to() + 1));
            return Vec::new();
        }
    };
    let found = match source.kind {
        Kind::Text => {
            plain(text, problems).map(|persona| Found::only(source, persona, Form::Text)).into_iter().collect()
        }
        Kind::Structured(syntax) => match syntax.parse(text) {
            Ok(node) => structured(source, &node, syntax.into(), problems),
            Err(reason) => {
                problems.push("", reason);
                Vec::new()
            }
        },
    };
    found.into_iter().filter_map(|found| found.named(source, problems)).collect()
}

/// A card in plain text. Its name, for the placeholders, is that of its `Name:` section.
fn plain(text: &str, problems: &mut Problems<'_>) -> Option<Persona> {
    match placeholders::fill(text.trim(), Card::parse(text).name()) {
        Ok(description) => Some(Persona { description, ..Persona::default() }),
        Err(error) => {
            problems.push("", error.to_string());
            None
        }
    }
}

/// What the fields of a file say that it is. A table with a field of a persona is one persona, however its other fields
/// are spelt; without one, tables in a table are several.
fn structured(source: &Source, node: &Node, form: Form, problems: &mut Problems<'_>) -> Vec<Found> {
    let table = match node {
        Node::Table(table) if !table.is_empty() => table,
        _ => return several(node, "", form, problems),
    };
    let has = |keys: &[&str]| keys.iter().any(|key| table.contains_key(*key));
    let card = |read: Option<character_card::Read>, form| {
        let found =
            |read: character_card::Read| Found { unused: read.unused, ..Found::only(source, read.persona, form) };
        read.map(found).into_iter().collect()
    };
    if character_card::is_v2(table) {
        return card(character_card::v2(table, problems), Form::CardV2);
    }
    if character_card::is_v1(table) {
        return card(character_card::v1(table, problems), Form::CardV1);
    }
    if table.contains_key(own::SEVERAL) && !has(&own::FIELDS) {
        own::only(table, "", &[own::SEVERAL], problems);
        return several(&table[own::SEVERAL], own::SEVERAL, form, problems);
    }
    if !has(&own::FIELDS) && table.values().any(|value| matches!(value, Node::Table(_))) {
        return several(node, "", form, problems);
    }
    let persona = own::persona(table, "", &[], problems);
    persona.map(|persona| Found::only(source, persona, form)).into_iter().collect()
}

fn several(node: &Node, path: &str, form: Form, problems: &mut Problems<'_>) -> Vec<Found> {
    if node.is_empty() {
        problems.push(path, "there is no persona in it");
        return Vec::new();
    }
    let personas = own::several(node, path, problems);
    let found = |(id, persona): (String, Persona)| Found { path: id.clone(), id, persona, form, unused: Vec::new() };
    personas.into_iter().map(found).collect()
}

/// A persona that was read and may still say nothing.
struct Found {
    id: String,
    persona: Persona,
    form: Form,
    unused: Vec<String>,
    /// Where it stands in its file, for messages.
    path: String,
}

impl Found {
    /// The only persona of its file, which gives it its id.
    fn only(source: &Source, persona: Persona, form: Form) -> Self {
        Self { id: source.stem.clone(), persona, form, unused: Vec::new(), path: String::new() }
    }

    fn named(self, source: &Source, problems: &mut Problems<'_>) -> Option<Named> {
        let Self { id, persona, form, unused, path } = self;
        if !id::is_id(&id) {
            problems.push("", format!("the name of the file gives no id; an id has {}", id::RULE));
            return None;
        }
        match persona.profile() {
            Ok(profile) => {
                let (digest, file) = (digest(&persona), source.name.clone());
                Some(Named { id, persona, name: profile.name, digest, file, form, unused })
            }
            Err(error) => {
                let field = error.field().trim_start_matches("persona").trim_start_matches('.');
                let field = if field.is_empty() { path } else { own::join(&path, field) };
                problems.push(field, unusable(&error));
                None
            }
        }
    }
}

/// Why a persona gives no profile, without the text that was found.
fn unusable(error: &PersonaError) -> String {
    match error {
        PersonaError::Focus { .. } => {
            "`Big Five focus:` must be followed by `TRAIT = high` or `TRAIT = low`, TRAIT one of the Big Five"
                .to_owned()
        }
        PersonaError::Empty
        | PersonaError::OnlyName
        | PersonaError::Contradiction { .. }
        | PersonaError::Repeated { .. } => error.to_string(),
    }
}

fn digest(persona: &Persona) -> Digest {
    let Persona { name, traits, description, facts } = persona;
    let mut digest = Digest::builder("prism-judge persona 1");
    // A name that is empty is not a name that is missing.
    if let Some(name) = name {
        digest = digest.field("name", name.as_bytes());
    }
    for TraitTarget { trait_, polarity } in traits {
        digest = digest.field("trait", trait_.name().as_bytes()).field("polarity", polarity.name().as_bytes());
    }
    digest = digest.field("description", description.as_bytes());
    facts.iter().fold(digest, |digest, fact| digest.field("fact", fact.as_bytes())).finish()
}

impl From<Syntax> for Form {
    fn from(syntax: Syntax) -> Self {
        match syntax {
            Syntax::Toml => Self::Toml,
            Syntax::Yaml => Self::Yaml,
            Syntax::Json => Self::Json,
        }
    }
}

#[cfg(test)]
mod tests;
