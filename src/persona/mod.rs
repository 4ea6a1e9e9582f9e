//! Who the response should sound like: persona types, Big Five traits, character cards and their cues.
//! Knows no other room.

mod types;

pub use types::{Persona, Polarity, Trait, TraitTarget};
