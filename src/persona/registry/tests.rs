#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;

use proptest::prelude::*;

use super::*;
use crate::persona::{Polarity, Trait};

fn read(name: &str, text: &str) -> (Registry, Vec<String>) {
    let (registry, problems) = Registry::of_file(Path::new(name), text.as_bytes());
    (registry, problems.iter().map(ToString::to_string).collect())
}

fn good(name: &str, text: &str) -> Registry {
    let (registry, problems) = read(name, text);
    assert!(problems.is_empty(), "{name}: {problems:#?}");
    registry
}

fn problems(name: &str, text: &str) -> Vec<String> {
    read(name, text).1
}

fn ids(registry: &Registry) -> Vec<&str> {
    registry.iter().map(|named| named.id.as_str()).collect()
}

/// A persona with every part.
fn ada() -> Persona {
    Persona {
        name: Some("Ada".to_owned()),
        traits: vec![
            TraitTarget::new(Trait::Openness, Polarity::High),
            TraitTarget::new(Trait::Neuroticism, Polarity::Low),
        ],
        description: "Personality: proud\nAge: 36".to_owned(),
        facts: vec!["owns a parrot".to_owned(), "fears geese".to_owned()],
    }
}

const TOML: &str = r#"
name = "Ada"
description = """Personality: proud
Age: 36"""
facts = ["owns a parrot", "fears geese"]

[[traits]]
trait = "openness"
polarity = "high"

[[traits]]
trait = "neuroticism"
polarity = "low"
"#;

const YAML: &str = "
name: Ada
traits:
  - {trait: openness, polarity: high}
  - {trait: neuroticism, polarity: low}
description: |-
  Personality: proud
  Age: 36
facts:
  - owns a parrot
  - fears geese
";

#[test]
fn a_persona_is_the_same_in_every_form_and_named_after_its_file() {
    let json = serde_json::to_string(&ada()).unwrap();
    for (file, text, form) in [
        ("dir/ada.toml", TOML, Form::Toml),
        ("ada.yaml", YAML, Form::Yaml),
        ("ada.yml", YAML, Form::Yaml),
        ("ada.json", &json, Form::Json),
        ("ada.JSON", &format!("\u{feff}{json}"), Form::Json),
    ] {
        let registry = good(file, text);
        assert_eq!(ids(&registry), ["ada"], "{file}");
        let named = registry.get("ada").unwrap();
        assert_eq!((&named.persona, named.form, named.file.as_str()), (&ada(), form, file));
        assert_eq!(named.digest, good("ada.json", &json).get("ada").unwrap().digest);
    }
}

#[test]
fn a_plain_text_is_a_description_whose_names_are_filled_in() {
    let registry = good("harbour.cat.txt", "\n Name: Bosun\nPersonality: {{char}} growls at {{user}}.\n");
    let named = registry.get("harbour.cat").unwrap();
    assert_eq!(named.persona.description, "Name: Bosun\nPersonality: Bosun growls at User.");
    assert_eq!((named.name.as_deref(), named.form), (Some("Bosun"), Form::Text));
    assert!(problems("x.md", "{{char}} growls.")[0].contains("has no name to put there"));
}

