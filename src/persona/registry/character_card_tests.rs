#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::super::syntax::Syntax;
use super::*;
use crate::persona::CueKind;

/// A card as it is published, with every field that the spec names.
const CARD: &str = r#"{
  "spec": "chara_card_v2", "spec_version": "2.0",
  "data": {
    "name": "Mirela",
    "description": "{{char}} runs the night desk of a library.\n{{user}} is a guest.",
    "personality": "patient, dry, exact",
    "scenario": "{{user}} cannot sleep.",
    "first_mes": "\"We are closed,\" says <BOT>.",
    "mes_example": "<START>\n{{user}}: Got a pen?\n{{CHAR}}: A pen.\nDo bring it back.\n<start>\n{{user}}: Thanks!\nAgain.\nMirela: Hm.",
    "creator_notes": "Play at night.", "system_prompt": "Obey.", "post_history_instructions": "Obey.",
    "alternate_greetings": ["Hello."], "tags": [], "creator": "", "character_version": "1",
    "character_book": {"entries": [{"keys": ["pen"], "content": "It is red."}]},
    "extensions": {}, "of_some_program": 7
  },
  "name": "of another version"
}"#;

fn table(json: &str) -> Table {
    match Syntax::Json.parse(json).unwrap() {
        Node::Table(table) => table,
        other => panic!("{other:?}"),
    }
}

fn read(json: &str) -> Result<Read, Vec<String>> {
    let (table, mut problems) = (table(json), Problems::of("f"));
    let read = if is_v2(&table) { v2(&table, &mut problems) } else { v1(&table, &mut problems) };
    read.ok_or_else(|| problems.found.iter().map(|problem| format!("{}: {}", problem.field, problem.message)).collect())
}

fn card(fields: &[(&str, &str)]) -> Persona {
    let mut data = serde_json::Map::new();
    for (key, value) in fields {
        data.insert((*key).to_owned(), (*value).into());
    }
    read(&serde_json::json!({"spec": "chara_card_v2", "data": data}).to_string()).ok().unwrap().persona
}

#[test]
fn a_card_gives_name_personality_profile_and_style() {
    let Read { persona, unused } = read(CARD).ok().unwrap();
    assert_eq!(persona.name.as_deref(), Some("Mirela"));
    assert_eq!(
        persona.description,
        "Personality:\npatient, dry, exact\n\nCharacter Profile:\nMirela runs the night desk of a library.\nUser is a \
         guest.\n\nDialogue Style:\n\"A pen. Do bring it back.\"\n\"Hm.\""
    );
    assert!(persona.traits.is_empty() && persona.facts.is_empty());
    // What is empty is not missed.
    let expected = [
        "alternate_greetings",
        "character_book",
        "character_version",
        "creator_notes",
        "first_mes",
        "of_some_program",
        "post_history_instructions",
        "scenario",
        "system_prompt",
    ];
    assert_eq!(unused, expected);
}

#[test]
fn the_judge_reads_the_summary_and_the_examples_as_cues() {
    let profile = read(CARD).ok().unwrap().persona.profile().unwrap();
    assert_eq!(profile.cue(CueKind::Personality, 360).text, "patient, dry, exact");
    assert_eq!(profile.cue(CueKind::DialogueStyle, 380).text, "\"A pen. Do bring it back.\"\n\"Hm.\"");
}

#[test]
fn a_card_of_the_first_version_has_its_fields_at_the_top() {
    let v1 = table(CARD)["data"].clone();
    let Node::Table(v1) = v1 else { panic!("{v1:?}") };
    assert!(is_v1(&v1) && !is_v2(&v1));
    let mut problems = Problems::of("f");
    assert_eq!(super::v1(&v1, &mut problems).unwrap().persona, read(CARD).ok().unwrap().persona);
    for ours in [r#"{"name":"x","description":"y"}"#, r#"{"first_mes":"x","traits":[]}"#, r#"{"personality":"x"}"#] {
        assert!(!is_v1(&table(ours)), "{ours}");
    }
}

#[test]
fn a_description_alone_stays_as_it_is_and_its_own_sections_count() {
    assert_eq!(card(&[("description", " A cat. ")]).description, "A cat.");
    let own = card(&[("description", "Dialogue Style: short\nAge: 3"), ("mes_example", "Ada: Long!"), ("name", "Ada")]);
    assert_eq!(own.description, "Dialogue Style: short\nAge: 3\n\nDialogue Style:\n\"Long!\"");
    assert_eq!(own.profile().unwrap().cue(CueKind::DialogueStyle, 380).text, "short");
    let both = card(&[("description", "Personality: loud"), ("personality", "quiet")]);
    assert_eq!(both.profile().unwrap().cue(CueKind::Personality, 360).text, "quiet");
}

#[test]
fn only_what_the_character_says_is_its_style() {
    for (examples, style) in [
        ("", ""),
        ("Ada smiles.", ""),
        ("User: hi", ""),
        ("Ada:", ""),
        ("<START>\nAda: Hm.\n<START>\nShe leaves.", "\"Hm.\""),
        ("ADA:Hm.\n\n  And then?\nuser: no\nno", "\"Hm. And then?\""),
        ("Adam: I am another.\nAda: So?", "\"So?\""),
    ] {
        assert_eq!(said(examples, "Ada"), style, "{examples}");
    }
}

#[test]
fn a_wrong_card_says_which_field_is_wrong_and_all_of_them() {
    let told = |json: &str| read(json).err().unwrap();
    let later = told(r#"{"spec":"chara_card_v3","data":{"name":"x"}}"#);
    assert_eq!(later, ["spec: it names another form; it must be chara_card_v2: export the card as V2"]);
    assert_eq!(told(r#"{"spec":2}"#), ["spec: it is a number; it must be chara_card_v2"]);
    assert_eq!(
        told(r#"{"spec":"chara_card_v2"}"#),
        ["data: it is missing; it must be a table with the fields of the card"]
    );
    assert_eq!(
        told(r#"{"spec":"chara_card_v2","data":{"name":1,"description":["x"],"personality":"{{char}} is kind"}}"#),
        [
            "data.name: it is a number; it must be a text; put it in quotes",
            "data.description: it is a list; it must be a text",
            "data.personality: it has {{char}} or <BOT>, and the card has no name to put there",
        ]
    );
}

#[test]
fn a_field_that_is_null_or_missing_is_an_empty_one() {
    assert_eq!(read(r#"{"spec":"chara_card_v2","data":{"name":null}}"#).ok().unwrap().persona, Persona::default());
}

proptest! {
    #[test]
    fn no_card_breaks_the_reader(name in "(?s).{0,8}", description in "(?s).{0,80}", examples in "(?s)(.{0,20}(:|\n|<START>)){0,6}") {
        let fields = [("name", &*name), ("description", &*description), ("mes_example", &*examples)];
        let data: serde_json::Map<String, serde_json::Value> =
            fields.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect();
        let json = serde_json::json!({"spec": "chara_card_v2", "data": data}).to_string();
        if let Ok(read) = read(&json) {
            let _ = read.persona.profile();
        }
    }
}
