#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::*;
use crate::prism::{ConcludeError, Conclusion, Layout, Reading, Turn, conclude};

fn group(responses: &[&str]) -> Group {
    let turn = |speaker: &str, text: &str| Turn { speaker: speaker.to_owned(), text: text.to_owned() };
    let candidate =
        |(index, response): (usize, &&str)| Candidate { id: format!("case-{index}"), response: (*response).to_owned() };
    Group {
        persona: serde_json::from_str(r#"{"traits":[{"trait":"agreeableness","polarity":"high"}]}"#).unwrap(),
        context: vec![turn("Ann", "How are you?"), turn("Agent", "Fine."), turn("Ann", "Really?")],
        candidates: responses.iter().enumerate().map(candidate).collect(),
    }
}

fn options(evidence: EvidenceKind, label_order: LabelOrder, calibration: Calibration) -> Options {
    Options {
        evidence,
        layout: Layout::Shared,
        label_order,
        calibration,
        persona_block: false,
        scale: LikelihoodScale { t: 1.0, b: 0.0 },
    }
}

fn slot(label_order: LabelOrder) -> Options {
    options(EvidenceKind::LabelSlot, label_order, Calibration::None)
}

fn with_plan<T>(group: &Group, options: &Options, then: impl FnOnce(&Plan) -> T) -> T {
    let (spaces, template) = (LabelSpaces::load(None).unwrap(), PromptTemplate::load(None).unwrap());
    then(&plan(group, &spaces, &template, options).unwrap())
}

fn refused(group: &Group, options: &Options) -> (Option<String>, String) {
    let (spaces, template) = (LabelSpaces::load(None).unwrap(), PromptTemplate::load(None).unwrap());
    let error = plan(group, &spaces, &template, options).unwrap_err();
    (error.field().map(str::to_owned), error.to_string())
}

/// Concludes the first candidate when each prompt and content-free prompt is read by `read`.
fn judge(options: &Options, read: impl Fn(&InversePrompt) -> Reading) -> Result<Conclusion, ConcludeError> {
    with_plan(&group(&["Of course, dear."]), options, |plan| {
        let candidate = plan.candidate(0).unwrap();
        let readings: Vec<Reading> = candidate.prompts.iter().map(&read).collect();
        let baseline: Vec<Reading> = plan.baseline().iter().map(&read).collect();
        conclude(&candidate, &readings, &baseline)
    })
}

fn displayed(prompt: &InversePrompt, canonical: [f64; 3]) -> Reading {
    let Read::LabelSlot { order } = prompt.read else { panic!("not a label slot") };
    Reading::LabelScores { log_scores: order.map(|label| canonical[label as usize]), label_mass: 0.5 }
}

#[test]
fn the_number_of_prompts_follows_the_label_order() {
    for (order, count) in
        [(LabelOrder::Released, 3), (LabelOrder::Content, 3), (LabelOrder::Cyclic, 9), (LabelOrder::All, 18)]
    {
        with_plan(&group(&["a"]), &slot(order), |plan| {
            assert_eq!(plan.candidate(0).unwrap().prompts.len(), count);
            assert!(plan.baseline().is_empty());
        });
    }
}

/// Letters from the MD5 rule, computed with Python for the id `case-7` (see `order.rs`).
#[test]
fn the_released_order_is_made_from_the_candidates_id() {
    let mut group = group(&["a"]);
    group.candidates[0].id = "case-7".to_owned();
    with_plan(&group, &slot(LabelOrder::Released), |plan| {
        let reads: Vec<Read> = plan.candidate(0).unwrap().prompts.iter().map(|prompt| prompt.read).collect();
        use Label::{Aligned as A, Contradictory as C, Indeterminate as B};
        let expected = [[A, C, B], [B, C, A], [A, C, B]].map(|order| Read::LabelSlot { order });
        assert_eq!(reads, expected);
    });
}

#[test]
fn a_fault_of_one_candidate_leaves_its_neighbours_alone() {
    let mut group = group(&["fine", " \n", "fine too"]);
    group.candidates[2].id = String::new();
    with_plan(&group, &slot(LabelOrder::Released), |plan| {
        let results: Vec<Result<CandidatePlan, PlanError>> = plan.candidates().collect();
        assert_eq!(results.len(), 3);
        assert!(results[0].is_ok());
        assert_eq!(results[1].as_ref().unwrap_err().field(), Some("candidates[1].response"));
        assert_eq!(results[2].as_ref().unwrap_err().field(), Some("candidates[2].id"));
    });
}

#[test]
fn a_fault_of_the_group_names_its_field() {
    let cyclic = slot(LabelOrder::Cyclic);
    let (field, message) = refused(&group(&[]), &cyclic);
    assert_eq!(field.as_deref(), Some("candidates"));
    assert_eq!(message, "there is no candidate: give at least one response");

    let mut nobody = group(&["a"]);
    nobody.persona.traits.clear();
    assert_eq!(refused(&nobody, &cyclic).0.as_deref(), Some("persona"));

    let mut silent = group(&["a"]);
    silent.context[1].speaker.clear();
    assert_eq!(refused(&silent, &cyclic).0.as_deref(), Some("context[1].speaker"));

    for (t, b, field) in [
        (0.0, 0.0, "options.likelihood_t"),
        (-1.0, 0.0, "options.likelihood_t"),
        (f64::NAN, 0.0, "options.likelihood_t"),
        (1.0, f64::INFINITY, "options.likelihood_b"),
    ] {
        let options = Options { scale: LikelihoodScale { t, b }, ..cyclic };
        assert_eq!(refused(&group(&["a"]), &options).0.as_deref(), Some(field));
    }
}

#[test]
fn an_empty_context_is_allowed() {
    let mut group = group(&["a"]);
    group.context.clear();
    for evidence in [EvidenceKind::LabelSlot, EvidenceKind::Likelihood] {
        let options = options(evidence, LabelOrder::Cyclic, Calibration::Contextual);
        with_plan(&group, &options, |plan| assert!(plan.candidate(0).is_ok()));
    }
}

#[test]
fn the_likelihood_reads_the_response_under_both_poles() {
    let options = options(EvidenceKind::Likelihood, LabelOrder::Cyclic, Calibration::None);
    with_plan(&group(&["Of course."]), &options, |plan| {
        let prompts = plan.candidate(0).unwrap().prompts;
        assert_eq!(prompts.len(), 6);
        for (prompt, label) in prompts.iter().zip([Label::Aligned, Label::Contradictory].into_iter().cycle()) {
            assert_eq!(prompt.read, Read::Response { label });
            let roles: Vec<Role> = prompt.messages.iter().map(|message| message.role).collect();
            assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::User, Role::Assistant]);
            assert_eq!(prompt.messages[4].text, "Of course.");
            let space = &plan.spaces()[prompt.dimension as usize];
            let side = usize::from(label == Label::Contradictory);
            assert_eq!(prompt.messages[0].text, space.role[side]);
            assert_eq!(prompt.messages[3].text, format!("Really?\n\n({})", space.note[side]));
        }
    });
}

