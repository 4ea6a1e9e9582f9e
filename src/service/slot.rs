//! The answer slot: which spelling of the letters a backbone expects, found once when it loads.

use super::{AnswerSlot, Cancel, JudgeError, OpenError, tokens};
use crate::engine::{Engine, Prompt, Read as TokenRead};
use crate::model::{ANSWER_SPELLINGS, TextModel, TokenId, TokenizedPrompt};
use crate::persona::{Persona, Polarity, Trait, TraitTarget};
use crate::prism::{
    Calibration, Candidate, EvidenceKind, Group, LabelOrder, LabelSpaces, Layout, LikelihoodScale, Options,
    PromptTemplate, Turn, plan,
};

/// The chosen spelling.
#[derive(Clone, Debug)]
pub struct Slot {
    pub letters: [&'static str; 3],
    pub ids: [TokenId; 3],
}

/// Checks that the letters are single, distinct tokens after every layout and label order, and picks the spelling that
/// `choice` names or that holds most probability.
pub fn choose(
    engine: &Engine,
    text: &TextModel,
    wording: (&LabelSpaces, &PromptTemplate),
    choice: AnswerSlot,
) -> Result<Slot, OpenError> {
    let mut usable: [Option<[TokenId; 3]>; ANSWER_SPELLINGS.len()] = Default::default();
    let mut probes = Vec::new();
    for (index, layout) in [Layout::Shared, Layout::Released].into_iter().enumerate() {
        let rendered = render(engine, text, wording, layout)?;
        for (at, prompt) in rendered.iter().enumerate() {
            let found = text.answer_spellings(prompt).map_err(|error| OpenError::AnswerSlot(error.to_string()))?;
            for (usable, found) in usable.iter_mut().zip(found) {
                *usable = if index + at == 0 || *usable == found { found } else { None };
            }
        }
        // One order of each dimension is enough to weigh the spellings; the other orders only had to tokenise.
        probes.extend(rendered.into_iter().step_by(ORDERS).filter(|_| layout == Layout::Shared));
    }
    let candidates: Vec<(usize, [TokenId; 3])> = usable
        .into_iter()
        .enumerate()
        .filter(|(index, _)| match choice {
            AnswerSlot::Auto => true,
            AnswerSlot::Bare => *index == 0,
            AnswerSlot::Space => *index == 1,
        })
        .filter_map(|(index, ids)| ids.map(|ids| (index, ids)))
        .collect();
    let chosen = match candidates.as_slice() {
        [] => {
            return Err(OpenError::AnswerSlot(
                "the letters A, B and C are not one distinct token each after this model's chat template, so that it \
                 cannot judge by label slot"
                    .to_owned(),
            ));
        }
        [only] => *only,
        several => heaviest(engine, probes, several)?,
    };
    Ok(Slot { letters: ANSWER_SPELLINGS[chosen.0], ids: chosen.1 })
}

/// Displayed orders of three labels.
const ORDERS: usize = 6;

/// Every dimension in every label order, under one layout.
fn render(
    engine: &Engine,
    text: &TextModel,
    (spaces, template): (&LabelSpaces, &PromptTemplate),
    layout: Layout,
) -> Result<Vec<TokenizedPrompt>, OpenError> {
    let group = Group {
        persona: Persona {
            traits: vec![TraitTarget { trait_: Trait::Extraversion, polarity: Polarity::High }],
            ..Persona::default()
        },
        context: vec![Turn { speaker: "User".to_owned(), text: "How was the party?".to_owned() }],
        candidates: vec![Candidate {
            id: "probe".to_owned(),
            response: "Loud, crowded, brilliant! You should have come along.".to_owned(),
        }],
    };
    let options = Options {
        evidence: EvidenceKind::LabelSlot,
        layout,
        label_order: LabelOrder::All,
        calibration: Calibration::None,
        persona_block: false,
        scale: LikelihoodScale::default(),
    };
    let plan = plan(&group, spaces, template, &options)?;
    let limit = engine.longest_prompt();
    let mut text = text.session();
    plan.candidate(0)?.prompts.iter().map(|prompt| Ok(tokens::tokenize(&mut text, prompt, limit)?)).collect()
}

/// The spelling that holds most probability at the answer slot, summed over the probes.
fn heaviest(
    engine: &Engine,
    probes: Vec<TokenizedPrompt>,
    spellings: &[(usize, [TokenId; 3])],
) -> Result<(usize, [TokenId; 3]), OpenError> {
    let targets: Vec<TokenId> = spellings.iter().flat_map(|(_, ids)| *ids).collect();
    let prompts =
        probes.into_iter().map(|probe| Prompt { ids: probe.ids, read: TokenRead::Next(targets.clone()) }).collect();
    let answers = engine.run(prompts, &Cancel::default()).map_err(JudgeError::from)?;
    let mut best = (f64::NEG_INFINITY, spellings[0]);
    for (index, spelling) in spellings.iter().enumerate() {
        let mut mass = 0.0;
        for answer in &answers {
            let answer = answer.as_ref().map_err(|error| JudgeError::from(error.clone()))?;
            mass += answer.log_probs[index * 3..][..3].iter().map(|log_prob| log_prob.exp()).sum::<f64>();
        }
        if mass > best.0 {
            best = (mass, *spelling);
        }
    }
    Ok(best.1)
}
