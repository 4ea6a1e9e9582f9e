#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::*;
use crate::persona::{Polarity, Trait};

fn item(json: &str) -> Item {
    Item::parse(json, 7).unwrap_or_else(|bad| panic!("{}", bad.message))
}

fn message(json: &str) -> String {
    Item::parse(json, 7).unwrap_err().message
}

fn ids(item: &Item) -> Vec<&str> {
    item.rows.iter().map(|row| row.id.as_str()).collect()
}

#[test]
fn a_row_without_an_id_is_named_by_its_line() {
    let item = item(r#"{"persona":{"description":"kind"},"context":[],"response":"hi","source":"x"}"#);
    assert_eq!(ids(&item), ["7"]);
    assert_eq!(item.groups[0].candidates[0], Candidate { id: "7".into(), response: "hi".into() });
    assert_eq!(item.rows[0].role, Role::Single);
}

#[test]
fn a_persona_keeps_all_its_parts() {
    let item = item(
        r#"{"id":3,"persona":{"name":"Ada","traits":[{"trait":"openness","polarity":"high"}],
            "description":"d","facts":["f"]},"context":"hello","response":"hi"}"#,
    );
    let traits = vec![TraitTarget { trait_: Trait::Openness, polarity: Polarity::High }];
    let persona = Persona { name: Some("Ada".into()), traits, description: "d".into(), facts: vec!["f".into()] };
    assert_eq!(item.groups[0].persona, persona);
    assert_eq!(item.groups[0].context, [Turn { speaker: "User".into(), text: "hello".into() }]);
    assert_eq!(ids(&item), ["3"]);
}

#[test]
fn a_group_keeps_its_order_and_swaps_the_profile() {
    let item = item(
        r#"{"group_id":"g","persona":{"description":"p"},"context":[],"positive":"yes","negatives":[
            {"text":"yes","kind":"swap","persona":{"description":"q"},"from":"x"},
            {"text":"no","kind":"stance_error"},
            {"text":"maybe","persona":{"description":"q"}}]}"#,
    );
    assert_eq!(ids(&item), ["g/positive", "g/negative/0", "g/negative/1", "g/negative/2"]);
    assert_eq!(item.groups.len(), 2);
    assert_eq!(item.groups[1].persona.description, "q");
    let places: Vec<_> = item.rows.iter().map(|row| (row.group, row.candidate)).collect();
    assert_eq!(places, [(0, 0), (1, 0), (0, 1), (1, 1)]);
    assert_eq!(item.rows[2].violated, Some(Dimension::InterpersonalStance));
    assert_eq!(item.rows[1].violated, None);
}

