#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::persona::{Persona, Polarity, Trait};

fn spaces_of(persona: &str) -> [LabelSpace; 3] {
    let profile = serde_json::from_str::<Persona>(persona).unwrap().profile().unwrap();
    LabelSpaces::load(None).unwrap().for_profile(&profile).unwrap()
}

fn problems(text: &str) -> Vec<String> {
    match LabelSpaces::parse("the file", text) {
        Err(LabelSpaceError::Invalid { problems, .. }) => problems,
        other => panic!("{other:?}"),
    }
}

fn built_in(dimension: Dimension, trait_: Trait, polarity: Polarity, key: &str) -> String {
    let table: toml::Table = BUILT_IN.parse().unwrap();
    table[dimension.name()][trait_.name()][polarity.name()][key].as_str().unwrap().to_owned()
}

fn persona(trait_: Trait, polarity: Polarity) -> String {
    let table: toml::Table = BUILT_IN.parse().unwrap();
    table["traits"][trait_.name()][polarity.name()]["persona"].as_str().unwrap().to_owned()
}

#[test]
fn a_trait_describes_its_pole_as_a_and_the_opposite_pole_as_c() {
    for dimension in Dimension::ALL {
        for trait_ in Trait::ALL {
            for polarity in Polarity::ALL {
                let json = format!(r#"{{"traits":[{{"trait":"{trait_}","polarity":"{polarity}"}}]}}"#);
                let space = &spaces_of(&json)[dimension as usize];
                let text = |polarity, key| built_in(dimension, trait_, polarity, key);
                let sentence = |polarity| format!("The response {}.", text(polarity, "description"));
                assert_eq!(space.description(Label::Aligned), sentence(polarity));
                assert_eq!(space.description(Label::Contradictory), sentence(polarity.opposite()));
                assert_eq!(space.note, [polarity, polarity.opposite()].map(|polarity| text(polarity, "emphasis")));
                assert_eq!(space.role, [polarity, polarity.opposite()].map(|polarity| persona(trait_, polarity)));
            }
        }
    }
}

#[test]
fn all_texts_of_one_kind_differ() {
    for key in ["description", "emphasis"] {
        let mut texts: Vec<String> = Vec::new();
        for dimension in Dimension::ALL {
            for trait_ in Trait::ALL {
                texts.extend(Polarity::ALL.map(|polarity| built_in(dimension, trait_, polarity, key)));
            }
        }
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), 30, "{key}");
    }
}

