#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;
use crate::digest::Digest;
use crate::numerics::Numerics;
use crate::prism::{
    Calibration, Dimension, DimensionVerdict, DimensionVerdicts, EvidenceKind, LabelOrder, Layout, Posterior,
    Provenance, TextWarnings, TokenCounts,
};
use crate::service::ErrorCode;
use crate::service::check::PolicyFields;

/// A verdict of these evidences, whatever S they would have.
fn verdict(s_prism: f64, evidences: [f64; 3]) -> Verdict {
    let dimension = |aligned: f64| {
        let posterior = Posterior { aligned, indeterminate: 1.0 - aligned, contradictory: 0.0 };
        DimensionVerdict::new(posterior, None, Vec::new())
    };
    let digest = Digest::of_bytes(b"");
    Verdict {
        id: "the caller's words".into(),
        s_prism,
        dimensions: DimensionVerdicts {
            task_framing: dimension(evidences[0]),
            interpersonal_stance: dimension(evidences[1]),
            linguistic_style: dimension(evidences[2]),
        },
        weakest_dimension: Dimension::TaskFraming,
        judge: Provenance {
            model: "m".into(),
            model_digest: digest,
            prompt_digest: digest,
            label_space_digest: digest,
            evidence: EvidenceKind::Likelihood,
            layout: Layout::Shared,
            label_order: LabelOrder::Content,
            calibration: Calibration::None,
            numerics: Numerics::F32,
        },
        tokens: TokenCounts { prompt: 1, computed: 1 },
        cached: false,
        warnings: TextWarnings::default(),
    }
}

fn policy(block: Thresholds, warn: Thresholds) -> Policy {
    PolicyFields { block, warn, ..PolicyFields::default() }.try_into().unwrap()
}

const NONE: Thresholds =
    Thresholds { s_prism: None, task_framing: None, interpersonal_stance: None, linguistic_style: None };

#[test]
fn a_value_below_its_threshold_blocks_or_warns_and_one_at_it_passes() {
    let both = policy(Thresholds { s_prism: Some(0.25), ..NONE }, Thresholds { s_prism: Some(0.5), ..NONE });
    for (s_prism, decision) in [
        (0.0, Decision::Block),
        (0.249_999_999, Decision::Block),
        (0.25, Decision::Warn),
        (0.499_999_999, Decision::Warn),
        (0.5, Decision::Allow),
        (1.0, Decision::Allow),
    ] {
        // What has no threshold is not asked about.
        let ruling = both.decide(&verdict(s_prism, [0.0; 3]));
        assert_eq!(ruling.decision, decision, "{s_prism}");
        assert_eq!(ruling.failed, (decision != Decision::Allow).then_some(Measure::SPrism), "{s_prism}");
    }
}

#[test]
fn a_block_goes_before_a_warning_that_misses_by_more() {
    let both =
        policy(Thresholds { linguistic_style: Some(0.3), ..NONE }, Thresholds { task_framing: Some(0.9), ..NONE });
    let ruling = both.decide(&verdict(0.5, [0.1, 0.5, 0.2]));
    assert_eq!(
        (ruling.decision, ruling.failed),
        (Decision::Block, Some(Measure::Evidence(Dimension::LinguisticStyle)))
    );
    let ruling = both.decide(&verdict(0.5, [0.1, 0.5, 0.3]));
    assert_eq!((ruling.decision, ruling.failed), (Decision::Warn, Some(Measure::Evidence(Dimension::TaskFraming))));
}

#[test]
fn what_misses_by_most_is_named_and_of_equals_the_first() {
    let all = Thresholds {
        s_prism: Some(0.5),
        task_framing: Some(0.5),
        interpersonal_stance: Some(0.5),
        linguistic_style: Some(0.75),
    };
    let failed = |s, evidences| policy(all, NONE).decide(&verdict(s, evidences)).failed.map(Measure::name);
    assert_eq!(failed(0.4, [0.3, 0.2, 0.7]), Some("interpersonal_stance"));
    assert_eq!(failed(0.4, [0.3, 0.25, 0.25]), Some("linguistic_style"));
    assert_eq!(failed(0.25, [0.25, 0.25, 0.5]), Some("s_prism"));
    assert_eq!(failed(0.5, [0.25, 0.25, 0.5]), Some("task_framing"));
    assert_eq!(failed(0.5, [0.5, 0.5, 0.75]), None);
}

