//! Two questions have the same key exactly when they are the same question.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use prism_judge::cache::{Question, QuestionKey};
use prism_judge::digest::Digest;
use prism_judge::numerics::Numerics;
use prism_judge::persona::Persona;
use prism_judge::prism::{
    Calibration, Candidate, EvidenceKind, LabelOrder, Layout, LikelihoodScale, Options, Provenance, Turn,
};

static JUDGE: LazyLock<Provenance> = LazyLock::new(|| {
    let digest = Digest::of_bytes(b"");
    Provenance {
        model: String::new(),
        model_digest: digest,
        prompt_digest: digest,
        label_space_digest: digest,
        evidence: EvidenceKind::LabelSlot,
        layout: Layout::Shared,
        label_order: LabelOrder::Content,
        calibration: Calibration::None,
        numerics: Numerics::F32,
    }
});

const OPTIONS: Options = Options {
    evidence: EvidenceKind::LabelSlot,
    layout: Layout::Shared,
    label_order: LabelOrder::Content,
    calibration: Calibration::None,
    persona_block: false,
    scale: LikelihoodScale { t: 0.4, b: 0.2 },
};

#[derive(Arbitrary, Clone, Debug, PartialEq)]
struct Asked {
    tenant: String,
    name: Option<String>,
    description: String,
    facts: Vec<String>,
    context: Vec<(String, String)>,
    response: String,
    id: Option<String>,
}

impl Asked {
    fn key(&self) -> Digest {
        let persona = Persona {
            name: self.name.clone(),
            description: self.description.clone(),
            facts: self.facts.clone(),
            ..Persona::default()
        };
        let turn = |(speaker, text): &(String, String)| Turn { speaker: speaker.clone(), text: text.clone() };
        let context: Vec<Turn> = self.context.iter().map(turn).collect();
        let question = Question {
            judge: &JUDGE,
            options: &OPTIONS,
            tenant: &self.tenant,
            persona: &persona,
            context: &context,
            by_id: self.id.is_some(),
        };
        let id = self.id.clone().unwrap_or_default();
        QuestionKey::new(&question).candidate(&Candidate { id, response: self.response.clone() })
    }

    fn texts(&mut self) -> Vec<&mut String> {
        let Self { tenant, name, description, facts, context, response, id } = self;
        let mut texts = vec![tenant, description, response];
        texts.extend(name);
        texts.extend(facts);
        texts.extend(context.iter_mut().flat_map(|(speaker, text)| [speaker, text]));
        texts.extend(id);
        texts
    }

    /// Moves text from the end of one field to the start of another.
    fn moved(mut self, (from, to, count): (usize, usize, usize)) -> Self {
        let mut texts = self.texts();
        let (from, to) = (from % texts.len(), to % texts.len());
        let length = texts[from].chars().count();
        let at = texts[from].char_indices().nth(length - count.min(length)).map_or(texts[from].len(), |(at, _)| at);
        let moved = texts[from].split_off(at);
        texts[to].insert_str(0, &moved);
        self
    }
}

fuzz_target!(|input: (Asked, Option<Asked>, (usize, usize, usize))| {
    let (asked, other, shift) = input;
    let other = other.unwrap_or_else(|| asked.clone().moved(shift));
    assert_eq!(asked.key() == other.key(), asked == other, "{asked:?} and {other:?}");
});
