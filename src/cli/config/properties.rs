//! Any settings from any sources: what holds, and what is told of wrong ones.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use proptest::sample::select;

use super::key::Key;
use super::parse_file;
use super::redact::is_redacted;
use super::tests::{file_of, keys, settle, values};

/// Whether a flag, a variable and the file give a setting, and what they would give.
type Chosen = (Key, [bool; 3], [&'static str; 3]);

/// A choice for each setting, of right or of wrong values.
fn choices(right: bool) -> impl Strategy<Value = Vec<Chosen>> {
    let choice = |key: Key| {
        let value = select(values(&key, right));
        (Just(key), any::<[bool; 3]>(), [value.clone(), value.clone(), value])
    };
    let keys = keys().into_iter().filter(|key| !values(key, right).is_empty());
    keys.map(choice).collect::<Vec<_>>()
}

/// The sources that give what is chosen. An empty variable gives nothing.
#[derive(Debug, Default)]
struct Given {
    flags: Vec<String>,
    variables: Vec<(String, String)>,
    file: String,
}

impl Given {
    fn of(chosen: &[Chosen]) -> Self {
        let mut given = Self::default();
        for (key, [by_flag, by_variable, by_file], [flag, variable, file]) in chosen {
            if *by_flag {
                given.flags.push(key.flag(flag.as_ref()).into_string().unwrap());
            }
            if *by_variable {
                given.variables.push((key.variable(), (*variable).to_owned()));
            }
            if *by_file {
                given.file += &format!("{} = {}\n", key.word(), key.kind().literal(file));
            }
        }
        given
    }
}

/// The value of a line of a file.
fn value(literal: &str) -> toml::Value {
    toml::from_str::<toml::Table>(&format!("x = {literal}")).unwrap()["x"].clone()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_flag_goes_before_a_variable_that_before_the_file_and_that_before_the_default(chosen in choices(true)) {
        let Given { mut flags, mut variables, file } = Given::of(&chosen);
        let file = file_of(&file);
        let path = file.path().to_str().unwrap().to_owned();
        // Either way of naming the file.
        match flags.len() % 2 {
            0 => flags.push(format!("--config={path}")),
            _ => variables.push(("PRISM_JUDGE_CONFIG".to_owned(), path)),
        }
        let text = settle(&flags, &variables).unwrap().to_toml();
        let printed: toml::Table = toml::from_str(&text).unwrap();
        for (key, [by_flag, by_variable, by_file], [flag, variable, file]) in &chosen {
            let expected = match (by_flag, *by_variable && !variable.is_empty(), by_file) {
                (true, _, _) => Some(*flag),
                (_, true, _) => Some(*variable),
                (_, _, true) => Some(*file),
                _ => key.default().map(|value| value.to_str().unwrap()),
            };
            let expected = expected.map(|text| value(&key.kind().literal(&key.shown(text.as_ref()))));
            prop_assert_eq!(printed.get(key.word()), expected.as_ref(), "{}", key.word());
        }
        // A file that gives the same, unless a secret is missing in it.
        if !is_redacted(&text) {
            let (_, again) = parse_file("again.toml", &text).unwrap();
            prop_assert_eq!(toml::from_str::<toml::Table>(&again.to_toml()).unwrap(), printed);
        }
    }

    #[test]
    fn every_wrong_value_is_named_whatever_gives_it(chosen in choices(false)) {
        let mut given = Given::of(&chosen);
        given.variables.retain(|(_, value)| !value.is_empty());
        let file = file_of(&given.file);
        let wrong = given.flags.len() + given.variables.len() + given.file.lines().count();
        given.flags.push(format!("--config={}", file.path().display()));
        let answer = settle(&given.flags, &given.variables);
        if wrong == 0 {
            prop_assert!(answer.is_ok());
            return Ok(());
        }
        let error = answer.unwrap_err();
        prop_assert!(wrong == 1 || error.starts_with(&format!("{wrong} settings are wrong\n")), "{}", error);
        for (key, [by_flag, by_variable, by_file], [_, variable, _]) in &chosen {
            for (is_given, place) in [
                (*by_flag, format!(" for '--{}", key.long())),
                (*by_variable && !variable.is_empty(), format!("{}=", key.variable())),
                (*by_file, format!(": {} = ", key.word())),
            ] {
                prop_assert!(!is_given || error.contains(&place), "{} is not in\n{}", place, error);
            }
        }
    }

    #[test]
    fn no_text_is_too_strange_for_a_file(text in "\\PC*|([a-z_]{1,12} = [-0-9a-z.\"'\\[\\]{}:#]{0,12}\n){1,3}") {
        // Taken or refused, but there is an answer.
        let _ = parse_file("any.toml", &text);
    }
}
