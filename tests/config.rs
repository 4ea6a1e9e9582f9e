//! How settings get into the server: the file, the environment and flags, `--print-config`, and `config check`.
//! What holds for any setting is tested beside the code (src/cli/config); here the program answers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Output;

use support::cli::{binary, run, stderr};

/// Runs `args` with variables set.
fn run_with(args: &[&str], variables: &[(&str, &str)]) -> Output {
    binary(args).envs(variables.iter().copied()).output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// What is told of a setting that is wrong.
fn refusal(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(64), "{}", stderr(output));
    assert!(output.stdout.is_empty());
    stderr(output)
}

struct File {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl File {
    fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("judge.toml");
        std::fs::write(&path, text).unwrap();
        Self { _folder: folder, path }
    }

    fn path(&self) -> &str {
        self.path.to_str().unwrap()
    }
}

/// The settings that a printed file sets, without their sources.
fn table(printed: &str) -> toml::Table {
    toml::from_str(printed).unwrap()
}

/// Every key that a printed file sets or leaves out, as a flag.
fn flags(printed: &str) -> BTreeSet<String> {
    let key = |line: &str| {
        let (word, _) = line.trim_start_matches("# ").split_once(" = ")?;
        let is_key = !word.is_empty() && word.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'));
        is_key.then(|| format!("--{}", word.replace('_', "-")))
    };
    printed.lines().filter_map(key).collect()
}

#[test]
fn what_holds_is_printed_with_where_it_is_from_and_can_be_fed_back() {
    let file = File::new("chunk_tokens = 128\nkv_cache_mb = 64\nlayout = \"released\"\nmodel = 'a \"b\".gguf'\n");
    let variables =
        [("PRISM_JUDGE_CONFIG", file.path()), ("PRISM_JUDGE_KV_CACHE_MB", "65"), ("PRISM_JUDGE_THREADS", "")];
    // Nothing is opened: this port is taken.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap().to_string();
    let args = ["serve", "--print-config", "--listen", &listen, "--likelihood-b", "-0.5"];
    let printed = stdout(&run_with(&args, &variables));
    for line in [
        format!("listen = \"{listen}\"  # flag --listen"),
        "likelihood_b = -0.5  # flag --likelihood-b".to_owned(),
        "kv_cache_mb = 65  # environment PRISM_JUDGE_KV_CACHE_MB".to_owned(),
        format!("chunk_tokens = 128  # file {}", file.path()),
        "batch_delay_ms = 0  # default".to_owned(),
        "# threads =  # not set: Threads that run the model; left out: as many as this process may use".to_owned(),
    ] {
        assert!(printed.lines().any(|printed| printed == line), "{line} is not in\n{printed}");
    }
    let again = File::new(&printed);
    let reprinted = stdout(&run(&["serve", "--print-config", "--config", again.path()], b""));
    assert_eq!(table(&reprinted), table(&printed));
    assert!(!reprinted.lines().any(|line| line.ends_with("# default")), "{reprinted}");
    assert_eq!(flags(&reprinted), flags(&printed));
}

#[test]
fn the_level_that_rust_log_sets_is_printed_as_the_one_that_holds() {
    let args = ["serve", "--print-config", "--log-level", "warn"];
    let printed = stdout(&run_with(&args, &[("RUST_LOG", "info,h2=debug"), ("PRISM_JUDGE_LOG_LEVEL", "error")]));
    assert!(printed.contains("\nlog_level = \"info,h2=debug\"  # environment RUST_LOG\n"), "{printed}");
    assert_eq!(printed.matches("log_level").count(), 1, "{printed}");
    assert!(stdout(&run_with(&args, &[("RUST_LOG", "")])).contains("\nlog_level = \"warn\"  # flag --log-level\n"));
    let told = refusal(&run_with(&args, &[("RUST_LOG", "loud")]));
    assert!(told.contains("RUST_LOG is \"loud\": "), "{told}");
}

