//! The HTTP port under load: many connections, batches larger than a lane, a lane that is full, what is counted.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::collections::BTreeMap;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use support::http::{get, post, request, talk};
use support::server::{Server, tiny_model};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

async fn serve(more: &[&str]) -> Option<(tempfile::TempDir, Server)> {
    let folder = tempfile::tempdir().unwrap();
    let model = tiny_model(folder.path())?;
    let server = Server::start(&[&["--model", model.to_str().unwrap()], more].concat()).ready().await;
    Some((folder, server))
}

fn one_item(response: &str) -> Value {
    json!({"prompt": format!("Reply {response}, please."), "response": response, "label": {"description": "A kind person."}})
}

/// Each with a prompt and a connection of its own, as a trainer sends them.
#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_posts_at_once_are_all_answered_or_told_to_come_back() {
    // The shell's limit is often 1,024 files; the server raises its own.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    // Room for some hundred of them.
    let Some((_folder, server)) = serve(&["--queue-tokens-train", "60000"]).await else { return };
    let mut posts = JoinSet::new();
    for at in 0..2_000 {
        let address = server.http.clone();
        posts.spawn(async move {
            let stream = TcpStream::connect(address).await.unwrap();
            talk(stream, &request("/reward", &[], &one_item(&at.to_string()))).await
        });
    }
    let mut counts: BTreeMap<u16, usize> = BTreeMap::new();
    for reply in posts.join_all().await {
        *counts.entry(reply.status).or_default() += 1;
        match reply.status {
            200 => assert!((0.0..=1.0).contains(&reply.body.parse::<f64>().unwrap()), "{}", reply.body),
            429 => {
                let ms = reply.json()["error"]["retry_after_ms"].as_u64().unwrap();
                assert_eq!(reply.header("retry-after").unwrap().parse(), Ok(ms.div_ceil(1000).max(1)));
            }
            other => panic!("{other}: {}", reply.body),
        }
    }
    assert_eq!(counts.values().sum::<usize>(), 2_000);
    assert!(counts[&200] >= 100, "{counts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_not_refused_because_of_its_own_size() {
    // A lane that takes one call at a time.
    let Some((_folder, server)) = serve(&["--queue-tokens-train", "1"]).await else { return };
    let prompts: Vec<String> = (0..12).map(|at| format!("Prompt {at}: ")).collect();
    let queries: Vec<String> = prompts.iter().map(|prompt| format!("{prompt}yes!")).collect();
    let labels = vec![json!({"description": "A kind person."}); 12];
    let answer =
        post(&server.http, "/get_reward", &[], &json!({"query": queries, "prompts": prompts, "labels": labels}));
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(answer.json()["rewards"].as_array().unwrap().iter().all(Value::is_number), "{}", answer.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lane_that_others_fill_is_429_with_a_pause() {
    // The first call waits ten seconds for company and fills the lane meanwhile.
    let flags = ["--queue-tokens-train", "1", "--queue-tokens-guard", "1", "--batch-delay-ms", "10000"];
    let Some((_folder, server)) = serve(&flags).await else { return };
    let address = server.http.clone();
    let waiting = tokio::spawn(async move {
        let stream = TcpStream::connect(address).await.unwrap();
        talk(stream, &request("/reward", &[], &one_item("first"))).await
    });
    let filled = |lane: &str| {
        let (_, queue) = server.get("/debug/queue");
        let queue: Value = serde_json::from_str(&queue).unwrap();
        queue["lanes"][lane]["queue_tokens"].as_u64().unwrap() > 0
    };
    while !filled("train") {
        tokio::task::yield_now().await;
    }
    let full = post(&server.http, "/reward", &[], &one_item("second"));
    assert_eq!((full.status, &full.json()["error"]["reason"]), (429, &json!("OVERLOADED")));
    assert!(full.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
    waiting.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_counted_by_route_and_by_the_method_that_they_amount_to() {
    let Some((_folder, server)) = serve(&[]).await else { return };
    assert_eq!(post(&server.http, "/reward", &[], &one_item("one")).status, 200);
    assert_eq!(post(&server.http, "/reward", &[], &one_item("")).status, 400);
    assert_eq!(get(&server.http, "/v1/info", &[]).status, 200);
    assert_eq!(get(&server.http, "/nowhere", &[]).status, 404);
    assert_eq!(get(&server.http, "/page/index.html", &[]).status, 200);
    let (_, metrics) = server.get("/metrics");
    for (series, count) in [
        ("prism_judge_http_requests_total{route=\"/reward\",status=\"2xx\"}", 1),
        ("prism_judge_http_requests_total{route=\"/reward\",status=\"4xx\"}", 1),
        ("prism_judge_http_requests_total{route=\"other\",status=\"4xx\"}", 1),
        ("prism_judge_http_requests_total{route=\"/\",status=\"2xx\"}", 1),
        ("prism_judge_requests_total{method=\"ScoreGroup\",code=\"OK\"}", 1),
        ("prism_judge_requests_total{method=\"ScoreGroup\",code=\"INVALID_ARGUMENT\"}", 1),
        ("prism_judge_requests_total{method=\"GetJudgeInfo\",code=\"OK\"}", 1),
    ] {
        assert!(metrics.contains(&format!("{series} {count}\n")), "{series} is not {count}");
    }
}
