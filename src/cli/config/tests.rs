//! What holds for every setting, whatever it is called, and the messages of a few.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use clap::CommandFactory as _;

use super::kind::Kind;
use super::*;
use crate::cli::Cli;
use crate::cli::config::key::Key;
use crate::cli::judge_args::JudgeArgs;

/// Values that some setting takes and others refuse, the empty one among them.
const POOL: &str = "true|false|0|1|2|256|4096|1000000|0.25|-0.5|-3|1e-3|inf|many|f32|int8|likelihood|label_slot|shared|\
     released|cyclic|all|none|contextual|auto|bare|space|smollm2-135m-instruct|models/judge.gguf|127.0.0.1:0|\
     [::1]:50051|redis://127.0.0.1:6379/0|http://127.0.0.1:4317|json|pretty||two words|a \"quote\"";

/// The command of the server, by itself.
pub fn server() -> Command {
    scope::prepare(serve::Args::augment_args(Command::new(SERVER)))
}

pub fn keys() -> Vec<Key> {
    Scope::of(&server()).keys
}

/// The pool's values that `key` takes, or those that it refuses.
pub fn values(key: &Key, right: bool) -> Vec<&'static str> {
    POOL.split('|').filter(|value| key.check(value.as_ref()).is_ok() == right).collect()
}

/// The settings of a server that is started like that, or what it would say.
pub fn settle(flags: &[String], variables: &[(String, String)]) -> Result<Settings, String> {
    let command = ["prism-judge", SERVER].map(str::to_owned);
    let args: Vec<OsString> = command.iter().chain(flags).map(OsString::from).collect();
    let environment = Environment::of(variables.iter().map(|(name, value)| (name.into(), value.into())));
    match parse(Cli::command(), &args, &environment) {
        Ok((_, settings)) => Ok(settings),
        Err(Refusal::Usage(error)) => Err(error.to_string()),
        Err(Refusal::Setting(error)) => Err(error.to_string()),
    }
}

/// A file that is gone when this is.
pub fn file_of(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

#[test]
fn every_flag_of_the_server_is_a_setting_that_takes_one_value() {
    let command = server();
    assert_eq!(command.get_arguments().count(), keys().len() + args::FLAGS.len(), "a flag without a long name");
    for arg in command.get_arguments().filter(|arg| !args::FLAGS.contains(&arg.get_long().unwrap())) {
        let name = arg.get_id();
        assert!(matches!(arg.get_action(), clap::ArgAction::Set), "{name} takes several values");
        assert_eq!(arg.get_value_delimiter(), None, "{name} takes several values");
        assert!(!arg.is_required_set(), "{name} may be in the file");
        assert_eq!(arg.get_env(), None, "{name}: its variable has the name of the flag, without being told");
        assert!(arg.get_help().is_some(), "{name} is not explained");
    }
}

#[test]
fn every_default_is_a_value_that_may_be_given() {
    for key in keys() {
        assert_eq!(key.default().map_or(Ok(()), |value| key.check(value)), Ok(()), "{}", key.word());
    }
}

#[test]
fn every_setting_has_a_right_value_and_says_of_a_wrong_one_what_is_allowed() {
    for key in keys() {
        assert!(!values(&key, true).is_empty(), "{}: add a value to the pool", key.word());
        for wrong in values(&key, false) {
            let reason = key.check(wrong.as_ref()).unwrap_err();
            // What a parser of its own says is its own.
            let own = matches!(key.kind(), Kind::Text | Kind::Own) && !reason.is_empty();
            assert!(own || reason.starts_with("it must"), "{}={wrong}: {reason}", key.word());
        }
    }
}

#[test]
fn no_setting_has_a_name_that_kubernetes_gives_to_services() {
    for key in keys() {
        let variable = (OsString::from(key.variable()), OsString::from("tcp://10.0.0.1:1"));
        // With no setting known, it is refused if it is not taken for a Service's.
        let found = Environment::of([variable]).read(&[], true);
        assert_eq!(found.problems.len(), 1, "{}", key.variable());
    }
}

#[test]
fn other_subcommands_take_the_settings_of_the_judge_from_the_environment() {
    let command = scope::prepare(Cli::command());
    let judge = JudgeArgs::augment_args(Command::new("judge"));
    let judge: Vec<&str> = judge.get_arguments().map(|arg| arg.get_id().as_str()).collect();
    for (names, expected) in [
        (&["score", "explain", "demo", "bench", "replay", "debug-score", "debug-prompts"][..], &judge[..]),
        // A --model alone is another flag.
        (&["models", "config", "keys", "debug-prefill", "debug-passes"][..], &[][..]),
    ] {
        for name in names {
            let scope = Scope::of(command.find_subcommand(name).unwrap());
            assert_eq!(scope.keys.iter().map(Key::word).collect::<Vec<_>>(), expected, "{name}");
        }
    }
}

#[test]
fn a_file_with_many_mistakes_gets_one_answer_that_names_them_in_their_order() {
    let text = "chunk_token = 12\nkv_cache_mb = \"many\"\n\nmodel = 3\nlikelihood_t = -1\nlayout = \"sharp\"\n\
                chunk-tokens = 5\nbatch_delay_ms = [1]\nthreads = 1.5\npersona_block = \"true\"\n\
                label_spaces = 1979-05-27\n[queue_tokens]\nguard = 5\n";
    let error = parse_file("judge.toml", text).unwrap_err().to_string();
    let expected = [
        "11 settings are wrong",
        "  judge.toml:1: there is no key chunk_token; nearest: chunk_tokens",
        "  judge.toml:2: kv_cache_mb = \"many\" (a text): it must be a whole number from 1 to 1048576",
        "  judge.toml:4: model = 3 (a whole number): it must be a text in quotes",
        "  judge.toml:5: likelihood_t = -1 (a whole number): it must be a number above zero, for example 0.05",
        "  judge.toml:6: layout = \"sharp\" (a text): it must be one of: shared, released",
        "  judge.toml:7: there is no key chunk-tokens; nearest: chunk_tokens",
        "  judge.toml:8: batch_delay_ms = [...] (a list): it must be a whole number from 0 to 10000",
        "  judge.toml:9: threads = 1.5 (a number with a fraction): it must be a whole number",
        "  judge.toml:10: persona_block = \"true\" (a text): it must be true or false",
        "  judge.toml:11: label_spaces = 1979-05-27 (a date or a time): it must be a text in quotes",
        "  judge.toml:12: queue_tokens is a table, but keys stand at the top, without sections; write queue_tokens_guard",
    ];
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines.len(), expected.len(), "{error}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected), "{expected}\n{error}");
    }
}