#[test]
fn every_setting_can_be_a_variable() {
    let printed = table(&stdout(&run(&["serve", "--print-config"], b"")));
    let text = |value: &toml::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let variables: Vec<(String, String)> =
        printed.iter().map(|(key, value)| (format!("PRISM_JUDGE_{}", key.to_uppercase()), text(value))).collect();
    let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (&**name, &**value)).collect();
    let reprinted = stdout(&run_with(&["serve", "--print-config"], &variables));
    assert_eq!(table(&reprinted), printed);
    for key in printed.keys() {
        assert!(
            reprinted.contains(&format!("# environment PRISM_JUDGE_{}\n", key.to_uppercase())),
            "{key}\n{reprinted}"
        );
    }
}

#[test]
fn everything_that_is_wrong_is_told_at_once_before_anything_starts() {
    let file = File::new("kv_cache_mb = 0\nchunk_token = 5\n");
    let args = ["serve", "--config", file.path(), "--chunk-tokens", "-5", "--layout", "sharp"];
    let told = refusal(&run_with(&args, &[("PRISM_JUDGE_BATCH_DELAY_MS", "soon"), ("PRISM_JUDGE_THREAD", "2")]));
    for expected in [
        "error: 6 settings are wrong",
        "invalid value '-5' for '--chunk-tokens <N>': it must be a whole number from 1 to 65536",
        "invalid value 'sharp' for '--layout <LAYOUT>': it must be one of: shared, released",
        "PRISM_JUDGE_BATCH_DELAY_MS=soon: it must be a whole number from 0 to 10000",
        "PRISM_JUDGE_THREAD is no variable of the server; nearest: PRISM_JUDGE_THREADS",
        "judge.toml:1: kv_cache_mb = 0 (a whole number): it must be a whole number from 1 to",
        "judge.toml:2: there is no key chunk_token; nearest: chunk_tokens",
    ] {
        assert!(told.contains(expected), "{expected} is not in\n{told}");
    }
    assert_eq!(told.lines().count(), 7, "{told}");
}

#[test]
fn help_shows_what_is_allowed_whatever_else_is_wrong() {
    let args = ["serve", "--chunk-tokens", "0", "--help"];
    let help = stdout(&run_with(&args, &[("PRISM_JUDGE_LAYOUT", "sharp"), ("PRISM_JUDGE_CONFIG", "missing.toml")]));
    for expected in ["[possible values: true, false]", "- contextual: ", "[default: 256]", "PRISM_JUDGE_SOME_KEY"] {
        assert!(help.contains(expected), "{expected} is not in\n{help}");
    }
}

#[test]
fn a_number_below_zero_is_a_wrong_value_and_no_flag() {
    for args in [
        &["serve", "--kv-cache-mb", "-1"][..],
        &["serve", "--threads", "-1"],
        &["score", "--threads", "-1"],
        &["bench", "--limit", "-1", "rows.jsonl"],
    ] {
        let told = refusal(&run(args, b""));
        assert!(told.contains("invalid value '-1' for '--"), "{args:?}: {told}");
    }
}

#[test]
fn settings_that_do_not_go_together_are_named_whatever_gives_them() {
    let file = File::new("max_batch_tokens = 256\n");
    let variables = [("PRISM_JUDGE_CHUNK_TOKENS", "512"), ("PRISM_JUDGE_CONFIG", file.path())];
    for args in [&["serve"][..], &["serve", "--print-config"]] {
        let told = refusal(&run_with(args, &variables));
        assert!(told.contains("--chunk-tokens 512 is more than --max-batch-tokens 256"), "{told}");
    }
}

