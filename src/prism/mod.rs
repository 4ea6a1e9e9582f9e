//! The method: dimensions, label spaces, inverse prompts, label orders, posterior, evidence, S_PRISM.
//! Knows `persona` alone; it produces messages and consumes log-scores, and never sees a token.

mod dimension;
mod options;
mod prompt;
mod request;
mod verdict;

pub use dimension::{Dimension, Label};
pub use options::{Calibration, EvidenceKind, LabelOrder, Layout, LikelihoodScale, Options};
pub use prompt::{InversePrompt, Message, Read, Role};
pub use request::{Candidate, Group, Turn};
pub use verdict::{DimensionVerdict, DimensionVerdicts, Posterior, Provenance, TokenCounts, Verdict};
