//! The label-space file as typed data.

use std::array;

use super::Dimension;
use super::reader::{Problems, Reader};
use crate::persona::{Polarity, Trait, TraitTarget};

/// The version of the file's form that this build reads.
const VERSION: usize = 1;

/// Everything in a label-space file. Texts marked as templates there are template sources here.
#[derive(Debug)]
pub(super) struct Wording {
    pub content_free: Vec<String>,
    pub combine: Combine,
    pub roleplay: RolePlay,
    /// Second-person sentence of each pole.
    pub personas: Poles<String>,
    /// In the order of [`Dimension::ALL`].
    pub dimensions: [DimensionWording; 3],
}

/// One value for each trait and pole.
#[derive(Debug)]
pub(super) struct Poles<T>([[T; 2]; 5]);

impl<T> Poles<T> {
    fn read(mut read: impl FnMut(Trait, Polarity) -> T) -> Self {
        Self(array::from_fn(|t| array::from_fn(|p| read(Trait::ALL[t], Polarity::ALL[p]))))
    }

    pub fn get(&self, target: TraitTarget) -> &T {
        &self.0[target.trait_ as usize][target.polarity as usize]
    }
}

#[derive(Debug)]
pub(super) struct Combine {
    pub traits: String,
    pub both: String,
    pub role_traits: String,
    pub role_both: String,
    pub note_traits: String,
    pub note_both: String,
}

#[derive(Debug)]
pub(super) struct RolePlay {
    pub agent_speakers: Vec<String>,
    pub named_turn: String,
    pub noted_turn: String,
    pub opening: String,
    pub continuation: String,
}

#[derive(Debug)]
pub(super) struct DimensionWording {
    pub name: String,
    pub released_key: String,
    pub question: String,
    pub cue_characters: usize,
    pub indeterminate: String,
    pub character: Character,
    pub poles: Poles<Pole>,
}

#[derive(Debug)]
pub(super) struct Character {
    pub aligned: String,
    pub indeterminate: String,
    pub contradictory: String,
    pub role: String,
    pub contrast_role: String,
    pub note: String,
    pub contrast_note: String,
}

#[derive(Debug)]
pub(super) struct Pole {
    pub description: String,
    pub emphasis: String,
}

impl Wording {
    /// Reads a whole file.
    ///
    /// # Errors
    /// Every problem that was found, each with the path of its key.
    pub fn parse(text: &str) -> Result<Self, Vec<String>> {
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| vec![error.to_string()])?;
        let mut problems = Problems::default();
        let root = Reader::root(&table);
        root.only(
            &[&["version", "content_free", "combine", "roleplay", "traits"][..], &Dimension::ALL.map(Dimension::name)]
                .concat(),
            &mut problems,
        );
        let version = root.count("version", &mut problems);
        if version != 0 && version != VERSION {
            problems.0.push(format!("`version` is {version}: this build reads version {VERSION}"));
        }
        let wording = Self {
            content_free: root.texts("content_free", &mut problems),
            combine: combine(&root.child("combine", &mut problems), &mut problems),
            roleplay: roleplay(&root.child("roleplay", &mut problems), &mut problems),
            personas: personas(&root.child("traits", &mut problems), &mut problems),
            dimensions: Dimension::ALL
                .map(|dimension| dimension_wording(&root.child(dimension.name(), &mut problems), &mut problems)),
        };
        if problems.0.is_empty() { Ok(wording) } else { Err(problems.0) }
    }
}

fn combine(table: &Reader, problems: &mut Problems) -> Combine {
    table.only(&["traits", "both", "role_traits", "role_both", "note_traits", "note_both"], problems);
    Combine {
        traits: table.text("traits", problems),
        both: table.text("both", problems),
        role_traits: table.text("role_traits", problems),
        role_both: table.text("role_both", problems),
        note_traits: table.text_or_empty("note_traits", problems),
        note_both: table.text_or_empty("note_both", problems),
    }
}

fn roleplay(table: &Reader, problems: &mut Problems) -> RolePlay {
    table.only(&["agent_speakers", "named_turn", "noted_turn", "opening", "continuation"], problems);
    RolePlay {
        agent_speakers: table.texts("agent_speakers", problems),
        named_turn: table.text("named_turn", problems),
        noted_turn: table.text("noted_turn", problems),
        opening: table.text("opening", problems),
        continuation: table.text("continuation", problems),
    }
}

fn personas(table: &Reader, problems: &mut Problems) -> Poles<String> {
    table.only(&Trait::ALL.map(Trait::name), problems);
    poles(table, problems, |pole, problems| {
        pole.only(&["persona"], problems);
        pole.text("persona", problems)
    })
}

fn dimension_wording(table: &Reader, problems: &mut Problems) -> DimensionWording {
    let own = ["name", "released_key", "question", "cue_characters", "indeterminate", "character"];
    table.only(&[&own[..], &Trait::ALL.map(Trait::name)].concat(), problems);
    DimensionWording {
        name: table.text("name", problems),
        released_key: table.text("released_key", problems),
        question: table.text_or_empty("question", problems),
        cue_characters: table.count("cue_characters", problems),
        indeterminate: table.text("indeterminate", problems),
        character: character(&table.child("character", problems), problems),
        poles: poles(table, problems, |pole, problems| {
            pole.only(&["description", "emphasis"], problems);
            Pole { description: pole.text("description", problems), emphasis: pole.text_or_empty("emphasis", problems) }
        }),
    }
}

fn character(table: &Reader, problems: &mut Problems) -> Character {
    let keys = ["aligned", "indeterminate", "contradictory", "role", "contrast_role", "note", "contrast_note"];
    table.only(&keys, problems);
    Character {
        aligned: table.text("aligned", problems),
        indeterminate: table.text("indeterminate", problems),
        contradictory: table.text("contradictory", problems),
        role: table.text("role", problems),
        contrast_role: table.text("contrast_role", problems),
        note: table.text_or_empty("note", problems),
        contrast_note: table.text_or_empty("contrast_note", problems),
    }
}

/// Reads `TRAIT.POLE` tables under `table`.
fn poles<T>(table: &Reader, problems: &mut Problems, mut read: impl FnMut(&Reader, &mut Problems) -> T) -> Poles<T> {
    let traits = Trait::ALL.map(|trait_| {
        let child = table.child(trait_.name(), problems);
        child.only(&Polarity::ALL.map(Polarity::name), problems);
        child
    });
    Poles::read(|trait_, polarity| read(&traits[trait_ as usize].child(polarity.name(), problems), problems))
}
