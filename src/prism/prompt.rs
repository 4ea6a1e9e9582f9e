//! Inverse prompts as chat messages, before any tokenizer.

use super::{Dimension, Label};

/// Role of a chat message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    System,
    User,
    Assistant,
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// One chat message. Its text is untrusted and never becomes control tokens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    pub role: Role,
    pub text: String,
}

/// What is read from the model for one prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Read {
    /// Log-scores of the letters A, B, C at the answer slot; `order[i]` is the label displayed at letter i.
    LabelSlot { order: [Label; 3] },
    /// Log-likelihood of the last message (the assistant's) given everything before it, where the system turn
    /// describes `label` (aligned or contradictory).
    Response { label: Label },
}

/// One prompt of one dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InversePrompt {
    pub dimension: Dimension,
    pub messages: Vec<Message>,
    pub read: Read,
}