#[test]
fn several_traits_stand_in_one_description() {
    let [task, ..] =
        spaces_of(r#"{"traits":[{"trait":"openness","polarity":"high"},{"trait":"neuroticism","polarity":"low"}]}"#);
    let text = |trait_, polarity| built_in(Dimension::TaskFraming, trait_, polarity, "description");
    assert_eq!(
        task.description(Label::Aligned),
        format!(
            "The response {}; it also {}.",
            text(Trait::Openness, Polarity::High),
            text(Trait::Neuroticism, Polarity::Low)
        )
    );
    assert_eq!(
        task.description(Label::Contradictory),
        format!(
            "The response {}; it also {}.",
            text(Trait::Openness, Polarity::Low),
            text(Trait::Neuroticism, Polarity::High)
        )
    );
}

#[test]
fn a_character_is_cued_by_its_sections_and_only_in_label_a() {
    let [task, stance, style] =
        spaces_of(r#"{"name":"Tom","description":"Personality: gruff but fair\nDialogue Style: short growls"}"#);
    for (space, cue) in [(&task, "gruff but fair"), (&stance, "gruff but fair"), (&style, "short growls")] {
        assert!(space.description(Label::Aligned).contains(cue));
        for label in [Label::Indeterminate, Label::Contradictory] {
            assert!(!space.description(label).contains(cue));
        }
        assert!(space.role[0].starts_with("You are Tom. "));
        assert!(space.role[0].contains("Personality: gruff but fair\nDialogue Style: short growls"));
        assert!(!space.role[1].contains("Tom") && !space.role[1].contains("gruff"));
    }
}

#[test]
fn a_label_cuts_a_long_cue_and_the_role_play_does_not() {
    let long = "é".repeat(1000);
    let [task, _, style] = spaces_of(&format!(r#"{{"description":"{long}"}}"#));
    let count = |text: &str| text.chars().filter(|c| *c == 'é').count();
    assert_eq!(count(task.description(Label::Aligned)), 360);
    assert_eq!(count(style.description(Label::Aligned)), 380);
    assert_eq!(count(&task.role[0]), 1000);
}

#[test]
fn traits_and_a_character_are_both_in_the_labels_and_the_name_stands_once() {
    let [task, ..] = spaces_of(
        r#"{"name":"Tom","traits":[{"trait":"openness","polarity":"high"}],"description":"Personality: gruff"}"#,
    );
    let text = |polarity| built_in(Dimension::TaskFraming, Trait::Openness, polarity, "description");
    assert!(task.description(Label::Aligned).contains(&text(Polarity::High)));
    assert!(task.description(Label::Aligned).contains("gruff"));
    assert!(task.description(Label::Contradictory).contains(&text(Polarity::Low)));
    assert_eq!(task.role[0].matches("Tom").count(), 1);
    assert_eq!(task.note[0], built_in(Dimension::TaskFraming, Trait::Openness, Polarity::High, "emphasis"));
}

#[test]
fn a_short_profile_stands_in_the_note_and_a_long_or_trait_bearing_one_in_the_system_turn() {
    let short = "I ride horses.";
    let long = "é".repeat(400);
    let traits = r#""traits":[{"trait":"openness","polarity":"high"}],"#;
    for (traits, profile, in_note) in [("", short, true), ("", long.as_str(), false), (traits, short, false)] {
        for space in spaces_of(&format!(r#"{{{traits}"description":"{profile}"}}"#)) {
            assert_eq!(space.note[0].contains(profile), in_note, "{}", space.note[0]);
            assert_eq!(space.role[0].contains(profile), !in_note, "{}", space.role[0]);
            assert!(!space.note[1].contains(profile) && !space.role[1].contains(profile));
            assert_ne!(space.note[0], space.note[1]);
        }
    }
}

#[test]
fn the_published_form_keeps_its_gloss_out_of_the_labels() {
    let plain = spaces_of(r#"{"traits":[{"trait":"openness","polarity":"high"}]}"#);
    assert_eq!(spaces_of(r#"{"description":"Big Five focus: Openness = high. You love novelty."}"#), plain);
}

#[test]
fn every_missing_and_unknown_key_is_named_with_its_path() {
    let text = BUILT_IN
        .replacen("released_key = \"agenda_pattern\"", "released_keys = \"agenda_pattern\"", 1)
        .replacen("[linguistic_style.neuroticism.low]", "[linguistic_style.neuroticism.lower]", 1)
        .replacen("cue_characters = 380", "cue_characters = 0", 1)
        .replacen("content_free = [", "content_free = 3 # [", 1);
    let found = problems(&text);
    for expected in [
        "`task_framing.released_key` is missing: give a text",
        "`task_framing.released_keys` is unknown: allowed here are name, released_key, question, cue_characters, \
         indeterminate, character, openness, conscientiousness, extraversion, agreeableness, neuroticism",
        "`linguistic_style.neuroticism.low` is missing: give a table",
        "`linguistic_style.neuroticism.lower` is unknown: allowed here are high, low",
        "`linguistic_style.cue_characters` must be an integer of at least 1, found 0",
        "`content_free` must be a list of at least one non-empty text",
    ] {
        assert!(found.iter().any(|problem| problem == expected), "{expected} not in {found:#?}");
    }
    assert_eq!(found.len(), 6, "{found:#?}");
}

#[test]
fn an_empty_file_names_every_top_key() {
    let found = problems("");
    for key in [
        "version",
        "content_free",
        "combine",
        "roleplay",
        "traits",
        "task_framing",
        "interpersonal_stance",
        "linguistic_style",
    ] {
        assert!(found.iter().any(|problem| problem.starts_with(&format!("`{key}` is missing"))), "{key}: {found:#?}");
    }
}

#[test]
fn another_version_is_refused() {
    let found = problems(&BUILT_IN.replacen("version = 1", "version = 2", 1));
    assert_eq!(found, ["`version` is 2: this build reads version 1"]);
}

#[test]
fn a_faulty_template_is_found_at_load() {
    let found =
        problems(&BUILT_IN.replacen("{{ traits }} {{ character }}", "{{ traits }} {{ charakter }}", 1).replacen(
            "of this profile: {{ cue }}",
            "of this profile: {{ cue",
            1,
        ));
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(found[0].starts_with("`combine.both` uses the unknown variable(s) charakter: allowed here are traits, "));
    assert!(found[1].starts_with("`task_framing.character.aligned`: "), "{}", found[1]);
}

#[test]
fn a_users_file_reproduces_full_sentences_byte_for_byte() {
    let text =
        BUILT_IN.replacen("The response {{ descriptions | join('; it also ') }}.", "{{ descriptions | join(' ') }}", 1);
    let description = built_in(Dimension::TaskFraming, Trait::Openness, Polarity::High, "description");
    let text = text.replacen(&description, "Two  spaces,\\na newline and {{ braces }}.\\n", 1);
    let spaces = LabelSpaces::parse("the file", &text).unwrap();
    let persona = r#"{"traits":[{"trait":"openness","polarity":"high"}]}"#;
    let profile = serde_json::from_str::<Persona>(persona).unwrap().profile().unwrap();
    let [task, ..] = spaces.for_profile(&profile).unwrap();
    assert_eq!(task.description(Label::Aligned), "Two  spaces,\na newline and {{ braces }}.\n");
    assert_ne!(spaces.digest(), LabelSpaces::load(None).unwrap().digest());
}
