//! The log of the running server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use prism_judge::server::pb;
use serde_json::Value;
use support::cli::{binary, run, stderr};
use support::server::{Server, request, tiny_model};

/// The lines of a server that has judged one request, refused another and ended.
async fn lines(flags: &[&str], rust_log: Option<&str>) -> Option<Vec<Value>> {
    let folder = tempfile::tempdir().unwrap();
    let model = tiny_model(folder.path())?;
    let args = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--http-listen",
        "127.0.0.1:0",
        "--admin-listen",
        "127.0.0.1:0",
        "--model",
        model.to_str().unwrap(),
    ];
    let mut command = binary(&[&args, flags].concat());
    command.envs(rust_log.map(|level| ("RUST_LOG", level)));
    let server = Server::of(&mut command).ready().await;
    let mut judge = server.judge().await;
    let ask = pb::ScoreRequest { request_id: "abc".into(), lane: pb::Lane::Guard as i32, ..request("Yes!") };
    judge.score(ask.clone()).await.unwrap();
    judge.score(pb::ScoreRequest { candidate: None, ..ask }).await.unwrap_err();
    server.signal("TERM");
    let lines = std::iter::from_fn(|| server.log.recv().ok());
    Some(lines.map(|line| serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect())
}

fn calls(lines: &[Value]) -> Vec<&Value> {
    lines.iter().filter(|line| line["message"] == "call").collect()
}

/// Away from a terminal, lines are JSON without being asked.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_fails_has_a_line_at_info_and_one_that_succeeds_at_debug() {
    let Some(info) = lines(&[], None).await else { return };
    let [failed] = calls(&info)[..] else { panic!("{info:#?}") };
    assert_eq!(
        (&failed["level"], &failed["method"], &failed["code"]),
        (&"INFO".into(), &"Score".into(), &"INVALID_ARGUMENT".into())
    );

    let debug = lines(&["--log-level", "debug"], None).await.unwrap();
    let [done, failed] = calls(&debug)[..] else { panic!("{debug:#?}") };
    assert_eq!((&failed["level"], &failed["code"]), (&"INFO".into(), &"INVALID_ARGUMENT".into()));
    assert_eq!((&done["level"], &done["code"], &done["lane"]), (&"DEBUG".into(), &"OK".into(), &"guard".into()));
    // The start of SHA-256("abc"), FIPS 180-4.
    assert_eq!(done["request"], "ba7816bf8f01cfea");
    assert_eq!((&done["candidates"], &done["cached"]), (&1.into(), &0.into()));
    assert!(done["computed_tokens"].as_u64().unwrap() > 0 && done["ms"].as_f64().unwrap() > 0.0, "{done}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bare_level_lets_no_library_say_what_it_sends() {
    let Some(lines) = lines(&["--log-level", "warn"], Some("trace")).await else { return };
    assert!(!calls(&lines).is_empty(), "RUST_LOG goes before --log-level");
    for line in lines {
        let ours = line["target"].as_str().unwrap().starts_with("prism_judge");
        assert!(ours || !["DEBUG", "TRACE"].contains(&line["level"].as_str().unwrap()), "{line}");
    }
}

#[test]
fn a_setting_that_is_wrong_ends_the_start_and_says_what_is_allowed() {
    for (flags, named, allowed) in [
        (["--log-level", "verbose"], "verbose", "error, warn, info, debug, trace or off"),
        (["--log-format", "yaml"], "yaml", "auto, pretty, json"),
        (["--otlp-endpoint", "https://collector:4317"], "https://collector:4317", "http://HOST:PORT"),
        (["--otlp-endpoint", "collector"], "collector", "http://HOST:PORT"),
        (["--otlp-sample-ratio", "2"], "2", "from 0 to 1"),
        (["--otlp-sample-ratio", "NaN"], "NaN", "from 0 to 1"),
    ] {
        let output = run(&[&["serve"], &flags[..]].concat(), b"");
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(64), "{flags:?}: {told}");
        assert!(told.contains(flags[0]) && told.contains(named) && told.contains(allowed), "{flags:?}: {told}");
    }
}

#[test]
fn a_wrong_level_in_rust_log_is_told_apart() {
    let Some(_) = support::backbone() else { return };
    let output = binary(&["serve", "--listen", "127.0.0.1:0"]).env("RUST_LOG", "loud").output().unwrap();
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(64), "{told}");
    assert!(told.contains("RUST_LOG is \"loud\"") && told.contains("error, warn, info"), "{told}");
}
