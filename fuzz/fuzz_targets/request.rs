//! Bytes from the wire: decoded, converted, planned. Whatever they say, the answer is a request or a refusal.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use prism_judge::prism::{
    Calibration, EvidenceKind, LabelOrder, LabelSpaces, Layout, LikelihoodScale, Options, PromptTemplate, plan,
};
use prism_judge::server::convert::{self, Violations, Who, Wire};
use prism_judge::server::{MESSAGE_LIMIT, pb};
use prost::Message as _;

static WORDING: LazyLock<(LabelSpaces, PromptTemplate)> =
    LazyLock::new(|| (LabelSpaces::load(None).unwrap(), PromptTemplate::load(None).unwrap()));

/// What a request may override.
const DEFAULTS: Options = Options {
    evidence: EvidenceKind::LabelSlot,
    layout: Layout::Shared,
    label_order: LabelOrder::Content,
    calibration: Calibration::None,
    persona_block: true,
    scale: LikelihoodScale { t: 0.4, b: 0.2 },
};

fuzz_target!(|bytes: &[u8]| {
    let Ok(request) = pb::ScoreGroupRequest::decode(bytes) else { return };
    let mut violations = Violations::default();
    convert::request_id(&request.request_id, &mut violations);
    let candidates = convert::candidates(request.candidates, MESSAGE_LIMIT, &mut violations);
    let wire = Wire {
        who: Who::Inline(request.persona),
        context: request.context,
        options: request.options,
        lane: request.lane,
        cache: request.cache,
    };
    let Ok(asked) = wire.asked(candidates, violations) else { return };
    let (spaces, template) = &*WORDING;
    let Ok(plan) = plan(&asked.group, spaces, template, &asked.overrides.over(&DEFAULTS)) else { return };
    for (candidate, planned) in asked.group.candidates.iter().zip(plan.candidates()) {
        let Ok(planned) = planned else { continue };
        assert_eq!(planned.id, candidate.id);
        assert!(planned.prompts.len() >= 3);
        // Every prompt carries the response whole.
        for prompt in &planned.prompts {
            assert!(prompt.messages.iter().any(|message| message.text.contains(candidate.response.trim())));
        }
    }
});
