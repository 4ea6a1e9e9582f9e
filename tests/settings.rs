//! Wrong flags and settings: told in plain words, with exit status 64, before any model is loaded.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use support::cli::{run, stderr};

#[test]
fn a_wrong_value_names_the_right_ones_and_exits_with_64() {
    for (args, expected) in [
        (vec!["score", "--evidence", "letters"], "label_slot, likelihood"),
        (vec!["score", "--layout", "x"], "shared, released"),
        (vec!["score", "--label-order", "x"], "released, content, cyclic, all"),
        (vec!["score", "--calibration", "x"], "none, contextual"),
        (vec!["score", "--persona-block", "maybe"], "true, false"),
        (vec!["score", "--numerics", "int4"], "f32 or int8"),
        (vec!["serve", "--numerics", "INT8"], "f32 or int8"),
        (vec!["score", "--threads", "0"], "1..=1024"),
        (vec!["score", "--likelihood-t", "-1"], "above zero"),
        (vec!["score", "--likelihood-b", "inf"], "finite"),
        (vec!["score", "--model", "smolm2"], "smollm2-135m-instruct"),
        (vec!["models", "fetch", "smolm2"], "smollm2-135m-instruct"),
        (vec!["models", "verify", "smolm2"], "smollm2-135m-instruct"),
        (vec!["serve", "--listen", "here"], "HOST:PORT"),
        (vec!["serve", "--chunk-tokens", "0"], "--chunk-tokens <N>': it must be a whole number from 1 to 65536"),
        (vec!["serve", "--kv-cache-mb", "0"], "--kv-cache-mb"),
        (vec!["serve", "--queue-tokens-guard", "many"], "--queue-tokens-guard"),
        (vec!["serve", "--verdict-cache-ttl-s", "1.5"], "--verdict-cache-ttl-s"),
        (
            vec!["serve", "--chunk-tokens", "512", "--max-batch-tokens", "256"],
            "--chunk-tokens 512 is more than --max-batch-tokens 256",
        ),
        (vec!["bench"], "FILE"),
        (vec!["judge"], "unrecognized subcommand"),
        (vec!["explain", "--persona", "x"], "--response"),
        (vec!["explain"], "--persona and --response"),
    ] {
        let output = run(&args, b"");
        assert_eq!(output.status.code(), Some(64), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{args:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_wrong_variable_is_named_and_an_empty_one_is_none() {
    for (command, variable) in [("serve", "PRISM_JUDGE_BATCH_DELAY_MS"), ("score", "PRISM_JUDGE_THREADS")] {
        for (value, expected) in [("soon", variable), ("", "no-such-model")] {
            let mut command = support::cli::binary(&[command, "--model", "no-such-model"]);
            let output = command.env(variable, value).output().unwrap();
            assert_eq!(output.status.code(), Some(64), "{}", stderr(&output));
            // Where the variable is in order, the next thing that is wrong.
            assert!(stderr(&output).contains(expected), "{}", stderr(&output));
        }
    }
}

#[test]
fn help_and_version_succeed_and_every_command_shows_examples() {
    for command in ["score", "explain", "models", "demo", "bench", "serve", "config", "keys", "replay"] {
        let output = run(&[command, "--help"], b"");
        assert_eq!(output.status.code(), Some(0));
        let help = String::from_utf8(output.stdout).unwrap();
        assert!(help.contains("Examples:") && help.contains(&format!("prism-judge {command}")), "{command}");
    }
    assert_eq!(run(&["--version"], b"").status.code(), Some(0));
}

#[test]
fn what_is_not_there_is_a_failed_start() {
    for args in [vec!["score", "no-such-file.jsonl"], vec!["bench", "no-such-file.jsonl"]] {
        let output = run(&args, b"");
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("no-such-file.jsonl"), "{}", stderr(&output));
    }
    let folder = tempfile::tempdir().unwrap();
    for model in [None, Some("")] {
        let mut command = support::cli::binary(&["score", "-"]);
        command.env("PRISM_JUDGE_CACHE", folder.path()).envs(model.map(|model| ("PRISM_JUDGE_MODEL", model)));
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("prism-judge models fetch smollm2-135m-instruct"), "{}", stderr(&output));
    }
}

#[test]
fn the_arithmetic_is_read_from_the_environment_where_an_empty_variable_is_none() {
    // What is told first: that the model is absent, or that the value is wrong.
    for (value, expected) in [("", "absent.gguf"), ("int8", "absent.gguf"), ("int", "f32 or int8")] {
        let mut command = support::cli::binary(&["score", "--model", "absent.gguf"]);
        let output = command.env("PRISM_JUDGE_NUMERICS", value).output().unwrap();
        assert!(matches!(output.status.code(), Some(1 | 64)), "{value}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{value}: {}", stderr(&output));
    }
}

#[test]
fn explain_says_why_the_line_that_is_asked_for_cannot_be_read() {
    let rows = b"{\"id\":\"a\"\n{\"id\":\"b\",\"persona\":3}\n{\"id\":\"c\",\"persona\":4}\n";
    for (id, expected) in [("c", "line 3: persona is a number"), ("d", "no response with the id d")] {
        let output = run(&["explain", "-", "--id", id], rows);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
}

#[test]
fn a_file_that_is_no_model_is_named_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("broken.gguf");
    std::fs::write(&path, b"GGUF but not really").unwrap();
    for command in ["score", "serve"] {
        let mut args = vec![command, "--model", path.to_str().unwrap()];
        if command == "serve" {
            args.extend(["--listen", "127.0.0.1:0", "--http-listen", "off", "--admin-listen", "off"]);
        }
        let output = run(&args, b"");
        assert_eq!(output.status.code(), Some(1), "{command}: {}", stderr(&output));
        assert!(stderr(&output).contains("broken.gguf"), "{command}: {}", stderr(&output));
    }
}

#[test]
fn a_file_of_wording_that_cannot_be_used_is_a_wrong_setting_of_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("broken");
    std::fs::write(&path, "{{ respnse }}").unwrap();
    // The wording is read first: any file will do as the model.
    let model = ["--model", path.to_str().unwrap()];
    for command in
        [&["score"][..], &["serve", "--listen", "127.0.0.1:0", "--http-listen", "off", "--admin-listen", "off"]]
    {
        for flag in ["--label-spaces", "--prompt-template"] {
            let output = run(&[command, &[flag, path.to_str().unwrap()], &model].concat(), b"");
            assert_eq!(output.status.code(), Some(64), "{command:?} {flag}: {}", stderr(&output));
            assert!(stderr(&output).contains("broken"), "{command:?} {flag}: {}", stderr(&output));
        }
    }
}

#[test]
fn an_output_file_may_not_be_an_input() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.jsonl");
    std::fs::write(&path, "{}\n").unwrap();
    let path = path.to_str().unwrap();
    for args in [["score", path, "--output", path], ["bench", path, "--scores", path]] {
        let output = run(&args, b"");
        assert_eq!(output.status.code(), Some(64), "{args:?}: {}", stderr(&output));
        assert_eq!(std::fs::read_to_string(path).unwrap(), "{}\n", "{args:?}");
    }
}

