//! The built binary, its output, and small inputs.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The binary, free of the caller's own settings.
pub fn binary(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_prism-judge"));
    let own = |name: &str| name.starts_with("PRISM_JUDGE_") && name != "PRISM_JUDGE_CACHE";
    let settings = std::env::vars().map(|(name, _)| name).filter(|name| own(name));
    for name in settings.chain(["RUST_LOG".to_owned()]) {
        command.env_remove(name);
    }
    command.args(args);
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