#[test]
fn several_positives_are_numbered() {
    let item =
        item(r#"{"group_id":"g","persona":{"description":"p"},"context":[],"positives":["a","b"],"negatives":["c"]}"#);
    assert_eq!(ids(&item), ["g/positive/0", "g/positive/1", "g/negative/0"]);
}

#[test]
fn a_diagnosis_line_names_the_broken_dimension() {
    let item = item(
        r#"{"group_id":"d","persona":{"description":"p"},"context":[],"style_error":"s","aligned":"a","task_error":"t"}"#,
    );
    assert_eq!(ids(&item), ["d/aligned", "d/task_error", "d/style_error"]);
    assert_eq!(item.rows[2].violated, Some(Dimension::LinguisticStyle));
    assert_eq!(item.rows[0].role, Role::Positive);
}

#[test]
fn published_rows_of_one_case_share_a_key() {
    let line = |case: &str, label: u8| {
        item(&format!(
            r#"{{"case_id":"{case}","label":{label},"profile":"Big Five focus: Openness = high","dialogue":"User: a\nBot: b","response":"r"}}"#
        ))
    };
    let (positive, negative) = (line("x_pos", 1), line("x_neg_B", 0));
    assert_eq!((positive.key.as_str(), negative.key.as_str()), ("x", "x"));
    assert_eq!(negative.rows[0].role, Role::Negative);
    assert_eq!(ids(&negative), ["x_neg_B"]);
    assert_eq!(positive.groups[0].context.len(), 2);
    assert_eq!(positive.groups[0].persona.description, "Big Five focus: Openness = high");
}

#[test]
fn a_pointwise_row_keeps_its_item_id() {
    let item = item(r#"{"item_id":"c/1","human_score":4,"persona":{"name":"n"},"context":[],"response":"r"}"#);
    assert_eq!(ids(&item), ["c/1"]);
}

#[test]
fn errors_name_the_field_the_kind_found_and_what_is_allowed() {
    let row = |fields: &str| format!(r#"{{"persona":{{"description":"p"}},"context":[],{fields}}}"#);
    assert_eq!(message(&row(r#""response":5"#)), "response is a number; it must be a string");
    assert_eq!(message(&row(r#""x":5"#)), "response is missing; it must be a string");
    assert_eq!(message(&row(r#""response":"r","label":"good""#)), r#"label is "good"; it must be 1 or 0"#);
    assert_eq!(
        message(&row(r#""positive":"r","negatives":{}"#)),
        format!("negatives is an object; it must be a list of {NEGATIVE}")
    );
    assert_eq!(
        message(&row(r#""positive":"r","negatives":[1]"#)),
        format!("negatives[0] is a number; it must be {NEGATIVE}")
    );
    assert_eq!(
        message(&row(r#""positive":[],"negatives":[]"#)),
        "positive is missing; it must be a string or a list of strings"
    );
    let persona = |persona: &str| message(&format!(r#"{{"persona":{persona},"context":[],"response":"r"}}"#));
    assert_eq!(persona(r#"{"fact":[]}"#), "persona.fact is not known; allowed are name, traits, description, facts");
    assert_eq!(persona(r#"{"facts":[1]}"#), "persona.facts[0] is a number; it must be a string");
    let unknown = persona(r#"{"traits":[{"trait":"charm","polarity":"high"}]}"#);
    assert!(unknown.starts_with("persona.traits[0].trait: unknown variant `charm`") && unknown.contains("openness"));
    assert!(persona("\"a text\"").contains("profile"));
    assert_eq!(message("[]"), "the line is a list; it must be an object");
    assert!(message("[{\"a\":1},").contains("not part of a list"));
}

#[test]
fn a_bad_line_keeps_the_id_that_could_be_read() {
    let bad = Item::parse(r#"{"id":"a","response":"r"}"#, 3).unwrap_err();
    assert_eq!(
        bad.to_json().to_string(),
        r#"{"id":"a","line":3,"error":{"code":"invalid_argument","message":"persona is missing; it must be an object {name, traits, description, facts}"}}"#
    );
}

#[test]
fn lone_surrogates_are_explained_and_nul_is_text() {
    for escape in [r"\ud83d", r"\udc00", r"\ud83dx", r"\ud83d\u0041"] {
        let text = format!(r#"{{"persona":{{"description":"p"}},"context":[],"response":"{escape}"}}"#);
        assert!(message(&text).contains("half of a surrogate pair"), "{escape}: {}", message(&text));
    }
    let nul = item(r#"{"persona":{"description":"p"},"context":[],"response":"a\u0000b\ud83d\ude00"}"#);
    assert_eq!(nul.groups[0].candidates[0].response, "a\0b😀");
}

#[test]
fn every_line_of_the_development_data_is_read() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data/dev");
    let Ok(files) = std::fs::read_dir(folder) else {
        eprintln!("skipped: ../shared/data/dev is not here");
        return;
    };
    let mut lines = 0;
    for file in files {
        let path = file.unwrap().path();
        for (index, line) in std::fs::read_to_string(&path).unwrap().lines().enumerate() {
            let parsed = Item::parse(line, index + 1);
            assert!(parsed.is_ok(), "{}: {:?}", path.display(), parsed);
            lines += 1;
        }
    }
    assert!(lines > 2_000);
}

proptest! {
    #[test]
    fn no_line_makes_the_reader_fail_otherwise_than_with_a_message(text in ".*") {
        let _ = Item::parse(&text, 1);
    }
}
