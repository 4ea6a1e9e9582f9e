//! Keys differ exactly when questions do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashMap;

use super::*;
use crate::numerics::Numerics;
use crate::persona::{Polarity, Trait};

/// A question that owns its parts, and a candidate.
#[derive(Clone, Debug, PartialEq)]
struct Asked {
    judge: Provenance,
    options: Options,
    tenant: String,
    persona: Persona,
    context: Vec<Turn>,
    by_id: bool,
    candidate: Candidate,
}

impl Asked {
    fn key(&self) -> Digest {
        let Self { judge, options, tenant, persona, context, by_id, candidate } = self;
        let question = Question { judge, options, tenant, persona, context, by_id: *by_id };
        QuestionKey::new(&question).candidate(candidate)
    }

    /// The text of every field that text could be moved between.
    fn texts(&mut self) -> Vec<&mut String> {
        let Self { tenant, persona, context, candidate, .. } = self;
        let mut texts = vec![tenant, &mut persona.description, &mut candidate.response];
        texts.extend(&mut persona.name);
        texts.extend(&mut persona.facts);
        texts.extend(context.iter_mut().flat_map(|turn| [&mut turn.speaker, &mut turn.text]));
        if self.by_id {
            texts.push(&mut candidate.id);
        }
        texts
    }
}

fn asked() -> Asked {
    let digest = |text: &str| Digest::of_bytes(text.as_bytes());
    Asked {
        judge: Provenance {
            model: "m".to_owned(),
            model_digest: digest("model"),
            prompt_digest: digest("prompt"),
            label_space_digest: digest("labels"),
            evidence: EvidenceKind::LabelSlot,
            layout: Layout::Shared,
            label_order: LabelOrder::Content,
            calibration: Calibration::None,
            numerics: Numerics::F32,
        },
        options: Options {
            evidence: EvidenceKind::LabelSlot,
            layout: Layout::Shared,
            label_order: LabelOrder::Content,
            calibration: Calibration::None,
            persona_block: false,
            scale: LikelihoodScale { t: 0.4, b: 0.2 },
        },
        tenant: String::new(),
        persona: Persona {
            name: Some("Ann".to_owned()),
            traits: vec![TraitTarget::new(Trait::Openness, Polarity::High)],
            description: "A pirate.".to_owned(),
            facts: vec!["She sails.".to_owned(), "She sings.".to_owned()],
        },
        context: vec![Turn { speaker: "User".to_owned(), text: "Hello?".to_owned() }],
        candidate: Candidate { id: "c".to_owned(), response: "Arr.".to_owned() },
        by_id: false,
    }
}

#[test]
fn one_changed_field_is_another_key() {
    let base = asked();
    let other = Digest::of_bytes(b"other");
    let changes: Vec<fn(&mut Asked, Digest)> = vec![
        |a, other| a.judge.model_digest = other,
        |a, other| a.judge.prompt_digest = other,
        |a, other| a.judge.label_space_digest = other,
        |a, _| a.options.evidence = EvidenceKind::Likelihood,
        |a, _| a.options.layout = Layout::Released,
        |a, _| a.options.label_order = LabelOrder::Released,
        |a, _| a.options.label_order = LabelOrder::Cyclic,
        |a, _| a.options.label_order = LabelOrder::All,
        |a, _| a.options.calibration = Calibration::Contextual,
        |a, _| a.options.persona_block = true,
        |a, _| a.options.scale.t = f64::from_bits(a.options.scale.t.to_bits() + 1),
        |a, _| a.options.scale.b = f64::from_bits(a.options.scale.b.to_bits() + 1),
        |a, _| a.options.scale.b = -0.2,
        |a, _| std::mem::swap(&mut a.options.scale.t, &mut a.options.scale.b),
        |a, _| a.judge.numerics = Numerics::Int8,
        |a, _| a.tenant = "t".to_owned(),
        |a, _| a.persona.name = None,
        |a, _| a.persona.name = Some(String::new()),
        |a, _| a.persona.traits.clear(),
        |a, _| a.persona.traits[0].trait_ = Trait::Neuroticism,
        |a, _| a.persona.traits[0].polarity = Polarity::Low,
        |a, _| a.persona.traits.push(TraitTarget::new(Trait::Openness, Polarity::High)),
        |a, _| a.persona.description.push(' '),
        |a, _| a.persona.facts.reverse(),
        |a, _| a.persona.facts.push(String::new()),
        |a, _| drop(a.persona.facts.pop()),
        |a, _| a.context[0].speaker = "user".to_owned(),
        |a, _| a.context[0].text.clear(),
        |a, _| a.context.push(a.context[0].clone()),
        |a, _| a.context.clear(),
        |a, _| a.candidate.response.push('!'),
        |a, _| a.candidate.response.clear(),
        |a, _| a.by_id = true,
    ];
    let mut keys = HashMap::from([(base.key(), usize::MAX)]);
    for (index, change) in changes.into_iter().enumerate() {
        let mut changed = base.clone();
        change(&mut changed, other);
        assert_ne!(changed, base, "change {index}");
        assert_eq!(keys.insert(changed.key(), index), None, "change {index}");
    }
}