#[test]
fn a_reason_has_the_numbers_and_nothing_of_the_texts() {
    let two = policy(
        Thresholds { s_prism: Some(0.35), linguistic_style: Some(0.2), ..NONE },
        Thresholds { s_prism: Some(0.45), ..NONE },
    );
    let reason = |s, style| two.decide(&verdict(s, [0.5, 0.5, style])).reason;
    assert_eq!(reason(0.3, 0.9), "s_prism is 0.3000, below the block threshold 0.35");
    assert_eq!(
        reason(0.3, 0.1),
        "linguistic_style is 0.1000, below the block threshold 0.2; 1 more fall short by less"
    );
    assert_eq!(reason(0.4, 0.9), "s_prism is 0.4000, below the warn threshold 0.45");
    assert_eq!(
        reason(0.612_34, 0.9),
        "nothing falls short: s_prism 0.6123 (at least 0.45), linguistic_style 0.9000 (at least 0.2)"
    );
    // Rounded it would stand on the other side.
    assert_eq!(reason(0.349_999_99, 0.9), "s_prism is 0.34999999, below the block threshold 0.35");
    for said in [reason(0.3, 0.1), reason(0.9, 0.9), two.abstain(0).map_or_else(String::new, |c| c.ruling.reason)] {
        assert!(!said.contains("caller"), "{said}");
    }
}

#[test]
fn a_short_response_is_not_judged() {
    let fields = PolicyFields { block: Thresholds { s_prism: Some(0.5), ..NONE }, ..PolicyFields::default() };
    let any = Policy::try_from(fields).unwrap();
    assert!(any.abstain(0).is_none());
    let long = Policy::try_from(PolicyFields { min_tokens: 3, ..fields }).unwrap();
    assert!(long.abstain(3).is_none());
    let Checked { ruling, ground } = long.abstain(2).unwrap();
    assert_eq!((ruling.decision, ruling.failed), (Decision::Abstain, None));
    assert_eq!(ruling.reason, "not judged: the response has 2 tokens and this policy judges from 3 on");
    assert!(matches!(ground, Ground::Length));
}

#[test]
fn a_failure_of_the_judge_is_an_answer_and_one_of_the_caller_is_not() {
    let fields = PolicyFields { block: Thresholds { s_prism: Some(0.5), ..NONE }, ..PolicyFields::default() };
    for (on_error, decision, says) in
        [(OnError::Allow, Decision::Allow, "allows"), (OnError::Block, Decision::Block, "blocks")]
    {
        let policy = Policy::try_from(PolicyFields { on_error, ..fields }).unwrap();
        for code in [
            ErrorCode::DeadlineExceeded,
            ErrorCode::Overloaded,
            ErrorCode::OverQuota,
            ErrorCode::Unavailable,
            ErrorCode::Internal,
            ErrorCode::NonFinite,
        ] {
            let checked = policy.conclude(Err(JudgeError::new(code, "the caller's words"))).unwrap();
            assert_eq!((checked.ruling.decision, checked.ruling.failed), (decision, None), "{code:?}");
            let reason = format!("not judged ({}): this policy {says} what it cannot judge", code.name());
            assert_eq!(checked.ruling.reason, reason);
            assert!(matches!(checked.ground, Ground::Error(error) if error.code == code));
        }
        for code in [ErrorCode::InvalidArgument, ErrorCode::NotFound, ErrorCode::Cancelled] {
            assert_eq!(policy.conclude(Err(JudgeError::new(code, "m"))).unwrap_err().code, code);
        }
    }
}