#[test]
fn an_output_file_keeps_its_old_content_when_the_work_cannot_start() {
    let folder = tempfile::tempdir().unwrap();
    let [rows, old] = ["rows.jsonl", "old.jsonl"].map(|name| folder.path().join(name));
    std::fs::write(&rows, "{}\n").unwrap();
    std::fs::write(&old, "old\n").unwrap();
    let [rows, old, folder] = [&*rows, &*old, folder.path()].map(|path| path.to_str().unwrap());
    for (command, flag) in [("score", "--output"), ("bench", "--scores")] {
        for args in
            [[command, rows, flag, old, "--model", "absent.gguf"], [command, folder, flag, old, "--threads", "1"]]
        {
            let output = run(&args, b"");
            assert!(matches!(output.status.code(), Some(1 | 64)), "{args:?}: {}", stderr(&output));
            assert_eq!(std::fs::read_to_string(old).unwrap(), "old\n", "{args:?}");
        }
    }
}

/// `/dev/full` refuses every write.
#[test]
#[cfg(target_os = "linux")]
fn nobody_on_standard_error_changes_no_exit_status() {
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    for (args, expected) in [
        (vec!["score", "no-such-file.jsonl"], 1),
        (vec!["models", "verify", "smolm2"], 64),
        (
            vec![
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--http-listen",
                "off",
                "--admin-listen",
                "off",
                "--model",
                "Cargo.toml",
            ],
            1,
        ),
    ] {
        let status = support::cli::binary(&args).stderr(full()).status().unwrap();
        assert_eq!(status.code(), Some(expected), "{args:?}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error_of_models() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = support::cli::binary(&["models", "list"]).stdout(writer).output().unwrap();
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
}

#[test]
fn a_budget_of_keys_and_values_that_holds_hardly_a_prompt_is_refused_by_its_flag() {
    if support::backbone().is_none() {
        return;
    }
    let output = run(
        &["serve", "--listen", "127.0.0.1:0", "--http-listen", "off", "--admin-listen", "off", "--kv-cache-mb", "20"],
        b"",
    );
    assert_eq!(output.status.code(), Some(64));
    let text = stderr(&output);
    assert!(text.contains("--kv-cache-mb") && text.contains("20 MiB") && text.contains("512 tokens"), "{text}");
}
