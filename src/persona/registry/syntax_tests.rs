#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fmt::Write as _;

use super::*;

const ALL: [Syntax; 3] = [Syntax::Toml, Syntax::Yaml, Syntax::Json];

fn text(text: &str) -> Node {
    Node::Text(text.to_owned())
}

fn table(fields: &[(&str, Node)]) -> Node {
    Node::Table(fields.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect())
}

#[test]
fn the_three_forms_say_the_same() {
    let expected = table(&[
        ("name", text("Ada")),
        ("facts", Node::List(vec![text("a"), text("b: c"), table(&[])])),
        ("inner", table(&[("x", text("two\nlines")), ("y", Node::List(vec![]))])),
    ]);
    for (syntax, file) in [
        (Syntax::Toml, "name = 'Ada'\nfacts = ['a', 'b: c', {}]\n[inner]\nx = \"two\\nlines\"\ny = []\n"),
        (
            Syntax::Yaml,
            "# a comment\nname: Ada\nfacts: [a, 'b: c', {}]\ninner:\n  x: |-\n    two\n    lines\n  y: []\n",
        ),
        (Syntax::Json, r#"{"name": "Ada", "facts": ["a", "b: c", {}], "inner": {"x": "two\nlines", "y": []}}"#),
    ] {
        assert_eq!(syntax.parse(file).unwrap(), expected, "{syntax:?}");
    }
}

#[test]
fn a_plain_word_of_yaml_is_the_word_that_stands_there() {
    for word in ["no", "No", "off", "on", "yes", "y", "true", "7", "007", "1e3", ".inf", "2001-01-01", "12:30:45", "~a"]
    {
        assert_eq!(Syntax::Yaml.parse(&format!("name: {word}")).unwrap(), table(&[("name", text(word))]), "{word}");
    }
    for (word, value) in [("", Node::Nothing), ("~", Node::Nothing), ("null", Node::Nothing), ("'null'", text("null"))]
    {
        assert_eq!(Syntax::Yaml.parse(&format!("name: {word}")).unwrap(), table(&[("name", value)]), "{word}");
    }
}

#[test]
fn a_value_of_toml_or_json_that_is_no_text_keeps_its_kind() {
    let expected = table(&[("a", Node::Number), ("b", Node::Number), ("c", Node::Boolean)]);
    assert_eq!(Syntax::Toml.parse("a = 7\nb = 0.5\nc = true").unwrap(), expected);
    assert_eq!(Syntax::Json.parse(r#"{"a": -7, "b": 1e9, "c": false}"#).unwrap(), expected);
    assert_eq!(Syntax::Json.parse("null").unwrap(), Node::Nothing);
}

#[test]
fn a_date_of_toml_is_told_from_a_text() {
    assert_eq!(Syntax::Toml.parse("name = 2001-01-01").unwrap(), table(&[("name", Node::Date)]));
}

#[test]
fn a_key_that_stands_twice_is_an_error_in_every_form() {
    for (syntax, file, line) in [
        (Syntax::Toml, "a = '1'\na = '2'", "line 2"),
        (Syntax::Yaml, "a: 1\na: 2", "line 2"),
        (Syntax::Json, "{\"a\": 1,\n\"a\": 2}", "line 2"),
    ] {
        let told = syntax.parse(file).unwrap_err();
        assert!(told.starts_with(line), "{told}");
    }
}

#[test]
fn what_is_broken_is_told_by_its_line_and_not_by_its_text() {
    for (syntax, file, line) in [
        (Syntax::Toml, "name = 'x'\nShe has a secret", 2),
        (Syntax::Toml, "name = 'x'\ndescription = 'secret", 2),
        (Syntax::Yaml, "name: x\ndescription: 'a secret\n", 2),
        (Syntax::Yaml, "name: x\ndescription: secret: secret\n", 2),
        (Syntax::Yaml, "name: x\ndescription: !secret x\n", 2),
        (Syntax::Yaml, "name: x\n--- \nsecret: x\n", 2),
        (Syntax::Yaml, "name: x\nshe said: a\nshe said: secret\n", 3),
        (Syntax::Json, "{\"name\": \"x\",\n\"secret", 2),
        (Syntax::Json, "{\"name\": \"x\",\n\"a secret\": secret}", 2),
        (Syntax::Json, "{\"name\": \"x\",\n\"a secret\": 1, \"a secret\": 2}", 2),
    ] {
        let told = syntax.parse(file).unwrap_err();
        assert!(told.contains("line ") && !told.contains("secret") && !told.contains('\n'), "{syntax:?}: {told}");
        let number: usize = told.trim_start_matches("line ").split(':').next().unwrap().parse().unwrap();
        // Where something is missing, parsers name the place at which they noticed.
        assert!((line..=line + 1).contains(&number), "{syntax:?}: {told}");
    }
}

#[test]
fn yaml_refuses_what_makes_a_small_file_large() {
    let mut bomb = "a0: &a0 x\n".to_owned();
    for level in 1..10 {
        let before = format!("*a{}, ", level - 1).repeat(10);
        writeln!(bomb, "a{level}: &a{level} [{before}]").unwrap();
    }
    for (file, told) in [
        (bomb.as_str(), "aliases (`*name`) are not taken"),
        ("a: &a [*a]", "aliases (`*name`) are not taken"),
        ("a: *b", "aliases (`*name`) are not taken"),
        ("a: !name x", "tags (`!name`) are not taken"),
        ("a: 1\n---\nb: 2", "more than one document"),
    ] {
        let error = Syntax::Yaml.parse(file).unwrap_err();
        assert!(error.contains(told), "{file}: {error}");
    }
}

#[test]
fn what_is_nested_without_an_end_is_refused_by_all() {
    let deep = 100_000;
    for (syntax, open) in [(Syntax::Json, "["), (Syntax::Yaml, "["), (Syntax::Yaml, "- "), (Syntax::Json, "{\"a\":")] {
        assert!(syntax.parse(&open.repeat(deep)).is_err(), "{syntax:?} {open}");
    }
    assert!(Syntax::Toml.parse(&format!("a = {}", "[".repeat(deep))).is_err());
    assert!(Syntax::Toml.parse(&format!("a = {}{}", "[".repeat(deep), "]".repeat(deep))).is_err());
}

#[test]
fn an_empty_file_says_nothing() {
    for (syntax, file) in
        [(Syntax::Toml, ""), (Syntax::Yaml, ""), (Syntax::Yaml, "# only a comment\n"), (Syntax::Json, "{}")]
    {
        assert!(syntax.parse(file).unwrap().is_empty(), "{syntax:?}: {file}");
    }
    assert!(ALL.iter().all(|syntax| syntax.parse("{").is_err()));
}
