//! ScoreStream on the running server. How far it is read ahead and how it ends is tested beside the code, in
//! `src/server/stream_tests.rs`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::collections::HashMap;
use std::fmt::Write as _;

use prism_judge::server::pb;
use prism_judge::server::pb::score_stream_response::Result as Wire;
use support::server::{Server, request, tiny_model};
use tokio::sync::mpsc::{Sender, channel};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Status, Streaming};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

async fn tiny(flags: &[&str]) -> Option<(tempfile::TempDir, Server)> {
    let folder = tempfile::tempdir().unwrap();
    let model = tiny_model(folder.path())?;
    let server = Server::start(&[&["--model", model.to_str().unwrap()], flags].concat()).ready().await;
    Some((folder, server))
}

fn ask(index: usize, response: &str) -> pb::ScoreStreamRequest {
    let score = pb::ScoreRequest { request_id: format!("r{index}"), ..request(response) };
    pb::ScoreStreamRequest { score: Some(score) }
}

type Results = Streaming<pb::ScoreStreamResponse>;

async fn open(server: &Server, key: Option<&str>) -> (Sender<pb::ScoreStreamRequest>, Results) {
    let (requests, receiver) = channel(1000);
    let mut call = Request::new(ReceiverStream::new(receiver));
    if let Some(key) = key {
        call.metadata_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
    }
    let results = server.judge().await.score_stream(call).await.unwrap().into_inner();
    (requests, results)
}

async fn next(results: &mut Results) -> Result<pb::ScoreStreamResponse, Status> {
    results.message().await.map(|message| message.expect("the stream ended in order"))
}

/// The metrics of the server, by series.
fn metrics(server: &Server) -> HashMap<String, f64> {
    let (_, text) = server.get("/metrics");
    let lines = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.rsplit_once(' '));
    lines.map(|(series, value)| (series.to_owned(), value.parse().unwrap())).collect()
}

/// Scrapes until the metrics say so.
async fn until(server: &Server, holds: impl Fn(&HashMap<String, f64>) -> bool) {
    let waited = tokio::time::timeout(std::time::Duration::from_secs(60), async {
        while !holds(&metrics(server)) {
            tokio::task::yield_now().await;
        }
    });
    assert!(waited.await.is_ok(), "{:#?}", metrics(server));
}

fn requests(code: &str) -> String {
    format!("prism_judge_requests_total{{method=\"ScoreStream\",code=\"{code}\"}}")
}

const IN_FLIGHT: &str = "prism_judge_requests_in_flight";
const ITEMS: &str = "prism_judge_stream_items_in_flight";

