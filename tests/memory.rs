//! Peak memory: the tests in this file read the high-water mark of processes of their own, or of this one, alone.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use prism_judge::engine::{Cancel, Engine, EngineSettings, Prompt, Read};
use serde_json::{Value, json};
use support::cli::{binary, row};
use support::tiny::{Random, Shape, Tiny};

/// What a process with the default backbone may take, in MB: f32 weights, keys and values, and everything else.
const LIMIT: u64 = 540 + 537 + 150;

/// VmHWM of a process, in MB.
fn peak(process: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() / 1024
}

/// Judges one line in a process of its own; gives its verdicts and the process's peak.
fn judged(args: &[&str], line: &str, verdicts: usize) -> (Vec<Value>, u64) {
    let mut command = binary(&[&["score"], args].concat());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(line.as_bytes()).unwrap();
    stdin.flush().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().take(verdicts);
    let verdicts: Vec<Value> = lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    // The process waits for a line.
    let peak = peak(&child.id().to_string());
    drop(stdin);
    assert!(child.wait().unwrap().success());
    (verdicts, peak)
}

#[test]
fn a_judgement_of_usual_length_takes_a_bounded_process() {
    let Some(_) = support::backbone() else { return };
    let (verdicts, peak) = judged(&[], &row("a", "openness", "high", "Let us try all of it."), 1);
    assert!(verdicts[0]["s_prism"].is_f64());
    println!("one judgement: {peak} MB");
    assert!(peak <= LIMIT, "{peak} MB");
}

#[test]
fn seven_thousand_tokens_are_judged_in_a_bounded_process() {
    let Some(_) = support::backbone() else { return };
    let line = row("long", "openness", "high", &"This is a word of it. ".repeat(1_000));
    let (verdicts, peak) = judged(&["--evidence", "label_slot"], &line, 1);
    let (prompt, computed) = (&verdicts[0]["tokens"]["prompt"], &verdicts[0]["tokens"]["computed"]);
    println!("prompts of {prompt} tokens, {computed} computed: {peak} MB");
    assert!(prompt.as_u64().unwrap() >= 3 * 7_000 && computed.as_u64().unwrap() < 8_500, "{}", verdicts[0]);
    assert!(verdicts[0]["s_prism"].is_f64());
    assert!(peak <= LIMIT, "{peak} MB");
}

#[test]
fn three_hundred_candidates_take_little_more_than_one() {
    let Some(_) = support::backbone() else { return };
    let negatives: Vec<Value> =
        (1..300).map(|index| json!({"text": format!("No {index}"), "kind": "opposite"})).collect();
    let group = json!({
        "group_id": "many",
        "persona": {"traits": [{"trait": "extraversion", "polarity": "high"}]},
        "context": [{"speaker": "User", "text": "Coming?"}],
        "positive": "Yes",
        "negatives": negatives,
    });
    let (verdicts, peak) = judged(&["--evidence", "likelihood"], &format!("{group}\n"), 300);
    assert!(verdicts.iter().all(|verdict| verdict["s_prism"].is_f64()));
    println!("300 candidates: {peak} MB");
    assert!(peak <= LIMIT, "{peak} MB");
}

/// As the likelihood does: six trunks, and each candidate's response behind each, all of it read.
#[test]
fn ten_thousand_candidates_are_one_group_in_bounded_memory() {
    let (candidates, length) = (10_000, 24);
    let mut random = Random(8);
    let mut tokens = |count: usize| -> Vec<u32> { (0..count).map(|_| random.below(160) as u32).collect() };
    let trunks: Vec<_> = (0..6).map(|_| tokens(100)).collect();
    let mut prompts = Vec::new();
    for _ in 0..candidates {
        let response = tokens(length);
        for trunk in &trunks {
            let ids = [&trunk[..], &response].concat();
            prompts.push(Prompt { read: Read::Span(trunk.len()..ids.len()), ids });
        }
    }
    let decoder = Tiny::new(Shape::default(), 6).decoder(2);
    let before = peak("self");
    let settings = EngineSettings { kv_bytes: 16 << 20, ..EngineSettings::default() };
    let engine = Engine::start(decoder, settings).unwrap();
    let answers = engine.run(prompts.clone(), &Cancel::default()).unwrap();
    let grown = peak("self") - before;
    println!("{} tokens in 10,000 candidates: {grown} MB more", candidates * length * trunks.len());
    assert!(grown <= 200, "{grown} MB more");
    for at in [0, 5, 33_333, 59_999] {
        let alone = engine.run(prompts[at..=at].to_vec(), &Cancel::default()).unwrap();
        assert_eq!(answers[at].as_ref().unwrap().log_probs, alone[0].as_ref().unwrap().log_probs);
    }
}