#[test]
fn content_free_prompts_are_made_once_for_all_candidates() {
    let responses = ["a"; 50];
    let free = LabelSpaces::load(None).unwrap().content_free().len();
    for (evidence, order, readings) in [
        (EvidenceKind::LabelSlot, LabelOrder::Cyclic, 9),
        (EvidenceKind::LabelSlot, LabelOrder::All, 18),
        (EvidenceKind::Likelihood, LabelOrder::Cyclic, 6),
    ] {
        let options = options(evidence, order, Calibration::Contextual);
        with_plan(&group(&responses), &options, |plan| assert_eq!(plan.baseline().len(), readings * free));
    }
    let many: Vec<String> = (0..200).map(|i| format!("answer {i}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let content = options(EvidenceKind::LabelSlot, LabelOrder::Content, Calibration::Contextual);
    with_plan(&group(&many), &content, |plan| assert_eq!(plan.baseline().len(), 18 * free));
}

/// The posteriors of the paper's Figure 2, whatever the displayed order.
#[test]
fn figure_2_comes_out_of_every_label_order() {
    let figure = [[0.62, 0.25, 0.13], [0.28, 0.52, 0.20], [0.71, 0.20, 0.09_f64]];
    for order in [LabelOrder::Released, LabelOrder::Content, LabelOrder::Cyclic, LabelOrder::All] {
        let conclusion =
            judge(&slot(order), |prompt| displayed(prompt, figure[prompt.dimension as usize].map(f64::ln)));
        let conclusion = conclusion.unwrap();
        assert!((conclusion.s_prism - 0.5367).abs() < 5e-5);
        assert_eq!(conclusion.weakest_dimension, Dimension::InterpersonalStance);
        assert!((conclusion.dimensions.linguistic_style.posterior.contradictory - 0.09).abs() < 1e-12);
        assert_eq!(conclusion.dimensions.task_framing.label_mass, Some(0.5));
    }
}

/// A judge that prefers the first letter by 2 nats and knows nothing: three rotations make it say so.
#[test]
fn cyclic_orders_cancel_an_additive_position_bias() {
    let biased = |_: &InversePrompt| Reading::LabelScores { log_scores: [2.0, 0.0, -1.0], label_mass: 1.0 };
    let posterior = judge(&slot(LabelOrder::Cyclic), biased).unwrap().dimensions.task_framing.posterior;
    assert_eq!(posterior.aligned.to_bits(), posterior.indeterminate.to_bits());
    assert_eq!(posterior.aligned.to_bits(), posterior.contradictory.to_bits());
    let one = judge(&slot(LabelOrder::Content), biased).unwrap().dimensions.task_framing.posterior;
    assert!(one.aligned.max(one.indeterminate).max(one.contradictory) > 0.8);
}

/// A judge that gives the content-free response the same scores knows nothing of the response.
#[test]
fn contextual_calibration_subtracts_the_content_free_score() {
    let slot = options(EvidenceKind::LabelSlot, LabelOrder::Content, Calibration::Contextual);
    let posterior =
        judge(&slot, |prompt| displayed(prompt, [3.0, -1.0, 0.5])).unwrap().dimensions.task_framing.posterior;
    assert!((posterior.aligned - 1.0 / 3.0).abs() < 1e-15);

    // delta = (-20 + 23) - (-6 + 5) = 4; q = softmax(2, 0, -2), from Python.
    let likelihood = options(EvidenceKind::Likelihood, LabelOrder::Cyclic, Calibration::Contextual);
    let conclusion = judge(&likelihood, |prompt| {
        let content_free = prompt.messages.last().unwrap().text != "Of course, dear.";
        let log_prob = match (prompt.read, content_free) {
            (Read::Response { label: Label::Aligned }, false) => -20.0,
            (_, false) => -23.0,
            (Read::Response { label: Label::Aligned }, true) => -6.0,
            (_, true) => -5.0,
        };
        Reading::ResponseScore { log_prob }
    })
    .unwrap();
    assert!((conclusion.s_prism - 0.8668133321973347).abs() < 1e-15, "{}", conclusion.s_prism);
    assert_eq!(conclusion.dimensions.task_framing.label_mass, None);
}

#[test]
fn a_value_that_is_not_finite_names_its_dimension() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for calibration in [Calibration::None, Calibration::Contextual] {
            let score = |prompt: &InversePrompt| if prompt.dimension == Dimension::LinguisticStyle { bad } else { 0.0 };
            let slot = options(EvidenceKind::LabelSlot, LabelOrder::Cyclic, calibration);
            let read = |prompt: &InversePrompt| Reading::LabelScores {
                log_scores: [score(prompt), 0.0, 0.0],
                label_mass: 1.0,
            };
            assert_eq!(judge(&slot, read), Err(ConcludeError::NonFinite(Dimension::LinguisticStyle)));
            let mass =
                |prompt: &InversePrompt| Reading::LabelScores { log_scores: [0.0; 3], label_mass: score(prompt) };
            assert_eq!(judge(&slot, mass), Err(ConcludeError::NonFinite(Dimension::LinguisticStyle)));
            let likelihood = options(EvidenceKind::Likelihood, LabelOrder::Cyclic, calibration);
            let read = |prompt: &InversePrompt| Reading::ResponseScore { log_prob: score(prompt) };
            assert_eq!(judge(&likelihood, read), Err(ConcludeError::NonFinite(Dimension::LinguisticStyle)));
        }
    }
}

