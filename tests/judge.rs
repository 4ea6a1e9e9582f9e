//! What a verdict may and may not depend on, with the real backbone and both estimators.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::time::Instant;

use prism_judge::persona::{Persona, Polarity, Trait, TraitTarget};
use prism_judge::prism::{
    Calibration, Dimension, EvidenceKind, Group, Label, LabelOrder, Layout, TokenCounts, Verdict,
};
use prism_judge::service::{Call, Cancel, ErrorCode, OptionOverrides};
use support::judge::{JUDGE, LABEL_SLOT, LIKELIHOOD, bits, check, extravert, group, overrides, party, score};

const RESPONSES: [&str; 3] = ["Yes! Who else is in?", "No, I have a book.", "Yes! Who else is in? I'll drive!"];

fn verdicts(group: &Group, overrides: &OptionOverrides) -> Vec<Verdict> {
    let judge = JUDGE.as_ref().unwrap();
    score(judge, group, overrides).into_iter().map(Result::unwrap).inspect(check).collect()
}

#[test]
fn a_group_in_any_order_is_each_candidate_alone_to_the_last_bit() {
    if JUDGE.is_none() {
        return;
    }
    for overrides in [
        LIKELIHOOD,
        LABEL_SLOT,
        OptionOverrides { calibration: Some(Calibration::Contextual), ..LIKELIHOOD },
        OptionOverrides {
            layout: Some(Layout::Released),
            calibration: Some(Calibration::Contextual),
            persona_block: Some(true),
            ..LABEL_SLOT
        },
    ] {
        let whole = party(&RESPONSES);
        let together = verdicts(&whole, &overrides);
        for order in [[2, 1, 0], [1, 2, 0]] {
            let candidates = order.map(|index| whole.candidates[index].clone()).to_vec();
            let permuted = verdicts(&Group { candidates, ..whole.clone() }, &overrides);
            for (verdict, index) in permuted.iter().zip(order) {
                assert_eq!((&verdict.id, bits(verdict)), (&together[index].id, bits(&together[index])));
            }
        }
        for (candidate, verdict) in whole.candidates.iter().zip(&together) {
            let alone = &verdicts(&Group { candidates: vec![candidate.clone()], ..whole.clone() }, &overrides)[0];
            assert_eq!(bits(alone), bits(verdict), "{}", candidate.response);
            assert_eq!(alone.tokens.prompt, verdict.tokens.prompt);
        }
        let counted =
            |count: fn(&TokenCounts) -> u64| together.iter().map(|verdict| count(&verdict.tokens)).sum::<u64>();
        assert!(counted(|tokens| tokens.computed) < counted(|tokens| tokens.prompt));
        assert_ne!(bits(&together[0]), bits(&together[1]));
    }
}

#[test]
fn a_candidate_with_an_error_leaves_the_bits_of_its_neighbours_alone() {
    let Some(judge) = JUDGE.as_ref() else { return };
    let long = "word ".repeat(10_000);
    for overrides in [LIKELIHOOD, LABEL_SLOT] {
        let clean = verdicts(&party(&[RESPONSES[0], RESPONSES[1]]), &overrides);
        let mixed = score(judge, &party(&["", RESPONSES[0], &long, RESPONSES[1], " \n"]), &overrides);
        for (index, clean) in [1, 3].into_iter().zip(&clean) {
            assert_eq!(bits(mixed[index].as_ref().unwrap()), bits(clean));
        }
        for index in [0, 2, 4] {
            let error = mixed[index].as_ref().unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidArgument);
            assert_eq!(error.field.as_deref(), Some(format!("candidates[{index}].response").as_str()));
        }
    }
}

#[test]
fn work_that_is_cancelled_or_late_returns_its_error_and_the_next_call_works() {
    let Some(judge) = JUDGE.as_ref() else { return };
    let group = party(&RESPONSES[..1]);
    let before = verdicts(&group, &LIKELIHOOD);
    let code = |cancel: Cancel| {
        judge.score_blocking(&group, &LIKELIHOOD, &Call { cancel, ..Call::default() }).unwrap_err().code
    };
    let cancel = Cancel::default();
    cancel.cancel();
    assert_eq!(code(cancel), ErrorCode::Cancelled);
    assert_eq!(code(Cancel::with_deadline(Some(Instant::now()))), ErrorCode::DeadlineExceeded);
    assert_eq!(bits(&verdicts(&group, &LIKELIHOOD)[0]), bits(&before[0]));
}

#[test]
fn a_profile_of_several_traits_is_judged_and_each_trait_counts() {
    if JUDGE.is_none() {
        return;
    }
    let persona = |count: usize| Persona {
        traits: Trait::ALL[..count].iter().map(|trait_| TraitTarget::new(*trait_, Polarity::High)).collect(),
        ..Persona::default()
    };
    for overrides in [LIKELIHOOD, LABEL_SLOT] {
        let of = |count| bits(&verdicts(&group(persona(count), "Any plans?", &RESPONSES[..1]), &overrides)[0]);
        let (one, two, five) = (of(1), of(2), of(5));
        assert!(one != two && two != five && one != five);
    }
}

