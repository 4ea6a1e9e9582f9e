//! The method: dimensions, label spaces, inverse prompts, label orders, posterior, evidence, S_PRISM; and what is made of
//! verdicts: rewards, ranks, curves.
//! Knows `persona` alone; it produces messages and consumes log-scores, and never sees a token.

mod conclude;
mod dimension;
mod drift;
mod jinja;
mod label_space;
mod options;
mod order;
mod plan;
mod posterior;
mod prompt;
mod ranking;
mod reader;
mod request;
mod roleplay;
mod shaping;
mod template;
mod verdict;
mod wording;

pub use conclude::{ConcludeError, Conclusion, Reading, conclude};
pub use dimension::{Dimension, Label};
pub use drift::{DialogueDrift, Drift};
pub use label_space::{LabelSpace, LabelSpaceError, LabelSpaces};
pub use options::{Calibration, EvidenceKind, LabelOrder, Layout, LikelihoodScale, Options};
pub use plan::{CandidatePlan, Plan, PlanError, check_candidate, check_dialogue, check_group, plan};
pub use prompt::{InversePrompt, Message, Read, Role};
pub use ranking::{Place, rank};
pub use request::{Candidate, Group, Turn};
pub use shaping::{Aggregation, RewardSignal, Shaping, ShapingError, z_scores};
pub use template::{PromptTemplate, TemplateError};
pub use verdict::{
    DimensionVerdict, DimensionVerdicts, Posterior, Provenance, TextCounts, TextWarnings, TokenCounts, Verdict,
};
