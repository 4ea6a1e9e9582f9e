//! What the behaviour tests share: the built binary, the real model, small inputs.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use prism_judge::model::registry;
use serde_json::Value;

/// The default model of this machine's cache. Without one a test is skipped with a message, in CI it fails.
pub fn model() -> Option<PathBuf> {
    match registry::resolve(registry::DEFAULT_MODEL) {
        Ok(path) => Some(path),
        Err(error) if std::env::var_os("CI").is_some() => panic!("CI needs the model: {error}"),
        Err(error) => {
            eprintln!("SKIPPED, nothing was tested: {error}");
            None
        }
    }
}

/// A file of `../shared/data/dev`, under the same rule.
pub fn shared(name: &str) -> Option<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/data/dev").join(name);
    match std::fs::read_to_string(&path) {
        Ok(text) => Some(text),
        Err(error) if std::env::var_os("CI").is_some() => panic!("CI needs {}: {error}", path.display()),
        Err(error) => {
            eprintln!("SKIPPED, nothing was tested: ../shared/data/dev/{name}: {error}");
            None
        }
    }
}

/// The binary, free of the caller's own settings.
pub fn binary(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_prism-judge"));
    command.args(args).env_remove("PRISM_JUDGE_MODEL").env_remove("RUST_LOG");
    command
}

/// Runs the binary to its end with `input` on standard input.
pub fn run(args: &[&str], input: &[u8]) -> Output {
    let mut command = binary(args);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        // The binary may end before it has read everything.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

/// The lines of standard output as JSON.
pub fn json_lines(output: &Output) -> Vec<Value> {
    let text = std::str::from_utf8(&output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"))).collect()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The number after `"s_prism":`, to the last bit (serde_json may round the last one).
pub fn s_prism(line: &str) -> f64 {
    let rest = line.split_once("\"s_prism\":").unwrap().1;
    rest[..rest.find([',', '}']).unwrap()].parse().unwrap()
}

/// One line: a row of a persona by its trait.
pub fn row(id: &str, trait_: &str, polarity: &str, response: &str) -> String {
    let row = serde_json::json!({
        "id": id,
        "persona": {"traits": [{"trait": trait_, "polarity": polarity}]},
        "context": [{"speaker": "User", "text": "Are you coming to the party tonight?"}],
        "response": response,
    });
    format!("{row}\n")
}

/// A group with a candidate under the group's persona and one under a swapped profile.
pub const SWAP_GROUP: &str = concat!(
    r#"{"group_id":"g","persona":{"traits":[{"trait":"extraversion","polarity":"high"}]},"#,
    r#""context":[{"speaker":"User","text":"Are you coming to the party tonight?"}],"#,
    r#""positive":"Yes! Who else is in? I'll bring everyone!","negatives":["#,
    r#"{"text":"I would rather stay in with a book.","kind":"opposite"},"#,
    r#"{"text":"Yes! Who else is in? I'll bring everyone!","kind":"profile_swap","#,
    r#""persona":{"traits":[{"trait":"extraversion","polarity":"low"}]}}]}"#,
    "\n"
);