#[test]
fn readings_that_do_not_fit_their_prompts_are_refused() {
    let wrong = |_: &InversePrompt| Reading::ResponseScore { log_prob: -1.0 };
    assert_eq!(judge(&slot(LabelOrder::Cyclic), wrong), Err(ConcludeError::Kind(Dimension::TaskFraming)));
    with_plan(&group(&["a"]), &slot(LabelOrder::Cyclic), |plan| {
        let candidate = plan.candidate(0).unwrap();
        assert_eq!(conclude(&candidate, &[], &[]), Err(ConcludeError::Count { expected: 9, found: 0 }));
    });
}

#[test]
fn a_label_mass_outside_0_to_1_is_refused_and_a_rounded_1_is_not() {
    let read = |label_mass| move |_: &InversePrompt| Reading::LabelScores { log_scores: [0.0; 3], label_mass };
    for mass in [-0.1, 1.5] {
        let refused = judge(&slot(LabelOrder::Cyclic), read(mass));
        assert_eq!(refused, Err(ConcludeError::LabelMass(Dimension::TaskFraming)));
    }
    let rounded = judge(&slot(LabelOrder::Cyclic), read(1.000_001)).unwrap();
    assert_eq!(rounded.dimensions.task_framing.label_mass, Some(1.0));
}

proptest! {
    /// The same prompts and readings in another order give the same bits.
    #[test]
    fn the_order_of_the_displayed_orders_changes_no_bit(
        scores in prop::collection::vec(prop::array::uniform3(-60.0..60f64), 18),
        turn in 0usize..18,
    ) {
        with_plan(&group(&["a"]), &slot(LabelOrder::All), |plan| {
            let candidate = plan.candidate(0).unwrap();
            let readings: Vec<Reading> =
                scores.iter().map(|scores| Reading::LabelScores { log_scores: *scores, label_mass: 0.25 }).collect();
            let (mut turned, mut turned_readings) = (candidate.clone(), readings.clone());
            turned.prompts.rotate_left(turn);
            turned.baseline.rotate_left(turn);
            turned_readings.rotate_left(turn);
            let one = conclude(&candidate, &readings, &[]).unwrap();
            let other = conclude(&turned, &turned_readings, &[]).unwrap();
            prop_assert_eq!(one.s_prism.to_bits(), other.s_prism.to_bits());
            for dimension in Dimension::ALL {
                let (one, other) = (one.dimensions.get(dimension).posterior, other.dimensions.get(dimension).posterior);
                prop_assert_eq!(one.aligned.to_bits(), other.aligned.to_bits());
                prop_assert_eq!(one.indeterminate.to_bits(), other.indeterminate.to_bits());
                prop_assert_eq!(one.contradictory.to_bits(), other.contradictory.to_bits());
            }
            Ok(())
        })?;
    }
}
