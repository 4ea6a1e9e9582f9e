//! Label spaces: what the labels A, B and C of each dimension say for one persona (method: Y_d).

use std::path::{Path, PathBuf};

use minijinja::{Environment, Value, context};

use super::wording::{Character, DimensionWording, Wording};
use super::{Dimension, Label, jinja};
use crate::digest::Digest;
use crate::persona::{CueKind, Profile, TraitTarget};

const BUILT_IN: &str = include_str!("../../data/label_spaces.toml");

/// A label-space file that cannot be used, or a text of it that cannot be rendered.
#[derive(Debug, thiserror::Error)]
pub enum LabelSpaceError {
    #[error("the label-space file {path} cannot be read: {source}")]
    Read { path: PathBuf, source: std::io::Error },
    /// Every problem at once, each with the path of its key.
    #[error("{origin} has {} problem(s): {}", problems.len(), problems.join("; "))]
    Invalid { origin: String, problems: Vec<String> },
    #[error("`{key}` of the label spaces cannot be rendered: {message}")]
    Render { key: String, message: String },
}

/// The labels of one dimension for one persona.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelSpace {
    pub dimension: Dimension,
    /// As shown in prompts, e.g. `task framing`.
    pub name: String,
    /// What the published label order hashes.
    pub released_key: String,
    pub question: String,
    /// Canonical order: aligned, indeterminate, contradictory.
    pub descriptions: [String; 3],
    /// System turns of the role-play prompt: aligned, contradictory.
    pub role: [String; 2],
    /// What the role-play prompt adds to the last user turn: aligned, contradictory; empty for nothing.
    pub note: [String; 2],
}

impl LabelSpace {
    pub fn description(&self, label: Label) -> &str {
        let [aligned, indeterminate, contradictory] = &self.descriptions;
        match label {
            Label::Aligned => aligned,
            Label::Indeterminate => indeterminate,
            Label::Contradictory => contradictory,
        }
    }
}

/// The wording of all label spaces, from the built-in file or the user's.
#[derive(Debug)]
pub struct LabelSpaces {
    pub(super) wording: Wording,
    templates: Environment<'static>,
    digest: Digest,
}

impl LabelSpaces {
    /// Loads a file, or the built-in wording for None.
    ///
    /// # Errors
    /// [`LabelSpaceError`]: the file cannot be read, or the list of all its problems.
    pub fn load(path: Option<&Path>) -> Result<Self, LabelSpaceError> {
        let Some(path) = path else { return Self::parse("the built-in label-space file", BUILT_IN) };
        let text =
            std::fs::read_to_string(path).map_err(|source| LabelSpaceError::Read { path: path.to_owned(), source })?;
        Self::parse(&format!("the label-space file {}", path.display()), &text)
    }

    /// Reads a file's text; `origin` names it in errors.
    ///
    /// # Errors
    /// As [`LabelSpaces::load`].
    pub fn parse(origin: &str, text: &str) -> Result<Self, LabelSpaceError> {
        let invalid = |problems| LabelSpaceError::Invalid { origin: origin.to_owned(), problems };
        let wording = Wording::parse(text).map_err(invalid)?;
        let templates = compile(&wording).map_err(invalid)?;
        Ok(Self { wording, templates, digest: Digest::of_bytes(text.as_bytes()) })
    }

    /// SHA-256 of the file's bytes.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Responses without content, for contextual calibration; at least one.
    pub fn content_free(&self) -> &[String] {
        &self.wording.content_free
    }

    /// Which cue of a character speaks about a dimension, and how many characters of it are used at most.
    pub fn cue(&self, dimension: Dimension) -> (CueKind, usize) {
        let kind = match dimension {
            Dimension::TaskFraming | Dimension::InterpersonalStance => CueKind::Personality,
            Dimension::LinguisticStyle => CueKind::DialogueStyle,
        };
        (kind, self.wording.dimensions[dimension as usize].cue_characters)
    }

    /// The three label spaces of a persona, in the order of [`Dimension::ALL`].
    ///
    /// # Errors
    /// [`LabelSpaceError::Render`] when a user's template fails on this persona.
    pub fn for_profile(&self, profile: &Profile) -> Result<[LabelSpace; 3], LabelSpaceError> {
        let [task, stance, style] = Dimension::ALL;
        Ok([self.space(task, profile)?, self.space(stance, profile)?, self.space(style, profile)?])
    }