#[test]
fn what_kubernetes_and_the_cache_of_models_need_is_no_wrong_setting() {
    let others = [
        ("PRISM_JUDGE_SERVICE_HOST", "10.96.0.7"),
        ("PRISM_JUDGE_SERVICE_PORT", "50051"),
        ("PRISM_JUDGE_SERVICE_PORT_GRPC", "50051"),
        ("PRISM_JUDGE_PORT", "tcp://10.96.0.7:50051"),
        ("PRISM_JUDGE_PORT_50051_TCP", "tcp://10.96.0.7:50051"),
        ("PRISM_JUDGE_PORT_50051_TCP_PROTO", "tcp"),
        ("PRISM_JUDGE_PORT_50051_TCP_PORT", "50051"),
        ("PRISM_JUDGE_PORT_50051_TCP_ADDR", "10.96.0.7"),
        ("PRISM_JUDGE_CACHE", "nowhere"),
        ("PRISM_JUDGE_URL", "http://127.0.0.1:8080"),
        ("PRISM_JUDGE_PERSONA", "mira"),
        ("PRISM_JUDGE_TIMEOUT", "5"),
        ("PRISM_JUDGE_NO_SUCH_THING", ""),
    ];
    let with = stdout(&run_with(&["serve", "--print-config"], &others));
    assert_eq!(with, stdout(&run(&["serve", "--print-config"], b"")));
    // Other subcommands run beside a server whose variables they do not know.
    let told = run_with(&["score", "no-such-file"], &[("PRISM_JUDGE_LISTEN", "nowhere"), ("PRISM_JUDGE_X", "1")]);
    assert_eq!(told.status.code(), Some(1), "{}", stderr(&told));
}

#[test]
fn a_secret_is_neither_printed_nor_lost_in_silence() {
    let login = "redis://judge:hunter2@host/model.gguf";
    let printed = stdout(&run(&["serve", "--print-config", "--model", login], b""));
    assert!(printed.contains("redis://[redacted]@host/model.gguf"), "{printed}");
    assert!(!printed.contains("hunter2"), "{printed}");
    let redis = |url: &'static str| [("PRISM_JUDGE_REDIS_URL", url), ("PRISM_JUDGE_REDIS_SECRET_FILE", "secret")];
    for (url, shown) in [
        ("rediss://hunter2:hunter2@host:6380/1", "rediss://[redacted]@host:6380/1"),
        ("redis://host?x=hunter2", "redis://host?[redacted]"),
        ("unix:///run/redis.sock?db=1&user=hunter2&pass=hunter2", "unix:///run/redis.sock?[redacted]"),
    ] {
        let line = format!("redis_url = \"{shown}\"  # environment PRISM_JUDGE_REDIS_URL\n");
        let answer = stdout(&run_with(&["serve", "--print-config"], &redis(url)));
        assert!(answer.contains(&line) && !answer.contains("hunter2"), "{answer}");
    }
    let again = File::new(&printed);
    let told = refusal(&run(&["serve", "--config", again.path()], b""));
    assert!(told.contains("model = ") && told.contains("put it in place of [redacted]"), "{told}");
    // Nor is it shown by mistakes in the file.
    for text in [
        "model = \"redis://:hunter2@host\" \"\"",
        "chunk_tokens = \"redis://:hunter2@host\"",
        "modle = \"hunter2\"",
        "redis_url = \"redis://:hunter2\"",
    ] {
        let told = refusal(&run(&["serve", "--config", File::new(text).path()], b""));
        assert!(!told.contains("hunter2"), "{told}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_a_wrong_setting() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.toml");
    let missing = missing.to_str().unwrap();
    for args in [&["serve", "--config", missing][..], &["config", "check", missing]] {
        assert!(refusal(&run(args, b"")).contains("missing.toml"), "{args:?}");
    }
    assert!(refusal(&run_with(&["serve"], &[("PRISM_JUDGE_CONFIG", missing)])).contains("missing.toml"));
    let folder = folder.path().to_str().unwrap();
    assert!(refusal(&run(&["config", "check", folder], b"")).contains(folder));
    // Nobody waits for the end of what has none.
    assert!(refusal(&run(&["config", "check", "/dev/zero"], b"")).contains("longer than"));
}

#[test]
fn a_check_names_every_wrong_key_of_the_file_and_of_nothing_else() {
    let file = File::new("chunk_tokens = 0\nlayout = 1\n");
    let told = refusal(&run(&["config", "check", file.path()], b""));
    assert!(told.contains("2 settings are wrong"), "{told}");
    assert!(told.contains("judge.toml:1: chunk_tokens = 0") && told.contains("judge.toml:2: layout = 1"), "{told}");
    for (text, expected) in [
        ("chunk_tokens = 512\nmax_batch_tokens = 256\n", "--chunk-tokens 512 is more than --max-batch-tokens 256"),
        ("model = \"smolm2\"\n", "smollm2-135m-instruct"),
    ] {
        let told = refusal(&run(&["config", "check", File::new(text).path()], b""));
        assert!(told.contains(expected) && told.contains("judge.toml: "), "{told}");
    }
    // A right file stays right whatever is around it: no variable has a part in it, and the model may be elsewhere.
    let file = File::new("chunk_tokens = 512\nmodel = \"/models/elsewhere.gguf\"\n");
    let around = [("PRISM_JUDGE_MAX_BATCH_TOKENS", "256"), ("PRISM_JUDGE_THREADS", "none"), ("PRISM_JUDGE_CACHE", "")];
    let answer = stdout(&run_with(&["config", "check", file.path()], &around));
    assert!(answer.ends_with("judge.toml: all is well (keys: 2)\n"), "{answer}");
}

#[test]
fn every_example_is_in_order_and_is_what_the_program_prints() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/config");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(stdout(&run(&["config", "example", &name], b"")), text, "{name}");
        let path = path.to_str().unwrap();
        assert!(stdout(&run(&["config", "check", path], b"")).contains("all is well"), "{name}");
        let printed = table(&stdout(&run(&["serve", "--config", path, "--print-config"], b"")));
        for (key, value) in table(&text) {
            assert_eq!(printed[&key], value, "{name}: {key}");
        }
        names.push(name);
    }
    names.sort();
    assert_eq!(names, ["guardrail-sidecar", "laptop", "rl-reward-server"]);
}

