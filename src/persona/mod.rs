//! Who the response should sound like: persona types, Big Five traits, character cards and their cues, and personas that
//! are known by an id. Knows no other room.

mod card;
mod cues;
mod error;
mod focus;
mod profile;
mod registry;
mod types;

pub use card::{Card, Section};
pub use cues::{Cue, CueKind};
pub use error::{PersonaError, Place};
pub use profile::Profile;
pub use registry::{Form, Named, Personas, Problem, Registry, RegistryError, SkipReason, Skipped, UnknownPersona};
pub use types::{Persona, Polarity, Trait, TraitTarget};