#[test]
fn one_file_may_hold_several_under_their_keys_or_their_ids() {
    for (file, text) in [
        ("crew.toml", "[ada]\ndescription = 'x'\n[bo]\nfacts = ['y']\n"),
        ("crew.toml", "[personas.ada]\ndescription = 'x'\n[personas.bo]\nfacts = ['y']\n"),
        ("crew.toml", "[[personas]]\nid = 'bo'\nfacts = ['y']\n[[personas]]\nid = 'ada'\ndescription = 'x'\n"),
        ("crew.yaml", "ada: {description: x}\nbo: {facts: [y]}\n"),
        ("crew.yaml", "- id: ada\n  description: x\n- id: bo\n  facts: [y]\n"),
        ("crew.json", r#"{"ada":{"description":"x"},"bo":{"facts":["y"]}}"#),
        ("crew.json", r#"[{"id":"bo","facts":["y"]},{"id":"ada","description":"x"}]"#),
    ] {
        let registry = good(file, text);
        assert_eq!(ids(&registry), ["ada", "bo"], "{text}");
        assert_eq!(registry.get("ada").unwrap().persona.description, "x");
        assert_eq!(registry.get("bo").unwrap().persona.facts, ["y"]);
    }
}

#[test]
fn a_table_with_a_field_of_a_persona_is_one_persona_however_the_rest_is_spelt() {
    assert_eq!(
        problems("ada.yaml", "name: Ada\ntraits: {openness: high}\nfact: [x]\n"),
        [
            "ada.yaml: fact: it is not known; allowed are name, traits, description, facts",
            "ada.yaml: traits: it is a table; it must be a list of {trait, polarity}",
        ]
    );
    assert_eq!(
        problems("ada.json", r#"{"descripton":"x"}"#),
        ["ada.json: descripton: it is not known; allowed are name, traits, description, facts"]
    );
    assert_eq!(
        problems("ada.toml", "title = 'x'\n[ada]\nfacts = ['y']\n"),
        ["ada.toml: title: it is a text; it must be a persona, a table with any of name, traits, description, facts"]
    );
}

#[test]
fn everything_that_is_wrong_in_a_file_is_told_with_place_kind_and_what_is_allowed() {
    let text = r#"
        [ada]
        name = 7
        facts = ["x", true, []]
        [[ada.traits]]
        trait = "honesty"
        polarity = "very much so"
        [[ada.traits]]
        trait = 1
        [bo]
        description = ["x"]
        traits = ["openness"]
        "#;
    let expected = [
        "crew.toml: ada.name: it is a number; it must be a text; put it in quotes",
        "crew.toml: ada.traits[0].trait: it is `honesty`; it must be one of openness, conscientiousness, extraversion, \
         agreeableness, neuroticism",
        "crew.toml: ada.traits[0].polarity: it is a text of 12 characters; it must be one of high, low",
        "crew.toml: ada.traits[1].trait: it is a number; it must be one of openness, conscientiousness, extraversion, \
         agreeableness, neuroticism",
        "crew.toml: ada.traits[1].polarity: it is missing; it must be one of high, low",
        "crew.toml: ada.facts[1]: it is true or false; it must be a text; put it in quotes",
        "crew.toml: ada.facts[2]: it is a list; it must be a text",
        "crew.toml: bo.traits[0]: it is a text; it must be a table {trait, polarity}",
        "crew.toml: bo.description: it is a list; it must be a text",
    ];
    let (registry, found) = read("crew.toml", text);
    assert_eq!(found, expected);
    // What is wrong is not known.
    assert!(registry.is_empty());
}

#[test]
fn a_persona_that_says_nothing_or_two_things_is_told_by_its_id() {
    let found = problems(
        "crew.yaml",
        "empty: {}\nnamed: {name: Ada}\nblank: {description: ' '}\nboth:\n  description: 'Big Five focus: openness = low'\n  \
         traits: [{trait: openness, polarity: high}]\nodd: {description: 'Big Five focus: a secret'}\n",
    );
    let starts = [
        "crew.yaml: blank: the persona says nothing",
        "crew.yaml: both.traits: the trait `openness` is high in persona.traits[0] and low in",
        "crew.yaml: empty: the persona says nothing",
        "crew.yaml: named: the persona has only a name",
        "crew.yaml: odd.description: `Big Five focus:` must be followed by",
    ];
    assert_eq!(found.len(), starts.len(), "{found:#?}");
    for (found, start) in found.iter().zip(starts) {
        assert!(found.starts_with(start) && !found.contains("secret"), "{found}");
    }
    assert!(problems("x.txt", " \n")[0].starts_with("x.txt: the persona says nothing"));
    for (file, text) in [("x.json", "{}"), ("x.toml", ""), ("x.json", "[]")] {
        let (registry, _) = read(file, text);
        assert!(registry.is_empty(), "{file}");
    }
    assert_eq!(problems("x.json", "{}"), ["x.json: there is no persona in it"]);
    assert_eq!(problems("x.toml", ""), ["x.toml: there is no persona in it"]);
    assert_eq!(problems("x.json", "[]"), ["x.json: there is no persona in it"]);
    assert_eq!(problems("x.json", r#"{"personas":{}}"#), ["x.json: personas: there is no persona in it"]);
    assert_eq!(
        problems("x.json", "7"),
        ["x.json: it is a number; it must be a table of personas by their ids, or a list of personas with an id each"]
    );
}

#[test]
fn an_id_is_a_plain_word_and_belongs_to_one() {
    assert_eq!(
        problems("Captain Hook.txt", "A pirate."),
        [format!("Captain Hook.txt: the name of the file gives no id; an id has {}", id::RULE)]
    );
    assert_eq!(
        problems("crew.json", r#"{"captain hook":{"facts":["x"]}}"#),
        [format!("crew.json: (a text of 12 characters): it is no id; an id has {}", id::RULE)]
    );
    let rule = id::RULE;
    assert_eq!(
        problems(
            "crew.json",
            r#"[{"facts":["x"]},{"id":7,"facts":["x"]},{"id":"","facts":["x"]},{"id":"ok","facts":["x"]}]"#
        ),
        [
            format!("crew.json: [0].id: it is missing; it must be a text of {rule}"),
            format!("crew.json: [1].id: it is a number; it must be a text of {rule}"),
            format!("crew.json: [2].id: it is no id; an id has {rule}"),
        ]
    );
    assert_eq!(
        problems("crew.json", r#"[{"id":"a","facts":["x"]},{"id":"a","facts":["y"]}]"#),
        ["crew.json: a: this id is taken by a persona of crew.json"]
    );
    // The name of a single persona's file is its id.
    assert_eq!(
        problems("ada.json", r#"{"id":"bo","facts":["x"]}"#),
        ["ada.json: id: it is not known; allowed are name, traits, description, facts"]
    );
}

#[test]
fn a_card_stands_in_a_file_of_its_own() {
    let card = r#"{"spec":"chara_card_v2","data":{"name":"Ada","description":"proud","scenario":"x"}}"#;
    let registry = good("ada.json", card);
    let named = registry.get("ada").unwrap();
    assert_eq!((named.form, named.unused.as_slice()), (Form::CardV2, &["scenario".to_owned()][..]));
    let old = good("bo.json", r#"{"name":"Bo","description":"shy","first_mes":"hi"}"#);
    assert_eq!(old.get("bo").unwrap().form, Form::CardV1);
    assert_eq!(
        problems("crew.json", &format!(r#"{{"ada":{card}}}"#)),
        ["crew.json: ada: it is a character card; a card stands in a file of its own"]
    );
    assert!(problems("x.json", r#"{"spec":"chara_card_v2","data":{"name":"Ada"}}"#)[0].contains("only a name"));
}

#[test]
fn a_folder_is_read_whole_and_all_that_is_wrong_in_it_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    write("ada.txt", b"A pirate.");
    write("bo.toml", b"facts = ['keeps bees']");
    assert_eq!(ids(&Registry::load(folder.path()).unwrap()), ["ada", "bo"]);

    write("ada.toml", b"description = 'another'");
    write("cy.json", b"{");
    write("di.txt", b"ok\xff");
    let error = Registry::load(folder.path()).unwrap_err();
    let told = error.to_string();
    let path = |name: &str| folder.path().join(name).display().to_string();
    for expected in [
        "3 things are wrong\n".to_owned(),
        format!("{}: ada: this id is taken by a persona of {}", path("ada.txt"), path("ada.toml")),
        format!("{}: line 1: this is not JSON: EOF while parsing an object", path("cy.json")),
        format!("{}: it is not UTF-8 from byte 3 on", path("di.txt")),
    ] {
        assert!(told.contains(&expected), "{expected} is not in\n{told}");
    }
    let (registry, problems) = Registry::read(folder.path());
    assert_eq!((ids(&registry), problems), (vec!["ada", "bo"], error.problems));
}

#[test]
fn an_unknown_id_is_answered_with_those_that_are_near() {
    let registry = good("crew.toml", "[pirate]\nfacts=['x']\n[pilot]\nfacts=['x']\n[night-librarian]\nfacts=['x']\n");
    let told = |id: &str| registry.get(id).unwrap_err().to_string();
    assert_eq!(told("Pirat"), "no persona is called \"Pirat\"; nearest: pirate, pilot");
    // Not echoed.
    let long = "p".repeat(1 << 20);
    assert_eq!(told(&long), format!("no persona can be called that: an id has {}", id::RULE));
    assert_eq!(told("a\nb"), told(&long));
    let none = Registry::default().get("x").unwrap_err().to_string();
    assert_eq!(none, "no persona is known by an id: nothing was given as --personas");
}

#[test]
fn a_digest_changes_with_each_part_of_what_a_persona_says() {
    let digest_of = |persona: &Persona| {
        let json = serde_json::to_string(persona).unwrap();
        good("x.json", &json).get("x").unwrap().digest
    };
    let changes: [fn(&mut Persona); 7] = [
        |_| {},
        |ada| ada.name = None,
        |ada| ada.name = Some(String::new()),
        |ada| ada.traits.reverse(),
        |ada| ada.traits[0].polarity = Polarity::Low,
        |ada| ada.description.push('.'),
        |ada| ada.facts = vec!["owns a parrotfears geese".to_owned()],
    ];
    let digests = changes.map(|change| {
        let mut persona = ada();
        change(&mut persona);
        digest_of(&persona).to_string()
    });
    let mut distinct = digests.to_vec();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), changes.len());
}

#[test]
fn a_set_is_told_of_what_others_refuse() {
    let registry = good("crew.toml", "[a]\nfacts=['x']\n[b]\ndescription='long'\n");
    let error = registry.check(|persona| if persona.facts.is_empty() { Err("too long") } else { Ok(()) }).unwrap_err();
    assert_eq!(error.to_string(), "crew.toml: b: too long");
}

proptest! {
    #[test]
    fn what_is_written_as_json_is_read_as_the_same_persona(
        name in proptest::option::of("\\PC{0,12}"), description in "\\PC{1,40}", facts in proptest::collection::vec("\\PC{0,12}", 0..3),
    ) {
        let persona = Persona { name, description, facts, ..Persona::default() };
        let json = serde_json::to_string(&persona).unwrap();
        let usable = persona.profile().is_ok();
        let (registry, found) = read("x.json", &json);
        prop_assert_eq!(found.len(), usize::from(!usable));
        prop_assert_eq!(registry.iter().next().map(|named| &named.persona), usable.then_some(&persona));
    }
}
