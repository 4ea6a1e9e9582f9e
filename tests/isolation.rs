//! What goes wrong with one prompt, or with one piece of work, stays there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::time::Instant;

use prism_judge::engine::{Answer, Cancel, Engine, EngineError, EngineSettings, Prompt, Read, Stop, run};
use support::tiny::{Shape, Tiny};

/// The shortest chunks that a prompt of six tokens needs several of.
const CHUNKS_OF_FOUR: EngineSettings = EngineSettings { chunk_tokens: 4, ..EngineSettings::DEFAULT };

/// A token whose embedding overflows in the first layer.
const POISON: u32 = 77;

fn prompt(ids: &[u32]) -> Prompt {
    Prompt { ids: ids.to_vec(), read: Read::Next(vec![1, 2, 3]) }
}

fn poisoned() -> Tiny {
    let mut tiny = Tiny::new(Shape { tied: false, ..Shape::default() }, 9);
    tiny.scale_embedding(POISON, 1e30);
    tiny
}

#[test]
fn a_value_that_is_not_finite_fails_its_prompt_alone() {
    let decoder = poisoned().decoder(2);
    let trunk: Vec<u32> = (0..40).collect();
    let after = |own: &[u32]| [&trunk[..], own].concat();
    let clean = [
        prompt(&after(&[])),
        prompt(&after(&[5, 6, 7])),
        prompt(&after(&[78, 5])),
        Prompt { read: Read::Span(30..44), ids: after(&[9, 8, 7, 6]) },
        prompt(&[1]),
    ];
    let bad = [
        prompt(&after(&[POISON])),
        prompt(&after(&[5, POISON, 7])),
        Prompt { read: Read::Span(41..43), ids: after(&[POISON, 8, 7]) },
        prompt(&[POISON, 1]),
    ];
    let bits = |answer: &Result<prism_judge::engine::Reading, EngineError>| -> Vec<u64> {
        answer.as_ref().unwrap().log_probs.iter().map(|value| value.to_bits()).collect()
    };
    let expected: Vec<_> = run(&decoder, &clean, 512, &Cancel::default()).unwrap().iter().map(bits).collect();
    // Healthy and failing prompts take turns, in both orders.
    for swap in [false, true] {
        let mut mixed = Vec::new();
        for (index, clean) in clean.iter().enumerate() {
            let mut pair: Vec<&Prompt> = [Some(clean), bad.get(index)].into_iter().flatten().collect();
            if swap {
                pair.reverse();
            }
            mixed.extend(pair.into_iter().cloned());
        }
        for chunk in [1, 5, 16, 512] {
            let answers = run(&decoder, &mixed, chunk, &Cancel::default()).unwrap();
            let mut healthy = expected.iter();
            for (prompt, answer) in mixed.iter().zip(&answers) {
                if prompt.ids.contains(&POISON) {
                    assert_eq!(answer, &Err(EngineError::NonFinite), "chunks of {chunk}");
                } else {
                    assert_eq!(&bits(answer), healthy.next().unwrap(), "chunks of {chunk}");
                }
            }
        }
    }
}

fn log_probs(answer: Answer) -> Vec<Vec<f64>> {
    answer.unwrap().into_iter().map(|answer| answer.unwrap().log_probs).collect()
}

/// Tokens before the one that overflows, in the same block of queries.
#[test]
fn what_comes_before_a_value_that_is_not_finite_keeps_its_bits() {
    let decoder = poisoned().decoder(2);
    let trunk: Vec<u32> = (0..70).collect();
    let read = |ids: Vec<u32>, chunk: usize| {
        let after = prompt(&ids);
        let answer = run(&decoder, &[Prompt { ids, read: Read::Span(1..70) }, after], chunk, &Cancel::default());
        answer.unwrap().into_iter().next().unwrap().unwrap().log_probs
    };
    let expected = read(trunk.clone(), 512);
    for chunk in [1, 5, 16, 512] {
        let ids = [&trunk[..], &[POISON, 1, POISON, 3]].concat();
        assert_eq!(read(ids, chunk), expected, "chunks of {chunk}");
    }
}

#[test]
fn work_that_must_stop_says_why_and_the_engine_goes_on() {
    let engine = Engine::start(Tiny::new(Shape::default(), 2).decoder(1), CHUNKS_OF_FOUR).unwrap();
    let work = || vec![prompt(&[1, 2, 3, 4, 5, 6])];
    let before = log_probs(engine.run(work(), &Cancel::default()));
    let cancel = Cancel::default();
    cancel.clone().cancel();
    assert_eq!(engine.run(work(), &cancel), Err(EngineError::Stopped(Stop::Cancelled)));
    let late = Cancel::with_deadline(Some(Instant::now()));
    assert_eq!(engine.run(work(), &late), Err(EngineError::Stopped(Stop::DeadlineExceeded)));
    assert_eq!(log_probs(engine.run(work(), &Cancel::default())), before);
}

#[test]
fn a_panic_of_the_model_becomes_an_error_and_the_engine_goes_on() {
    let engine = Engine::start(Tiny::new(Shape::default(), 2).decoder(2), CHUNKS_OF_FOUR).unwrap();
    let before = log_probs(engine.run(vec![prompt(&[1])], &Cancel::default()));
    // No tokenizer gives an id outside its vocabulary.
    let answer = engine.run(vec![prompt(&[1_000_000])], &Cancel::default());
    assert!(matches!(answer.as_deref(), Ok([Err(EngineError::Failed(_))])), "{answer:?}");
    assert_eq!(log_probs(engine.run(vec![prompt(&[1])], &Cancel::default())), before);
}

#[test]
fn a_prompt_over_the_context_length_is_refused_with_both_numbers() {
    let decoder = Tiny::new(Shape { context: 20, ..Shape::default() }, 2).decoder(1);
    let long = [prompt(&[1; 20]), prompt(&[1; 21])];
    let answers = run(&decoder, &long, 512, &Cancel::default()).unwrap();
    assert!(answers[0].is_ok());
    let error = answers[1].clone().unwrap_err();
    assert_eq!(error, EngineError::TooLong { tokens: 21, limit: 20 });
    assert_eq!(error.to_string(), "a prompt of 21 tokens is longer than the model's context of 20 tokens");
}
