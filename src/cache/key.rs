//! Keys: 256-bit digests over tagged, length-prefixed fields, of everything that a judgement depends on.

use crate::digest::{Builder, Digest};
use crate::persona::{Persona, TraitTarget};
use crate::prism::{
    Calibration, Candidate, EvidenceKind, LabelOrder, Layout, LikelihoodScale, Options, Provenance, Turn,
};

/// Changes whenever the same fields come to mean something else.
const SCHEMA: &str = "prism-judge verdict 1";

/// What is asked about a candidate, whichever it is.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// Numerics and digests of the model, the prompt and the labels. The model's name does not matter.
    pub judge: &'a Provenance,
    pub options: &'a Options,
    /// Whose entries these are.
    pub tenant: &'a str,
    pub persona: &'a Persona,
    pub context: &'a [Turn],
    /// Whether the judgement depends on the candidate's id.
    pub by_id: bool,
}

/// A question, hashed once; each candidate adds its own fields.
#[derive(Clone)]
pub struct QuestionKey {
    fields: Builder,
    by_id: bool,
}

impl QuestionKey {
    pub fn new(question: &Question<'_>) -> Self {
        let Question { judge, options, tenant, persona, context, by_id } = *question;
        // Named one by one, so that a new field cannot be forgotten here.
        let Provenance {
            model: _,
            model_digest,
            prompt_digest,
            label_space_digest,
            evidence: _,
            layout: _,
            label_order: _,
            calibration: _,
            numerics,
        } = judge;
        let Persona { name, traits, description, facts } = persona;
        let mut fields = Digest::builder(SCHEMA)
            .field("model", model_digest.as_bytes())
            .field("prompt", prompt_digest.as_bytes())
            .field("labels", label_space_digest.as_bytes())
            .field("numerics", numerics.name().as_bytes())
            .field("options", &of_options(options))
            .field("tenant", tenant.as_bytes());
        // A name that is empty is not a name that is missing.
        if let Some(name) = name {
            fields = fields.field("name", name.as_bytes());
        }
        for TraitTarget { trait_, polarity } in traits {
            fields = fields.field("trait", trait_.name().as_bytes()).field("polarity", polarity.name().as_bytes());
        }
        fields = fields.field("description", description.as_bytes());
        for fact in facts {
            fields = fields.field("fact", fact.as_bytes());
        }
        Self { fields, by_id }.after(context)
    }

    /// The same question after more turns of context.
    pub fn after(mut self, turns: &[Turn]) -> Self {
        for Turn { speaker, text } in turns {
            self.fields = self.fields.field("speaker", speaker.as_bytes()).field("text", text.as_bytes());
        }
        self
    }

    /// The key of one candidate's judgement.
    pub fn candidate(&self, candidate: &Candidate) -> Digest {
        let Candidate { id, response } = candidate;
        let fields = self.fields.clone().field("response", response.as_bytes());
        if self.by_id { fields.field("id", id.as_bytes()).finish() } else { fields.finish() }
    }
}

/// The options in a fixed number of bytes.
fn of_options(options: &Options) -> [u8; 21] {
    let Options { evidence, layout, label_order, calibration, persona_block, scale: LikelihoodScale { t, b } } =
        options;
    let mut bytes = [0; 21];
    bytes[0] = match evidence {
        EvidenceKind::LabelSlot => 1,
        EvidenceKind::Likelihood => 2,
    };
    bytes[1] = match layout {
        Layout::Shared => 1,
        Layout::Released => 2,
    };
    bytes[2] = match label_order {
        LabelOrder::Released => 1,
        LabelOrder::Content => 2,
        LabelOrder::Cyclic => 3,
        LabelOrder::All => 4,
    };
    bytes[3] = match calibration {
        Calibration::None => 1,
        Calibration::Contextual => 2,
    };
    bytes[4] = u8::from(*persona_block);
    bytes[5..13].copy_from_slice(&t.to_bits().to_le_bytes());
    bytes[13..].copy_from_slice(&b.to_bits().to_le_bytes());
    bytes
}

#[cfg(test)]
#[path = "key_tests.rs"]
mod tests;
