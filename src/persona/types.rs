//! The persona as every other room sees it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One of the Big Five traits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trait {
    Openness,
    Conscientiousness,
    Extraversion,
    Agreeableness,
    Neuroticism,
}

impl Trait {
    pub const ALL: [Self; 5] =
        [Self::Openness, Self::Conscientiousness, Self::Extraversion, Self::Agreeableness, Self::Neuroticism];

    /// The name used in proto, JSON and data files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Openness => "openness",
            Self::Conscientiousness => "conscientiousness",
            Self::Extraversion => "extraversion",
            Self::Agreeableness => "agreeableness",
            Self::Neuroticism => "neuroticism",
        }
    }
}

impl fmt::Display for Trait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The pole of a trait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Polarity {
    High,
    Low,
}

impl Polarity {
    pub const ALL: [Self; 2] = [Self::High, Self::Low];

    /// The name used in proto, JSON and data files.
    pub fn name(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Low => "low",
        }
    }

    pub fn opposite(self) -> Self {
        match self {
            Self::High => Self::Low,
            Self::Low => Self::High,
        }
    }
}

impl fmt::Display for Polarity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A trait and the pole that the persona takes on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraitTarget {
    #[serde(rename = "trait")]
    pub trait_: Trait,
    pub polarity: Polarity,
}

impl TraitTarget {
    pub fn new(trait_: Trait, polarity: Polarity) -> Self {
        Self { trait_, polarity }
    }

    /// The same trait at its other pole.
    pub fn opposite(self) -> Self {
        Self { polarity: self.polarity.opposite(), ..self }
    }
}

/// An inline persona, as it arrives on every transport. Any part may be missing; [`Persona::profile`] reads it and
/// says whether something usable remains.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Persona {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub traits: Vec<TraitTarget>,
    /// Free text, a character card, or the published form `Big Five focus: X = high|low`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<String>,
}