#[test]
fn the_id_counts_only_where_the_judgement_depends_on_it_and_the_name_of_the_model_never() {
    let mut renamed = asked();
    renamed.candidate.id = "d".to_owned();
    renamed.judge.model = "n".to_owned();
    assert_eq!(renamed.key(), asked().key());
    let by_id = |asked: Asked| Asked { by_id: true, ..asked }.key();
    assert_ne!(by_id(renamed), by_id(asked()));
}

#[test]
fn a_question_after_more_turns_is_the_question_of_all_of_them() {
    let mut asked = asked();
    asked
        .context
        .extend(["How are you?", "Fine."].map(|text| Turn { speaker: "User".to_owned(), text: text.to_owned() }));
    let Asked { judge, options, tenant, persona, context, by_id, candidate } = &asked;
    for first in 0..=context.len() {
        let before = Question { judge, options, tenant, persona, context: &context[..first], by_id: *by_id };
        assert_eq!(QuestionKey::new(&before).after(&context[first..]).candidate(candidate), asked.key());
    }
}

/// Pairs that lie close together: the second is the first after text moved from the end of one field to the start of
/// another, a field was split, merged, dropped or swapped, or nothing happened.
#[test]
fn a_million_pairs_of_close_requests_have_equal_keys_only_if_they_are_equal() {
    let mut random = Random(20_261_130);
    let mut equal = 0;
    for pair in 0..1_000_000 {
        let first = generated(&mut random);
        let mut second = first.clone();
        disturb(&mut second, &mut random);
        let same = first == second || (!first.by_id && without_id(&first) == without_id(&second));
        assert_eq!(first.key() == second.key(), same, "pair {pair}: {first:?} {second:?}");
        equal += usize::from(same);
    }
    // Both sides of the claim were tried.
    assert!((50_000..950_000).contains(&equal), "{equal}");
}

fn without_id(asked: &Asked) -> Asked {
    Asked { candidate: Candidate { id: String::new(), ..asked.candidate.clone() }, ..asked.clone() }
}

/// Short texts of few letters, some of which look like tags and lengths.
fn text(random: &mut Random) -> String {
    const PIECES: [&str; 10] = ["", "a", "b", "ab", "text", "fact", "response", "\0\0\0", "\u{1}\0\0\0\0\0\0\0", "c"];
    (0..random.below(3)).map(|_| PIECES[random.below(PIECES.len())]).collect()
}

fn generated(random: &mut Random) -> Asked {
    let mut asked = asked();
    asked.tenant = text(random);
    asked.persona.name = (random.below(2) == 0).then(|| text(random));
    asked.persona.traits.truncate(random.below(2));
    asked.persona.description = text(random);
    asked.persona.facts = (0..random.below(3)).map(|_| text(random)).collect();
    asked.context = (0..random.below(3)).map(|_| Turn { speaker: text(random), text: text(random) }).collect();
    asked.candidate = Candidate { id: text(random), response: text(random) };
    asked.by_id = random.below(2) == 0;
    asked
}

fn disturb(asked: &mut Asked, random: &mut Random) {
    match random.below(8) {
        // A boundary moves: "ab", "c" becomes "a", "bc".
        0..=2 => {
            let mut texts = asked.texts();
            let (from, to) = (random.below(texts.len()), random.below(texts.len()));
            if let Some(moved) = texts[from].pop() {
                texts[to].insert(0, moved);
            }
        }
        3 => {
            let mut texts = asked.texts();
            let (from, to) = (random.below(texts.len()), random.below(texts.len()));
            let taken = std::mem::take(texts[from]);
            let taken = std::mem::replace(texts[to], taken);
            *texts[from] = taken;
        }
        // Two facts become one, or one becomes two.
        4 => match asked.persona.facts.as_mut_slice() {
            [first, second] => {
                let second = std::mem::take(second);
                first.push_str(&second);
                asked.persona.facts.truncate(1);
            }
            _ => asked.persona.facts.push(String::new()),
        },
        // A turn becomes two facts, or a name a fact.
        5 => match asked.context.pop() {
            Some(turn) => asked.persona.facts.extend([turn.speaker, turn.text]),
            None => asked.persona.facts.extend(asked.persona.name.take()),
        },
        6 => asked.candidate.id.push('x'),
        _ => {}
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit as u64) as usize
    }
}