fn docs() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/options.md")).unwrap()
}

#[test]
fn the_docs_tell_the_defaults_that_hold() {
    let printed = table(&stdout(&run(&["serve", "--print-config"], b"")));
    let mut told = 0;
    for row in docs().lines().filter(|line| line.starts_with("| `--")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        // The options of a judge have a column more: most of them have no default that could be printed.
        let [flags, defaults, _] = cells[..] else { continue };
        let flags: Vec<&str> = flags.split(", ").map(|flag| flag.trim_matches('`').trim_start_matches("--")).collect();
        let defaults: Vec<&str> = defaults.split(", ").collect();
        for (index, flag) in flags.iter().enumerate() {
            let Some(value) = printed.get(&flag.replace('-', "_")) else { continue };
            // One for all, or one each.
            let told_default = defaults.get(index).unwrap_or(&defaults[0]);
            let same = match value {
                toml::Value::String(text) => told_default == text,
                toml::Value::Float(number) => told_default.parse() == Ok(*number),
                other => *told_default == other.to_string(),
            };
            assert!(same, "--{flag} is {value}, not {told_default}");
            told += 1;
        }
    }
    assert!(told > 20, "{told}");
}

#[test]
fn the_docs_have_every_setting_and_no_other() {
    let docs = docs();
    let mut named = BTreeSet::new();
    for (_, rest) in docs.match_indices("`--").map(|(at, _)| docs.split_at(at + 1)) {
        let end = rest.find(|letter: char| letter != '-' && !letter.is_ascii_alphanumeric()).unwrap();
        named.insert(rest[..end].to_owned());
    }
    // About settings, and none.
    for other in ["--some-key", "--config"] {
        assert!(named.remove(other), "{other}");
    }
    assert_eq!(named, flags(&stdout(&run(&["serve", "--print-config"], b""))));
}
