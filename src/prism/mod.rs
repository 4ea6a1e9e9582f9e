//! The method: dimensions, label spaces, inverse prompts, label orders, posterior, evidence, S_PRISM.
//! Knows `persona` alone; it produces messages and consumes log-scores, and never sees a token.

mod conclude;
mod dimension;
mod jinja;
mod label_space;
mod options;
mod order;
mod plan;
mod posterior;
mod prompt;
mod reader;
mod request;
mod roleplay;
mod template;
mod verdict;
mod wording;

pub use conclude::{ConcludeError, Conclusion, Reading, conclude};
pub use dimension::{Dimension, Label};
pub use label_space::{LabelSpace, LabelSpaceError, LabelSpaces};
pub use options::{Calibration, EvidenceKind, LabelOrder, Layout, LikelihoodScale, Options};
pub use plan::{CandidatePlan, Plan, PlanError, check_candidate, check_group, plan};
pub use prompt::{InversePrompt, Message, Read, Role};
pub use request::{Candidate, Group, Turn};
pub use template::{PromptTemplate, TemplateError};
pub use verdict::{
    DimensionVerdict, DimensionVerdicts, Posterior, Provenance, TextCounts, TextWarnings, TokenCounts, Verdict,
};
