//! What is too large is refused by its name, its size and its limit, before any work; a candidate that is too large fails
//! alone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::LazyLock;

use prism_judge::persona::Persona;
use prism_judge::service::{CacheControl, Call, ErrorCode, Judge, JudgeConfig, LimitSettings};
use support::cli::{json_lines, row, run, stderr};
use support::judge::{JUDGE, LABEL_SLOT, LIKELIHOOD, bits, config, extravert, group, open, party, score};

/// A judge of small limits.
static STRICT: LazyLock<Option<Judge>> = LazyLock::new(|| {
    let limits = LimitSettings {
        response_bytes: Some(40),
        persona_bytes: Some(60),
        context_bytes: Some(80),
        turns: 2,
        candidates: 4,
    };
    Some(open(JudgeConfig { limits, ..config(support::backbone()?) }))
});

#[test]
fn a_candidate_that_is_too_large_fails_alone_whatever_is_wanted_of_the_cache() {
    let (Some(strict), Some(judge)) = (STRICT.as_ref(), JUDGE.as_ref()) else { return };
    let long = "x".repeat(41);
    let good = ["Yes! Who else is in?", "I would rather stay in with a book."];
    let expected = score(judge, &party(&good), &LIKELIHOOD);
    let mut group = party(&[good[0], &long, good[1], "fine"]);
    group.candidates[3].id = "i".repeat(1025);
    for cache in [CacheControl::Off, CacheControl::Use, CacheControl::Use, CacheControl::Refresh] {
        let call = Call { cache, ..Call::default() };
        let results = strict.score_blocking(&group, &LIKELIHOOD, &call).unwrap();
        for (index, expected) in [0, 2].into_iter().zip(&expected) {
            assert_eq!(bits(results[index].as_ref().unwrap()), bits(expected.as_ref().unwrap()), "{cache:?}");
        }
        for (index, field, size, limit) in [(1, "candidates[1].response", 41, 40), (3, "candidates[3].id", 1025, 1024)]
        {
            let error = results[index].as_ref().unwrap_err();
            assert_eq!((error.code, error.field.as_deref()), (ErrorCode::InvalidArgument, Some(field)));
            let message = format!("it has {size} bytes and this judge takes at most {limit}: shorten it");
            assert_eq!(error.message, message);
        }
    }
    // Nobody to judge is no reason for an error of the group.
    let results = strict.score_blocking(&party(&[&long, &long]), &LIKELIHOOD, &Call::default()).unwrap();
    assert!(results.iter().all(Result::is_err));
}

#[test]
fn what_the_group_shares_fails_it_as_a_whole() {
    let Some(judge) = STRICT.as_ref() else { return };
    let refused = |group| {
        let error = judge.score_blocking(&group, &LABEL_SLOT, &Call::default()).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArgument);
        (error.field.unwrap(), error.message)
    };
    let long =
        |size: usize, limit: usize| format!("it has {size} bytes and this judge takes at most {limit}: shorten it");
    let described = Persona { description: "d".repeat(61), ..extravert() };
    assert_eq!(refused(group(described, "Hi", &["x"])), ("persona.description".to_owned(), long(61, 60)));
    // `User` speaks.
    assert_eq!(refused(group(extravert(), &"t".repeat(77), &["x"])), ("context".to_owned(), long(81, 80)));
    let mut turns = party(&["x"]);
    turns.context = vec![turns.context[0].clone(); 3];
    assert_eq!(refused(turns).0, "context");
    assert_eq!(refused(party(&["x"; 5])).0, "candidates");
    assert!(judge.prompts(&party(&["x"; 5]), &LABEL_SLOT).is_err(), "nor are its prompts made");
}

#[test]
fn the_command_line_sets_the_limits_and_names_them() {
    let Some(_) = support::backbone() else { return };
    let input = [row("a", "openness", "high", "Why not?"), row("b", "openness", "high", "Why not, then?")].concat();
    let output = run(&["score", "--max-response-bytes", "10"], input.as_bytes());
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let lines = json_lines(&output);
    assert!(lines[0]["s_prism"].is_f64());
    assert_eq!(lines[1]["error"]["code"], "invalid_argument");
    let message = "response: it has 14 bytes and this judge takes at most 10: shorten it";
    assert_eq!(lines[1]["error"]["message"], message);
    for (flag, value) in [("--max-turns", "0"), ("--max-persona-bytes", "many"), ("--max-context-bytes", "1.5")] {
        let output = run(&["score", flag, value], b"");
        assert_eq!(output.status.code(), Some(64), "{flag}");
        assert!(stderr(&output).contains("it must be a whole number from 1"), "{}", stderr(&output));
    }
}