#[tokio::test(flavor = "multi_thread")]
async fn every_request_has_the_verdict_of_score_and_counts_as_one_candidate_of_its_lane() {
    const REQUESTS: usize = 300;
    let Some((_folder, server)) = tiny(&["--log-level", "debug"]).await else { return };
    let before = metrics(&server);
    let lanes = [pb::Lane::Guard, pb::Lane::Train, pb::Lane::Batch];
    let item = move |index: usize| {
        let mut request = ask(index, &format!("Reply {}.", index % 100));
        request.score.as_mut().unwrap().lane = lanes[index % 3] as i32;
        if index % 10 == 9 {
            request.score.as_mut().unwrap().candidate.as_mut().unwrap().response.clear();
        }
        request
    };
    let stream = tokio_stream::iter((0..REQUESTS).map(item));
    let mut results = server.judge().await.score_stream(stream).await.unwrap().into_inner();
    let mut seen: HashMap<u64, pb::ScoreStreamResponse> = HashMap::new();
    while let Some(result) = results.message().await.unwrap() {
        assert!(seen.insert(result.index, result).is_none());
    }
    assert_eq!(seen.len(), REQUESTS);
    let mut judge = server.judge().await;
    for (index, result) in &seen {
        assert_eq!(result.request_id, format!("r{index}"));
        match result.result.as_ref().unwrap() {
            Wire::Error(error) => {
                assert_eq!((index % 10, error.code()), (9, pb::ErrorCode::InvalidArgument));
                assert_eq!(error.field, "candidate.response");
            }
            Wire::Response(response) => {
                assert_eq!(response.request_id, result.request_id);
                let off = pb::CacheControl::Off as i32;
                let request = pb::ScoreRequest { cache: off, ..item(*index as usize).score.unwrap() };
                if *index < 30 {
                    let alone = judge.score(request).await.unwrap().into_inner().verdict.unwrap();
                    let verdict = response.verdict.as_ref().unwrap();
                    assert_eq!(verdict.s_prism.to_bits(), alone.s_prism.to_bits());
                    assert_eq!(verdict.dimensions, alone.dimensions);
                }
            }
        }
    }
    let after = metrics(&server);
    let more = |series: &str| after[series] - before[series];
    assert_eq!(more(&requests("OK")), 1.0);
    assert_eq!((after[IN_FLIGHT], after[ITEMS]), (0.0, 0.0));
    assert_eq!(more("prism_judge_candidates_total{outcome=\"invalid_argument\"}"), 30.0);
    for lane in ["guard", "train", "batch"] {
        let items = format!("prism_judge_stream_item_duration_seconds_count{{lane=\"{lane}\"}}");
        assert_eq!(more(&items), 100.0, "{lane}");
    }
    let line = server.logged("\"method\":\"ScoreStream\"");
    assert!(line.contains("\"code\":\"OK\"") && line.contains("\"candidates\":300"), "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_lane_and_a_lane_that_the_key_does_not_open_are_errors_in_their_places() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys.toml");
    let mut file = String::new();
    // printf key | sha256sum
    let digest = prism_judge::digest::Digest::of_bytes(b"key");
    writeln!(file, "[[keys]]\nsha256 = \"{digest}\"\ntenant = \"t\"\nlanes = [\"train\"]").unwrap();
    std::fs::write(&keys, file).unwrap();
    // The idle model waits for company: the first request stands in the queue.
    let flags = ["--api-keys", keys.to_str().unwrap(), "--queue-tokens-train", "100", "--batch-delay-ms", "3000"];
    let Some((_folder, server)) = tiny(&[&flags[..], &["--answer-slot", "bare"]].concat()).await else { return };
    let (requests, mut results) = open(&server, Some("key")).await;
    requests.send(ask(0, "This one waits.")).await.unwrap();
    until(&server, |values| values["prism_judge_queue_age_seconds{lane=\"train\"}"] > 0.0).await;
    requests.send(ask(1, "There is no room for this one.")).await.unwrap();
    let refused = next(&mut results).await.unwrap();
    let Some(Wire::Error(error)) = refused.result else { panic!("{refused:?}") };
    assert_eq!((refused.index, error.code()), (1, pb::ErrorCode::Overloaded));
    assert!(error.retry_after_ms.unwrap() > 0, "{error:?}");
    let mut guard = ask(2, "Not with this key.");
    guard.score.as_mut().unwrap().lane = pb::Lane::Guard as i32;
    requests.send(guard).await.unwrap();
    let refused = next(&mut results).await.unwrap();
    let Some(Wire::Error(error)) = refused.result else { panic!("{refused:?}") };
    assert_eq!((refused.index, error.code()), (2, pb::ErrorCode::PermissionDenied));
    assert_eq!((error.field.as_str(), error.retry_after_ms), ("lane", None));
    assert_eq!(error.message, "lane: this key does not open the guard lane; it opens train");
    drop(requests);
    let judged = next(&mut results).await.unwrap();
    assert!(matches!((judged.index, judged.result), (0, Some(Wire::Response(_)))));
    assert_eq!(results.message().await.unwrap(), None);
    assert_eq!(metrics(&server)["prism_judge_auth_failures_total{reason=\"lane\"}"], 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_are_counted_when_they_end_by_how_they_end() {
    let Some((_folder, server)) = tiny(&["--batch-delay-ms", "5000", "--answer-slot", "bare"]).await else { return };
    // The idle model waits for company before it begins.
    // A stream of the judge with work under way that is given up, and a watcher of the health service.
    let (sender, results) = open(&server, None).await;
    for index in 0..5 {
        sender.send(ask(index, &format!("Never judged {index}."))).await.unwrap();
    }
    let mut health = HealthClient::new(server.channel().await);
    let mut watch = health.watch(HealthCheckRequest::default()).await.unwrap().into_inner();
    watch.message().await.unwrap().unwrap();
    until(&server, |values| (values[IN_FLIGHT], values[ITEMS]) == (2.0, 5.0)).await;
    let values = metrics(&server);
    assert!(["OK", "CANCELLED", "DEADLINE_EXCEEDED"].iter().all(|code| values[&requests(code)] == 0.0));
    let other = |code: &str| format!("prism_judge_requests_total{{method=\"other\",code=\"{code}\"}}");
    assert_eq!(values[&other("OK")], 0.0);
    drop((sender, results));
    until(&server, |values| values[&requests("CANCELLED")] == 1.0 && values[ITEMS] == 0.0).await;
    until(&server, |values| values["prism_judge_candidates_total{outcome=\"cancelled\"}"] == 5.0).await;
    until(&server, |values| values["prism_judge_queue_tokens{lane=\"train\"}"] == 0.0).await;
    drop(watch);
    until(&server, |values| values[&other("CANCELLED")] == 1.0 && values[IN_FLIGHT] == 0.0).await;

    // One whose time runs out.
    let (sender, receiver) = channel(10);
    let mut call = Request::new(ReceiverStream::new(receiver));
    call.metadata_mut().insert("grpc-timeout", "400m".parse().unwrap());
    let mut results = server.judge().await.score_stream(call).await.unwrap().into_inner();
    sender.send(ask(0, "Late.")).await.unwrap();
    let status = loop {
        match next(&mut results).await {
            Ok(_) => {}
            Err(status) => break status,
        }
    };
    assert_eq!(status.code(), Code::DeadlineExceeded);
    until(&server, |values| (values[&requests("DEADLINE_EXCEEDED")], values[IN_FLIGHT]) == (1.0, 0.0)).await;
    let stages = ["arrival", "prepare", "queue", "model", "follow", "other"];
    let expired = |values: &HashMap<String, f64>| {
        stages.iter().map(|stage| values[&format!("prism_judge_expired_total{{stage=\"{stage}\"}}")]).sum::<f64>()
    };
    assert_eq!(expired(&metrics(&server)), 1.0);
}
