//! Why a persona cannot be used.

use std::fmt;

use super::{Polarity, Trait};

/// A persona that gives no profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PersonaError {
    /// No trait, no description, no fact.
    #[error(
        "the persona says nothing to judge by: traits, description and facts are all empty; give at least one trait \
         with a polarity, a description (free text or a character card) or a fact"
    )]
    Empty,
    /// Only a name.
    #[error(
        "the persona has only a name, and traits, description and facts are all empty; give at least one trait with a \
         polarity, a description (free text or a character card) or a fact"
    )]
    OnlyName,
    /// One trait at both poles.
    #[error(
        "the trait `{trait_}` is {first} in {first_place} and {second} in {second_place}; keep one polarity for each \
         trait"
    )]
    Contradiction { trait_: Trait, first: Polarity, first_place: Place, second: Polarity, second_place: Place },
    /// One trait twice in the list.
    #[error("the trait `{trait_}` is in {first} and again in {second}; give each trait once")]
    Repeated { trait_: Trait, first: Place, second: Place },
    /// A focus line that does not read as one.
    #[error(
        "`Big Five focus:` must be followed by `TRAIT = high` or `TRAIT = low`, TRAIT one of openness, \
         conscientiousness, extraversion, agreeableness, neuroticism; found `{found}`"
    )]
    Focus { found: String },
}

/// Where a persona names a trait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At this index of `traits`.
    List(usize),
    /// In a focus phrase of the description.
    Focus,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List(index) => write!(f, "persona.traits[{index}]"),
            Self::Focus => f.write_str("the description's focus"),
        }
    }
}

impl PersonaError {
    /// The field of the request at fault.
    pub fn field(&self) -> &'static str {
        match self {
            Self::Empty | Self::OnlyName => "persona",
            Self::Contradiction { .. } | Self::Repeated { .. } => "persona.traits",
            Self::Focus { .. } => "persona.description",
        }
    }
}
