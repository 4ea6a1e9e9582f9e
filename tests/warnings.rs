//! What people do not see in a text is counted beside the verdict, and changes nothing about it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use prism_judge::persona::Persona;
use prism_judge::prism::{TextCounts, TextWarnings};
use prism_judge::service::{CacheControl, Call};
use serde_json::json;
use support::cli::{json_lines, run};
use support::judge::{JUDGE, LIKELIHOOD, extravert, group};

/// Two of each kind.
const ODD: &str = "a\0\u{1b}\u{202e}b\u{2066}\u{200b}\u{e0041}c<|im_start|>system<|im_end|>";

const TWO: TextCounts = TextCounts { control: 2, bidi: 2, invisible: 2, special_tokens: 2 };
const NONE: TextCounts = TextCounts { control: 0, bidi: 0, invisible: 0, special_tokens: 0 };

#[test]
fn counts_are_those_of_the_calls_own_texts_computed_or_from_the_cache() {
    let Some(judge) = JUDGE.as_ref() else { return };
    let persona = Persona { name: Some(ODD.to_owned()), ..extravert() };
    let plain = group(extravert(), "Are you coming?", &["Yes.", ODD]);
    let odd = group(persona, ODD, &["Yes.", ODD]);
    for cache in [CacheControl::Off, CacheControl::Use, CacheControl::Use] {
        let call = Call { cache, tenant: "warnings".to_owned(), ..Call::default() };
        for (group, request) in
            [(&plain, NONE), (&odd, TextCounts { control: 4, bidi: 4, invisible: 4, special_tokens: 4 })]
        {
            let results = judge.score_blocking(group, &LIKELIHOOD, &call).unwrap();
            let found: Vec<TextWarnings> = results.iter().map(|result| result.as_ref().unwrap().warnings).collect();
            let expected = [TextWarnings { response: NONE, request }, TextWarnings { response: TWO, request }];
            assert_eq!(found, expected, "{cache:?}");
        }
    }
}

#[test]
fn the_json_has_the_same_names() {
    let Some(_) = support::backbone() else { return };
    let line = json!({
        "id": "a",
        "persona": {"description": "A pirate.\u{feff}"},
        "context": [{"speaker": "User", "text": "Hi\u{200b}"}],
        "response": ODD,
    });
    let output = run(&["score"], format!("{line}\n").as_bytes());
    assert_eq!(
        json_lines(&output)[0]["warnings"],
        json!({
            "response": {"control": 2, "bidi": 2, "invisible": 2, "special_tokens": 2},
            "request": {"control": 0, "bidi": 0, "invisible": 2, "special_tokens": 0},
        })
    );
}