#[test]
fn the_orders_that_ignore_ids_give_the_same_bits_for_any_id() {
    if JUDGE.is_none() {
        return;
    }
    for order in [LabelOrder::Content, LabelOrder::Cyclic, LabelOrder::All] {
        let overrides = overrides(EvidenceKind::LabelSlot, Some(order));
        let mut renamed = party(&RESPONSES[..2]);
        let expected = verdicts(&renamed, &overrides);
        renamed.candidates[0].id = String::new();
        renamed.candidates[1].id = "<|im_end|>".to_owned();
        for (verdict, expected) in verdicts(&renamed, &overrides).iter().zip(&expected) {
            assert_eq!(bits(verdict), bits(expected));
            for dimension in Dimension::ALL {
                let shown = &verdict.dimensions.get(dimension).label_order;
                assert_eq!(shown, &expected.dimensions.get(dimension).label_order);
                let count = match order {
                    LabelOrder::Cyclic => 3,
                    LabelOrder::All => 6,
                    _ => 1,
                };
                assert_eq!(shown.len(), count);
            }
        }
    }
}

#[test]
fn the_content_order_follows_what_is_judged_and_nothing_else() {
    if JUDGE.is_none() {
        return;
    }
    let shown = |group: &Group| -> Vec<Vec<[Label; 3]>> {
        let verdicts = verdicts(group, &LABEL_SLOT);
        let orders =
            |verdict: &Verdict| Dimension::ALL.map(|dimension| verdict.dimensions.get(dimension).label_order[0]);
        verdicts.iter().map(|verdict| orders(verdict).to_vec()).collect()
    };
    let whole = shown(&party(&RESPONSES));
    let mut reversed = RESPONSES;
    reversed.reverse();
    let mut again = shown(&party(&reversed));
    again.reverse();
    assert_eq!(whole, again);
    // Nine draws of six orders are all the same once in 1.7 million.
    let mut seen: Vec<_> = whole.concat();
    seen.sort();
    seen.dedup();
    assert!(seen.len() > 1);
}

/// Subtracting mean log-scores of content-free responses is dividing by the geometric mean of their posteriors.
#[test]
fn contextual_calibration_divides_by_what_content_free_responses_get() {
    if JUDGE.is_none() {
        return;
    }
    let free = ["N/A", "[response]"];
    for overrides in [overrides(EvidenceKind::LabelSlot, Some(LabelOrder::Cyclic)), LIKELIHOOD] {
        let plain = verdicts(&party(&[RESPONSES[1], free[0], free[1]]), &overrides);
        let calibrated = OptionOverrides { calibration: Some(Calibration::Contextual), ..overrides };
        let calibrated = &verdicts(&party(&RESPONSES[1..2]), &calibrated)[0];
        assert_ne!(bits(calibrated), bits(&plain[0]));
        for dimension in Dimension::ALL {
            let ratios = |verdict: &Verdict| {
                let posterior = verdict.dimensions.get(dimension).posterior;
                let mut ratios = vec![(posterior.aligned / posterior.contradictory).ln()];
                // The likelihood's tie has a fixed score of its own.
                if overrides.evidence == Some(EvidenceKind::LabelSlot) {
                    ratios.push((posterior.aligned / posterior.indeterminate).ln());
                }
                ratios
            };
            let plain: Vec<_> = plain.iter().map(ratios).collect();
            for (index, ratio) in ratios(calibrated).into_iter().enumerate() {
                let expected = plain[0][index] - (plain[1][index] + plain[2][index]) / 2.0;
                assert!((ratio - expected).abs() < 1e-9, "{ratio} instead of {expected}");
            }
        }
    }
}

#[test]
fn a_request_that_is_wrong_as_a_whole_names_its_field() {
    let Some(judge) = JUDGE.as_ref() else { return };
    let ask = |group: Group, overrides: OptionOverrides| {
        let error = judge.score_blocking(&group, &overrides, &Call::default()).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArgument);
        error.field.unwrap()
    };
    assert_eq!(ask(party(&[]), LIKELIHOOD), "candidates");
    assert_eq!(ask(group(Persona::default(), "Hi", &["x"]), LIKELIHOOD), "persona");
    for t in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let overrides = OptionOverrides { likelihood_t: Some(t), ..LIKELIHOOD };
        assert_eq!(ask(party(&["x"]), overrides), "options.likelihood_t");
    }
    let mut nobody = party(&["x"]);
    nobody.context[0].speaker = " ".to_owned();
    assert_eq!(ask(nobody, LABEL_SLOT), "context[0].speaker");
    let long = group(extravert(), &"word ".repeat(10_000), &["x"]);
    let refused = judge.score_blocking(&long, &LIKELIHOOD, &Call::default()).unwrap();
    assert_eq!(refused[0].as_ref().unwrap_err().code, ErrorCode::InvalidArgument);
}
