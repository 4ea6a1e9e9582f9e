//! A prompt template that anybody could have written, rendered with texts that anybody could have sent.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use prism_judge::persona::Persona;
use prism_judge::prism::{
    Calibration, Candidate, EvidenceKind, Group, LabelOrder, LabelSpaces, Layout, LikelihoodScale, Options,
    PromptTemplate, Turn, plan,
};

static SPACES: LazyLock<LabelSpaces> = LazyLock::new(|| LabelSpaces::load(None).unwrap());

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    released: bool,
    response: &'a str,
    context: &'a str,
    speaker: &'a str,
    description: &'a str,
    template: &'a str,
}

fuzz_target!(|input: Input<'_>| {
    let Ok(template) = PromptTemplate::parse("the template", input.template) else { return };
    let group = Group {
        persona: Persona { description: input.description.to_owned(), ..Persona::default() },
        context: vec![Turn { speaker: input.speaker.to_owned(), text: input.context.to_owned() }],
        candidates: vec![Candidate { id: "id".to_owned(), response: input.response.to_owned() }],
    };
    let options = Options {
        evidence: EvidenceKind::LabelSlot,
        layout: if input.released { Layout::Released } else { Layout::Shared },
        label_order: LabelOrder::Cyclic,
        calibration: Calibration::None,
        persona_block: true,
        scale: LikelihoodScale::default(),
    };
    let Ok(plan) = plan(&group, &SPACES, &template, &options) else { return };
    let (first, second) = (plan.candidate(0), plan.candidate(0));
    match (first, second) {
        // The same request is the same prompt.
        (Ok(first), Ok(second)) => assert_eq!(first.prompts, second.prompts),
        (Err(first), Err(second)) => assert_eq!(first.to_string(), second.to_string()),
        (first, second) => panic!("{first:?} and then {second:?}"),
    }
});
