//! `explain`, `demo` and `bench` with the real model.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use serde_json::Value;
use support::cli::{SWAP_GROUP, json_lines, row, run, stderr};

fn stdout(output: &std::process::Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn explain_shows_the_posterior_the_labels_and_the_prompt() {
    let Some(_) = support::backbone() else { return };
    let args = ["explain", "--persona", "Big Five focus: Extraversion = high", "--context", "Coming?", "--response"];
    let output = run(&[&args[..], &["Yes! Who else is in?", "--show-prompt", "--ascii"]].concat(), b"");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    for part in ["S_PRISM 0.", "task framing", "interpersonal stance", "linguistic style", "aligned", "Who else is in?"]
    {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(text.contains("tokens:") && text.contains("#"), "{text}");
}

#[test]
fn explain_and_score_agree_on_a_named_response() {
    let Some(_) = support::backbone() else { return };
    let output = run(&["explain", "-", "--id", "g/negative/1", "--json"], SWAP_GROUP.as_bytes());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let explained: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let scored = json_lines(&run(&["score"], SWAP_GROUP.as_bytes()));
    assert_eq!(explained["verdict"]["s_prism"], scored[2]["s_prism"]);
    assert_eq!(explained["verdict"]["id"], "g/negative/1");
    assert!(explained["prompts"].as_array().is_some_and(|prompts| prompts.len() >= 3));
    let missing = run(&["explain", "-", "--id", "nobody"], SWAP_GROUP.as_bytes());
    assert_eq!(missing.status.code(), Some(1));
    assert!(stderr(&missing).contains("nobody"));
}

#[test]
fn the_demo_judges_the_built_in_replies_and_says_how_weak_the_judge_is() {
    let Some(_) = support::backbone() else { return };
    let output = run(&["demo", "--ascii"], b"");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    for part in ["fits", "wrong task", "wrong stance", "wrong style", "weak judge", "7B", "highest S in"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(text.is_ascii(), "--ascii draws with ASCII only");
}

#[test]
fn bench_counts_groups_rows_and_failures_and_keeps_metrics_finite() {
    let Some(_) = support::backbone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (path, scores) = (folder.path().join("groups.jsonl"), folder.path().join("scores.jsonl"));
    let diagnosis = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/data/demo.jsonl")).unwrap();
    let first = diagnosis.lines().next().unwrap();
    std::fs::write(&path, format!("{SWAP_GROUP}{first}\nnot json\n{}", row("r", "openness", "high", "Hm."))).unwrap();
    let path = path.to_str().unwrap();
    let output = run(&["bench", path, "--json", "--scores", scores.to_str().unwrap()], b"");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let overall = &report["overall"];
    assert_eq!((&overall["groups"], &overall["rows"]), (&2.into(), &9.into()));
    assert_eq!((&overall["failed"], &overall["unlabelled"]), (&1.into(), &1.into()));
    for score in ["s_prism", "task_framing", "interpersonal_stance", "linguistic_style"] {
        for metric in ["auc", "p_auc", "g_acc"] {
            let value = overall[score][metric].as_f64().unwrap();
            assert!((0.0..=1.0).contains(&value), "{score} {metric}: {value}");
        }
    }
    assert_eq!(overall["diagnosis"]["rows"], 3);
    assert_eq!(report["files"][0]["report"]["s_prism"], overall["s_prism"]);
    assert!(report["speed"]["computed_tokens_per_judgement"].as_f64().unwrap() > 0.0);
    assert_eq!(std::fs::read_to_string(scores).unwrap().lines().count(), 9);
    let table = stdout(&run(&["bench", path, path, "--limit", "1"], b""));
    assert!(table.contains("all files: 2 groups, 6 responses, 0 failed") && table.contains("P-AUC"), "{table}");
}
