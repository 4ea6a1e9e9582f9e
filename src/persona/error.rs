//! Why a persona cannot be used.

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
        "the trait `{trait_}` is {first} in {first_source} and {second} in {second_source}; keep one polarity for each \
         trait"
    )]
    Contradiction {
        trait_: Trait,
        first: Polarity,
        first_source: &'static str,
        second: Polarity,
        second_source: &'static str,
    },
    /// A focus line that does not read as one.
    #[error(
        "`Big Five focus:` must be followed by `TRAIT = high` or `TRAIT = low`, TRAIT one of openness, \
         conscientiousness, extraversion, agreeableness, neuroticism; found `{found}`"
    )]
    Focus { found: String },
}

impl PersonaError {
    /// The field of the request at fault.
    pub fn field(&self) -> &'static str {
        match self {
            Self::Empty | Self::OnlyName => "persona",
            Self::Contradiction { .. } => "persona.traits",
            Self::Focus { .. } => "persona.description",
        }
    }
}