    fn space(&self, dimension: Dimension, profile: &Profile) -> Result<LabelSpace, LabelSpaceError> {
        let wording = &self.wording.dimensions[dimension as usize];
        let has_traits = !profile.traits.is_empty();
        // A profile has traits or is a character (or both): without traits it is read as a character.
        let is_character = profile.is_character() || !has_traits;
        let character = if is_character { Some(self.character(dimension, profile)?) } else { None };
        // The character's text already names the persona.
        let name = profile.name.as_deref().filter(|_| !is_character);
        let traits = if has_traits { Some(self.traits(wording, profile, name)?) } else { None };
        let parts = match (traits, character) {
            (Some(traits), Some(character)) => self.both(&traits, &character)?,
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => Parts::default(),
        };
        Ok(LabelSpace {
            dimension,
            name: wording.name.clone(),
            released_key: wording.released_key.clone(),
            question: wording.question.clone(),
            descriptions: parts.descriptions,
            role: parts.roles,
            note: parts.notes,
        })
    }

    /// Labels of the persona's traits: A describes the target poles, C the opposite poles.
    fn traits(
        &self,
        wording: &DimensionWording,
        profile: &Profile,
        name: Option<&str>,
    ) -> Result<Parts, LabelSpaceError> {
        let side = |target: fn(TraitTarget) -> TraitTarget| -> Result<[String; 3], LabelSpaceError> {
            let targets: Vec<TraitTarget> = profile.traits.iter().map(|declared| target(*declared)).collect();
            let descriptions = texts(&targets, |target| &wording.poles.get(target).description);
            let personas = texts(&targets, |target| self.wording.personas.get(target));
            let emphases = texts(&targets, |target| &wording.poles.get(target).emphasis);
            Ok([
                self.render("combine.traits", context! { descriptions })?,
                self.render("combine.role_traits", context! { personas, name })?,
                self.render("combine.note_traits", context! { emphases })?,
            ])
        };
        let [aligned, role, note] = side(|target| target)?;
        let [contradictory, contrast_role, contrast_note] = side(TraitTarget::opposite)?;
        Ok(Parts {
            descriptions: [aligned, wording.indeterminate.clone(), contradictory],
            roles: [role, contrast_role],
            notes: [note, contrast_note],
        })
    }

    /// Labels of an open-ended character, from its cue.
    fn character(&self, dimension: Dimension, profile: &Profile) -> Result<Parts, LabelSpaceError> {
        let wording = &self.wording.dimensions[dimension as usize].character;
        let (kind, limit) = self.cue(dimension);
        let cue = profile.cue(kind, limit).text;
        let has_traits = !profile.traits.is_empty();
        let variables = context! { name => profile.name.as_deref(), cue, profile => profile.text(), has_traits };
        let render = |key: &str| self.render(&character_key(dimension, key), variables.clone());
        Ok(Parts {
            descriptions: [render("aligned")?, wording.indeterminate.clone(), render("contradictory")?],
            roles: [render("role")?, render("contrast_role")?],
            notes: [render("note")?, render("contrast_note")?],
        })
    }

    /// Both together; label B is the character's, which fits either.
    fn both(&self, traits: &Parts, character: &Parts) -> Result<Parts, LabelSpaceError> {
        let join = |key: &str, traits: &str, character: &str| self.render(key, context! { traits, character });
        let [trait_a, _, trait_c] = &traits.descriptions;
        let [character_a, indeterminate, character_c] = &character.descriptions;
        let ([role_a, role_c], [character_role_a, character_role_c]) = (&traits.roles, &character.roles);
        let ([note_a, note_c], [character_note_a, character_note_c]) = (&traits.notes, &character.notes);
        Ok(Parts {
            descriptions: [
                join("combine.both", trait_a, character_a)?,
                indeterminate.clone(),
                join("combine.both", trait_c, character_c)?,
            ],
            roles: [
                join("combine.role_both", role_a, character_role_a)?,
                join("combine.role_both", role_c, character_role_c)?,
            ],
            notes: [
                join("combine.note_both", note_a, character_note_a)?,
                join("combine.note_both", note_c, character_note_c)?,
            ],
        })
    }

    /// One user turn of a talk with several people.
    pub(super) fn named_turn(&self, speaker: &str, text: &str) -> Result<String, LabelSpaceError> {
        self.render("roleplay.named_turn", context! { speaker, text })
    }

