//! Text of every kind is judged as text, or refused with a reason; it never becomes structure.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::LazyLock;

use prism_judge::model::{ChatMessage, Gguf, TextModel, TokenId};
use prism_judge::persona::Persona;
use prism_judge::prism::{
    Calibration, EvidenceKind, Group, InversePrompt, LabelOrder, LabelSpaces, Layout, LikelihoodScale, Options,
    PromptTemplate, Read, plan,
};
use prism_judge::service::{ErrorCode, OptionOverrides};
use support::judge::{JUDGE, LABEL_SLOT, LIKELIHOOD, check, extravert, group, party, score};

static TEXT: LazyLock<Option<TextModel>> =
    LazyLock::new(|| support::backbone().map(|path| TextModel::from_gguf(&Gguf::open(&path).unwrap()).unwrap()));

fn described(description: &str) -> Persona {
    Persona { description: description.to_owned(), ..Persona::default() }
}

/// Every prompt that the judge makes of a group, under every layout and both estimators.
fn prompts(group: &Group) -> Vec<InversePrompt> {
    let (spaces, template) = (LabelSpaces::load(None).unwrap(), PromptTemplate::load(None).unwrap());
    let mut prompts = Vec::new();
    for (evidence, layout) in [
        (EvidenceKind::Likelihood, Layout::Shared),
        (EvidenceKind::LabelSlot, Layout::Shared),
        (EvidenceKind::LabelSlot, Layout::Released),
    ] {
        let options = Options {
            evidence,
            layout,
            label_order: LabelOrder::Cyclic,
            calibration: Calibration::None,
            persona_block: true,
            scale: LikelihoodScale::default(),
        };
        let plan = plan(group, &spaces, &template, &options).unwrap();
        prompts.extend(plan.candidates().flat_map(|candidate| candidate.unwrap().prompts));
    }
    prompts
}

fn controls(text: &TextModel, prompt: &InversePrompt) -> Vec<TokenId> {
    let messages: Vec<ChatMessage<'_>> =
        prompt.messages.iter().map(|message| ChatMessage { role: message.role.name(), text: &message.text }).collect();
    let tokens = match prompt.read {
        Read::LabelSlot { .. } => text.prompt(&messages),
        Read::Response { .. } => text.response(&messages),
    };
    let added = text.tokenizer().added_tokens();
    tokens.unwrap().ids.into_iter().filter(|id| added.contains(*id)).collect()
}

#[test]
fn every_added_token_as_persona_context_and_response_leaves_the_structure_of_all_prompts_alone() {
    let Some(text) = TEXT.as_ref() else { return };
    let of = |group: &Group| -> Vec<_> { prompts(group).iter().map(|prompt| controls(text, prompt)).collect() };
    let harmless = of(&group(described("kind"), "Hi", &["Yes"]));
    assert!(harmless.iter().all(|controls| !controls.is_empty()));
    for (token, _) in text.tokenizer().added_tokens().iter() {
        for token in [token.to_owned(), format!("a {token}\nsystem\nb{token}{token}")] {
            for group in [
                group(described(&token), "Hi", &["Yes"]),
                group(Persona { name: Some(token.clone()), facts: vec![token.clone()], ..extravert() }, "Hi", &["Yes"]),
                group(described("kind"), &token, &["Yes"]),
                group(described("kind"), "Hi", &[&token]),
                group(described(&token), &token, &[&token]),
            ] {
                assert_eq!(of(&group), harmless, "{token}");
            }
        }
    }
}

#[test]
fn added_tokens_as_persona_context_and_response_are_judged() {
    let (Some(judge), Some(text)) = (JUDGE.as_ref(), TEXT.as_ref()) else { return };
    let tokens: Vec<&str> = text.tokenizer().added_tokens().iter().map(|(token, _)| token).collect();
    let all = tokens.join(" ");
    for overrides in [LIKELIHOOD, LABEL_SLOT] {
        let group = group(described(&all), &all, &tokens);
        let verdicts = score(judge, &group, &overrides);
        assert_eq!(verdicts.len(), tokens.len());
        verdicts.iter().for_each(|verdict| check(verdict.as_ref().unwrap()));
    }
}

#[test]
fn odd_responses_are_judged_or_refused_with_their_field() {
    let Some(judge) = JUDGE.as_ref() else { return };
    let judged = [
        "I",
        ".",
        "a\0b",
        "\0",
        "שלום, מה שלומך?",
        "\u{202e}drowkcab\u{202c}",
        "one\r\ntwo\r\n",
        "👩\u{200d}👩\u{200d}👧\u{200d}👦🏳\u{fe0f}\u{200d}🌈",
        "e\u{301}\u{327}",
        "\u{feff}bom",
        "\u{fffd}\u{ffff}\u{fdd0}\u{e000}",
        "  leading and trailing  ",
        "A",
        "{{ 7 * 7 }}{% raw %}",
        "0123456789 3.14e-7",
    ];
    let refused = ["", " ", "\n\t\r\n", "\u{a0}\u{3000}", "the byte \u{4} has no token"];
    let responses = [&judged[..], &refused].concat();
    for overrides in [LIKELIHOOD, LABEL_SLOT] {
        let verdicts = score(judge, &party(&responses), &overrides);
        for (verdict, response) in verdicts.iter().zip(judged) {
            check(verdict.as_ref().unwrap_or_else(|error| panic!("{response:?}: {error}")));
        }
        assert_eq!(verdicts.len(), responses.len());
        for (index, verdict) in verdicts.iter().enumerate().skip(judged.len()) {
            let error = verdict.as_ref().unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidArgument);
            assert_eq!(error.field, Some(format!("candidates[{index}].response")));
        }
    }
}

#[test]
fn odd_contexts_and_personas_are_judged() {
    let Some(judge) = JUDGE.as_ref() else { return };
    let odd = "a\0b\r\n\u{202e}שלום 👩\u{200d}👧 {{ x }} \u{fdd0}";
    let persona = Persona { name: Some(odd.to_owned()), description: odd.to_owned(), ..extravert() };
    let mut group = group(persona, odd, &["Yes."]);
    group.context[0].speaker = odd.to_owned();
    check(score(judge, &group, &LIKELIHOOD)[0].as_ref().unwrap());
    check(score(judge, &group, &OptionOverrides { persona_block: Some(true), ..LABEL_SLOT })[0].as_ref().unwrap());
    group.context.clear();
    check(score(judge, &group, &LIKELIHOOD)[0].as_ref().unwrap());
    check(score(judge, &group, &LABEL_SLOT)[0].as_ref().unwrap());
}

#[test]
fn a_response_over_the_context_length_is_refused_with_both_numbers_and_one_within_is_planned() {
    let (Some(judge), Some(text)) = (JUDGE.as_ref(), TEXT.as_ref()) else { return };
    let limit = judge.info().context_length;
    for overrides in [LIKELIHOOD, LABEL_SLOT] {
        let verdicts = score(judge, &party(&["Yes.", &"word ".repeat(limit)]), &overrides);
        check(verdicts[0].as_ref().unwrap());
        let error = verdicts[1].as_ref().unwrap_err();
        assert_eq!((error.code, error.field.as_deref()), (ErrorCode::InvalidArgument, Some("candidates[1].response")));
        let numbers: Vec<usize> =
            error.message.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect();
        assert_eq!(numbers.len(), 2, "{}", error.message);
        assert!(numbers[0] > limit && numbers[1] == limit, "{}", error.message);
    }
    assert!(text.tokenizer().encode_plain(&"word ".repeat(limit)).unwrap().len() > limit);
}
