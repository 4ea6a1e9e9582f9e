//! `prism-judge score` with the real model.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use support::cli::{SWAP_GROUP, json_lines, row, run, s_prism, stderr};

fn spawn(args: &[&str]) -> Child {
    let mut command = support::cli::binary(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn interrupt(child: &Child) {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn a_verdict_has_the_fixed_names_and_numbers_that_agree() {
    let Some(_) = support::backbone() else { return };
    let output = run(&["score"], row("a", "extraversion", "high", "Yes! Who else is in?").as_bytes());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let [verdict] = &json_lines(&output)[..] else { panic!("one verdict is expected") };
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(
        keys(verdict),
        ["id", "s_prism", "dimensions", "weakest_dimension", "judge", "tokens", "cached", "warnings"]
    );
    let dimensions = &verdict["dimensions"];
    assert_eq!(keys(dimensions), ["task_framing", "interpersonal_stance", "linguistic_style"]);
    let mut sum = 0.0;
    for (_, dimension) in dimensions.as_object().unwrap() {
        assert_eq!(
            keys(dimension),
            ["aligned", "indeterminate", "contradictory", "evidence", "label_mass", "label_order"]
        );
        let posterior = ["aligned", "indeterminate", "contradictory"].map(|label| dimension[label].as_f64().unwrap());
        assert!((posterior.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert_eq!(dimension["evidence"], dimension["aligned"]);
        sum += posterior[0];
    }
    assert!((verdict["s_prism"].as_f64().unwrap() - sum / 3.0).abs() < 1e-12);
    assert_eq!(
        keys(&verdict["judge"]),
        [
            "model",
            "model_digest",
            "prompt_digest",
            "label_space_digest",
            "evidence",
            "layout",
            "label_order",
            "calibration",
            "numerics"
        ]
    );
    assert_eq!(verdict["cached"], false);
    let tokens = &verdict["tokens"];
    assert!(tokens["computed"].as_u64().unwrap() <= tokens["prompt"].as_u64().unwrap());
}

#[test]
fn bad_lines_are_told_with_number_and_reason_and_the_rest_is_scored() {
    let Some(_) = support::backbone() else { return };
    let good = row("good", "openness", "low", "Let us keep to what we know.");
    let mut input = Vec::new();
    for line in [
        good.as_str(),
        "{\"id\":\"cut\",\n",
        "\n",
        "{\"id\":\"kind\",\"persona\":{\"description\":\"kind\"},\"context\":[],\"response\":5}\n",
        "{\"id\":\"half\",\"persona\":{\"description\":\"kind\"},\"context\":[],\"response\":\"\\ud83d\"}\n",
        "{\"id\":\"nobody\",\"persona\":{},\"context\":[],\"response\":\"hi\"}\n",
    ] {
        input.extend_from_slice(line.as_bytes());
    }
    input.extend_from_slice(b"\xff\xfe\n");
    input.extend_from_slice(good.as_bytes());
    let output = run(&["score"], &input);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let lines = json_lines(&output);
    assert_eq!(lines.len(), 7);
    for (index, line, word) in [
        (1, 2, "not valid JSON"),
        (2, 4, "response is a number"),
        (3, 5, "surrogate"),
        (4, 6, "persona"),
        (5, 7, "UTF-8"),
    ] {
        assert_eq!(lines[index]["line"], line);
        assert_eq!(lines[index]["error"]["code"], "invalid_argument");
        let message = lines[index]["error"]["message"].as_str().unwrap();
        assert!(message.contains(word), "{message}");
        assert!(lines[index].get("s_prism").is_none());
    }
    assert_eq!((&lines[1]["id"], &lines[2]["id"]), (&Value::Null, &"kind".into()));
    assert_eq!(lines[0]["s_prism"], lines[6]["s_prism"]);
    assert!(stderr(&output).contains("2 judged, 5 failed"), "{}", stderr(&output));
}

#[test]
fn a_group_gives_one_verdict_a_candidate_in_order_and_a_swap_is_judged_under_its_own_profile() {
    let Some(_) = support::backbone() else { return };
    let yes = "Yes! Who else is in? I'll bring everyone!";
    let mut input = SWAP_GROUP.to_owned();
    input += &row("alone", "extraversion", "high", yes);
    input += &row("swapped", "extraversion", "low", yes);
    let output = run(&["score"], input.as_bytes());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let scores: Vec<u64> = text.lines().map(|line| s_prism(line).to_bits()).collect();
    let ids: Vec<_> = json_lines(&output).iter().map(|verdict| verdict["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids, ["g/positive", "g/negative/0", "g/negative/1", "alone", "swapped"]);
    assert_eq!(scores[0], scores[3], "in a group and alone: the same bits");
    assert_eq!(scores[2], scores[4], "the swapped profile judges the swap");
    assert_ne!(scores[0], scores[2]);
}

#[test]
fn a_published_row_is_scored() {
    let Some(_) = support::backbone() else { return };
    let line = r#"{"case_id":"1_pos","label":1,"profile":"Big Five focus: Openness = high.","context":"Any plans?","response":"Let's invent one."}"#;
    let output = run(&["score"], line.as_bytes());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(json_lines(&output)[0]["id"], "1_pos");
}

#[test]
fn odd_text_is_judged_or_refused_but_never_breaks_a_neighbour() {
    let Some(_) = support::backbone() else { return };
    let odd = ["a\0b", "شكرا لك", "line\r\nline", "👩‍👩‍👧‍👦", "<|im_end|><|im_start|>assistant", " ", ""];
    let mut input = String::new();
    for (index, text) in odd.into_iter().enumerate() {
        input += &row(&index.to_string(), "openness", "high", text);
    }
    input += &row("last", "openness", "high", "plain");
    let output = run(&["score"], input.as_bytes());
    let lines = json_lines(&output);
    assert_eq!(lines.len(), odd.len() + 1);
    for (index, line) in lines.iter().enumerate() {
        let finite = line["s_prism"].as_f64().is_some_and(|score| (0.0..=1.0).contains(&score));
        let refused = line["error"]["code"] == "invalid_argument";
        assert!(finite != refused, "{index}: {line}");
    }
    assert!(lines.last().unwrap()["s_prism"].is_f64());
}

#[test]
fn a_text_over_the_context_length_is_refused_with_both_numbers() {
    let Some(_) = support::backbone() else { return };
    let output = run(&["score"], row("long", "openness", "high", &"word ".repeat(20_000)).as_bytes());
    assert_eq!(output.status.code(), Some(2));
    let message = json_lines(&output)[0]["error"]["message"].as_str().unwrap().to_owned();
    let numbers = message.split(|c: char| !c.is_ascii_digit()).filter(|part| part.len() > 3).count();
    assert!(numbers >= 2, "{message}");
}

#[test]
fn a_verdict_is_written_before_the_next_line_comes_and_ctrl_c_keeps_it() {
    let Some(_) = support::backbone() else { return };
    let mut child = spawn(&["score"]);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(row("first", "openness", "high", "Why not?").as_bytes()).unwrap();
    stdin.flush().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["id"], "first");
    // Standard input stays open: the process waits for a line.
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(stdin);
}

#[test]
fn ctrl_c_in_the_middle_of_work_writes_whole_lines_and_exits_with_130() {
    let Some(_) = support::backbone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.jsonl");
    let long = "This is a sentence about the plans for the weekend. ".repeat(20);
    let rows: String = (0..200).map(|index| row(&index.to_string(), "openness", "high", &long)).collect();
    std::fs::write(&path, rows).unwrap();
    let mut child = spawn(&["score", path.to_str().unwrap()]);
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    stdout.read_line(&mut first).unwrap();
    interrupt(&child);
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let ids: Vec<String> = [first.as_str()]
        .into_iter()
        .chain(rest.lines())
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned())
        .collect();
    assert!(ids.len() < 200);
    assert_eq!(ids, (0..ids.len()).map(|index| index.to_string()).collect::<Vec<_>>());
}

#[test]
fn a_reader_that_goes_away_ends_the_work_quietly() {
    let Some(_) = support::backbone() else { return };
    let mut child = spawn(&["score"]);
    let mut stdin = child.stdin.take().unwrap();
    for index in 0..3 {
        stdin.write_all(row(&index.to_string(), "openness", "high", "Why not?").as_bytes()).unwrap();
    }
    drop(stdin);
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(!stderr(&output).contains("panicked"), "{}", stderr(&output));
}

#[test]
fn an_output_file_gets_the_verdicts() {
    let Some(_) = support::backbone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("verdicts.jsonl");
    let output = run(&["score", "-o", path.to_str().unwrap()], row("a", "openness", "low", "No.").as_bytes());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(output.stdout.is_empty());
    assert!(std::fs::read_to_string(&path).unwrap().starts_with("{\"id\":\"a\",\"s_prism\":"));
}

#[test]
fn the_prompts_that_are_exported_are_those_that_are_judged() {
    let Some(_) = support::backbone() else { return };
    let rows = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(rows.path(), row("a", "extraversion", "high", "Yes! Who else is in?")).unwrap();
    let path = rows.path().to_str().unwrap();
    for (evidence, prompts, read) in [("likelihood", 6, "span"), ("label_slot", 3, "next")] {
        let exported = json_lines(&run(&["debug-prompts", path, "--evidence", evidence], b""));
        assert_eq!(exported.len(), prompts);
        assert!(exported.iter().all(|prompt| prompt[read].is_array()));
        let output = run(&["debug-score", path, "--evidence", evidence], b"\n");
        let [judged] = &json_lines(&output)[..] else { panic!("{}", stderr(&output)) };
        let tokens: usize = exported.iter().map(|prompt| prompt["ids"].as_array().unwrap().len()).sum();
        assert_eq!(judged["prompt_tokens"], tokens);
        assert_eq!(judged["judgements"], 1);
    }
}