    /// The last user turn with a note on how to answer; the turn alone for an empty note.
    pub(super) fn noted_turn(&self, text: &str, note: &str) -> Result<String, LabelSpaceError> {
        if note.trim().is_empty() {
            return Ok(text.to_owned());
        }
        self.render("roleplay.noted_turn", context! { text, note })
    }

    fn render(&self, key: &str, variables: Value) -> Result<String, LabelSpaceError> {
        self.templates
            .get_template(key)
            .and_then(|template| template.render(variables))
            .map_err(|error| LabelSpaceError::Render { key: key.to_owned(), message: jinja::message(&error) })
    }
}

/// Labels and role-play texts before the system turn is made.
#[derive(Default)]
struct Parts {
    descriptions: [String; 3],
    roles: [String; 2],
    notes: [String; 2],
}

/// One text a target, without empty ones.
fn texts<'a>(targets: &[TraitTarget], text: impl Fn(TraitTarget) -> &'a str) -> Vec<String> {
    targets.iter().map(|target| text(*target).to_owned()).filter(|text| !text.is_empty()).collect()
}

fn character_key(dimension: Dimension, key: &str) -> String {
    format!("{}.character.{key}", dimension.name())
}

/// Compiles every template of the file and renders it once with sample values, so that a fault shows at load.
fn compile(wording: &Wording) -> Result<Environment<'static>, Vec<String>> {
    let mut templates = jinja::environment();
    let syntax = minijinja::syntax::SyntaxConfig::builder().keep_trailing_newline(true).build();
    let mut problems = Vec::new();
    match syntax {
        Ok(syntax) => templates.set_syntax(syntax),
        Err(error) => problems.push(jinja::message(&error)),
    }
    for (key, source, allowed) in sources(wording) {
        if let Err(error) = templates.add_template_owned(key.clone(), source.to_owned()) {
            problems.push(format!("`{key}`: {}", jinja::message(&error)));
            continue;
        }
        let Ok(template) = templates.get_template(&key) else { continue };
        let unknown = jinja::unknown_variables(&template, allowed);
        if !unknown.is_empty() {
            let (unknown, allowed) = (unknown.join(", "), allowed.join(", "));
            problems.push(format!("`{key}` uses the unknown variable(s) {unknown}: allowed here are {allowed}"));
        } else if let Err(error) = template.render(samples()) {
            problems.push(format!("`{key}` cannot be rendered: {}", jinja::message(&error)));
        }
    }
    if problems.is_empty() { Ok(templates) } else { Err(problems) }
}

/// Key, template source and allowed variables.
fn sources(wording: &Wording) -> Vec<(String, &str, &'static [&'static str])> {
    let (combine, roleplay) = (&wording.combine, &wording.roleplay);
    let mut sources: Vec<(String, &str, &[&str])> = vec![
        ("combine.traits".to_owned(), &combine.traits, &["descriptions"]),
        ("combine.both".to_owned(), &combine.both, &["traits", "character"]),
        ("combine.role_traits".to_owned(), &combine.role_traits, &["personas", "name"]),
        ("combine.role_both".to_owned(), &combine.role_both, &["traits", "character"]),
        ("combine.note_traits".to_owned(), &combine.note_traits, &["emphases"]),
        ("combine.note_both".to_owned(), &combine.note_both, &["traits", "character"]),
        ("roleplay.named_turn".to_owned(), &roleplay.named_turn, &["speaker", "text"]),
        ("roleplay.noted_turn".to_owned(), &roleplay.noted_turn, &["text", "note"]),
    ];
    for dimension in Dimension::ALL {
        let Character { aligned, indeterminate: _, contradictory, role, contrast_role, note, contrast_note } =
            &wording.dimensions[dimension as usize].character;
        for (key, source) in [("aligned", aligned), ("contradictory", contradictory)] {
            sources.push((character_key(dimension, key), source, &["cue", "name"]));
        }
        let role_play =
            [("role", role), ("contrast_role", contrast_role), ("note", note), ("contrast_note", contrast_note)];
        for (key, source) in role_play {
            sources.push((character_key(dimension, key), source, &["profile", "cue", "name", "has_traits"]));
        }
    }
    sources
}

fn samples() -> Value {
    context! {
        name => "name", cue => "cue", profile => "profile", speaker => "speaker", text => "text", note => "note",
        traits => "traits", character => "character", descriptions => ["a", "b"], personas => ["a", "b"],
        emphases => ["a", "b"], has_traits => false,
    }
}

#[cfg(test)]
mod tests;