#[test]
fn a_file_that_is_no_toml_is_told_by_its_lines_and_shows_none_of_them() {
    let text = "threads = 2\nmodel = \"hunter2\nlayout = shared\nthreads = 3\n";
    let error = parse_file("judge.toml", text).unwrap_err().to_string();
    assert!(error.contains("judge.toml:2: ") && error.contains("judge.toml:3: "), "{error}");
    assert!(!error.contains("hunter2"), "{error}");
}

#[test]
fn numbers_are_read_as_toml_writes_them() {
    let found = file::parse("x", "chunk_tokens = 0x1_00\nkv_cache_mb = 1_024\nlikelihood_t = 1\n", &keys());
    assert_eq!(found.problems, Vec::<String>::new());
    let value = |word: &str| found.values[word].to_str().unwrap().to_owned();
    assert_eq!([value("chunk_tokens"), value("kv_cache_mb"), value("likelihood_t")], ["256", "1024", "1"]);
}

#[test]
fn a_switch_that_the_file_turns_on_can_be_turned_off() {
    let file = file_of("reflection = true\n");
    let config = format!("--config={}", file.path().display());
    for (flag, variable, expected) in [
        (None, "", "reflection = true  # file "),
        (None, "false", "reflection = false  # environment PRISM_JUDGE_REFLECTION\n"),
        (Some("--reflection=false"), "true", "reflection = false  # flag --reflection\n"),
        (Some("--reflection"), "false", "reflection = true  # flag --reflection\n"),
    ] {
        let flags: Vec<String> = flag.into_iter().map(str::to_owned).chain([config.clone()]).collect();
        let printed = settle(&flags, &[("PRISM_JUDGE_REFLECTION".to_owned(), variable.to_owned())]).unwrap().to_toml();
        assert!(printed.contains(expected), "{printed}");
    }
}

#[test]
fn a_secret_is_not_shown_where_its_value_is_wrong_either() {
    let long = |text: &str| match text.len() {
        20.. => Ok(text.to_owned()),
        _ => Err(format!("it must be longer than {text}")),
    };
    let key = Key::of(&clap::Arg::new("token").long("token").hide_env_values(true).value_parser(long)).unwrap();
    let found = file::parse("x", "token = \"hunter2\"", std::slice::from_ref(&key));
    assert_eq!(found.problems, ["x:1: token = \"[redacted]\" (a text): it must be longer than [redacted]"]);
    assert_eq!(key.shown("a secret that is long enough".as_ref()), "[redacted]");
    assert_eq!(key.shown("redis://:hunter2@host".as_ref()), "redis://[redacted]@host");
    assert!(key.check("[redacted]".as_ref()).unwrap_err().contains("put it in place of"));
}

#[test]
#[cfg(unix)]
fn a_path_that_is_not_utf_8_holds_but_cannot_be_printed_as_a_file() {
    use std::os::unix::ffi::OsStringExt as _;
    let path = || OsString::from_vec(b"wording-\xff.toml".to_vec());
    let environment = Environment::of([("PRISM_JUDGE_LABEL_SPACES".into(), path())]);
    let args = ["prism-judge".into(), SERVER.into()];
    let (matches, settings) = parse(Cli::command(), &args, &environment).map_err(|_| "refused").unwrap();
    let matches = matches.subcommand_matches(SERVER).unwrap();
    assert_eq!(matches.get_one::<std::path::PathBuf>("label_spaces").unwrap().as_os_str(), path());
    let printed = settings.to_toml();
    assert!(printed.contains("\n# label_spaces = \"wording-\u{fffd}.toml\"  # environment "), "{printed}");
    let environment = Environment::of([("PRISM_JUDGE_LAYOUT".into(), path())]);
    let refusal = parse(Cli::command(), &args, &environment).err();
    assert!(matches!(&refusal, Some(Refusal::Setting(error)) if error.to_string().contains("PRISM_JUDGE_LAYOUT=")));
}
