//! Our own routes, and how requests live and end.

use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{Harness, Reply, post};
use crate::server::ServerOptions;
use crate::service::{CacheControl, Lane};

fn score(response: &str) -> Value {
    json!({"persona": {"description": "kind"}, "candidate": {"id": "c", "response": response}, "request_id": "r"})
}

#[tokio::test]
async fn our_own_routes_speak_the_json_mapping_of_the_contract() {
    let harness = Harness::with(Default::default()).await;
    let mut request = score("one");
    request["lane"] = json!("LANE_GUARD");
    request["cache"] = json!("CACHE_CONTROL_REFRESH");
    let reply = harness.post("/v1/score", &request).await;
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
    let answer = reply.json();
    assert_eq!((&answer["request_id"], &answer["verdict"]["id"]), (&json!("r"), &json!("c")));
    assert_eq!(answer["verdict"]["weakest_dimension"], "DIMENSION_TASK_FRAMING");
    // A number of 64 bits is a text; what is not set is not there.
    assert_eq!(answer["verdict"]["tokens"]["prompt"], "9");
    assert!(answer["verdict"]["dimensions"]["task_framing"].get("label_mass").is_none());
    assert!(reply.body.contains("\"s_prism\":1.0"), "{}", reply.body);
    let call = harness.strings.called.try_iter().next().unwrap();
    assert_eq!((call.lane, call.cache, call.request_id.as_str()), (Lane::Guard, CacheControl::Refresh, "r"));

    let group =
        json!({"persona_id": "kind", "candidates": [{"id": "a", "response": "x"}, {"id": "b", "response": "nan"}]});
    let answer = harness.post("/v1/score_group", &group).await.json();
    assert_eq!(
        (&answer["results"][1]["index"], &answer["results"][1]["error"]["code"]),
        (&json!(1), &json!("ERROR_CODE_NON_FINITE"))
    );
    let info = harness.get("/v1/info").await;
    assert_eq!((info.status, &info.json()["model"]), (200, &json!("fake")));
}

#[tokio::test]
async fn our_own_routes_clean_nothing_unless_they_are_asked_to() {
    let harness = Harness::with(Default::default()).await;
    let request = score("<think>a</think>b<|im_end|>");
    harness.post("/v1/score", &request).await;
    harness.post("/v1/score?strip_think=true&strip_end=true", &request).await;
    let judged: Vec<_> = harness.asked().into_iter().map(|(_, replies)| replies.concat()).collect();
    assert_eq!(judged, ["<think>a</think>b<|im_end|>", "b"]);
}

#[tokio::test]
async fn until_the_model_is_loaded_everybody_is_told_to_come_back() {
    let (loaded, load) = mpsc::channel();
    let harness = Harness::loading(load, ServerOptions::default()).await;
    let reply = harness.post("/v1/score", &score("one")).await;
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")));
    assert_eq!((reply.error().1.as_str(), &reply.json()["error"]["retry_after_ms"]), ("LOADING", &json!(1000)));
    let reply = harness.post("/reward", &json!({"response": "x", "label": "kind"})).await;
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")));
    assert_eq!(harness.get("/v1/info").await.status, 503);
    let health = harness.get("/health").await;
    assert_eq!((health.status, &health.json()["status"]), (503, &json!("UNHEALTHY")));
    loaded.send(()).unwrap();
    while harness.get("/health").await.status != 200 {
        tokio::task::yield_now().await;
    }
    assert_eq!(harness.post("/v1/score", &score("one")).await.status, 200);
}

#[tokio::test]
async fn a_timeout_is_504_and_stops_the_work() {
    let harness = Harness::with(Default::default()).await;
    for header in [("x-timeout-ms", "40"), ("grpc-timeout", "40m")] {
        let reply = harness.post_with("/v1/score", &[header], &score("wait").to_string()).await;
        assert_eq!((reply.status, reply.error().0.as_str()), (504, "DEADLINE_EXCEEDED"));
        harness.strings.stopped.recv_timeout(Duration::from_secs(60)).unwrap();
    }
    let reply = harness.post_with("/v1/score", &[("x-timeout-ms", "soon")], &score("one").to_string()).await;
    assert_eq!((reply.status, reply.error().2.as_str()), (400, "x-timeout-ms"));
    let reply = harness.post_with("/v1/score", &[("x-timeout-ms", "60000")], &score("one").to_string()).await;
    assert_eq!(reply.status, 200);
}

#[tokio::test]
async fn a_client_that_goes_away_stops_its_work() {
    let mut harness = Harness::kind().await;
    let mut stream = TcpStream::connect(harness.address).await.unwrap();
    stream.write_all(post("/reward", &[], "{\"response\":\"wait\"}").as_bytes()).await.unwrap();
    harness.strings.waiting.take().unwrap().await.unwrap();
    drop(stream);
    tokio::task::spawn_blocking(move || harness.strings.stopped.recv().unwrap()).await.unwrap();
}

#[tokio::test]
async fn a_panic_is_an_error_of_its_request_alone() {
    let harness = Harness::kind().await;
    assert_eq!(harness.post("/v1/score", &score("panic")).await.status, 500);
    assert_eq!(harness.post("/reward", &json!({"response": "panic"})).await.status, 500);
    assert_eq!(harness.post("/reward", &json!({"response": "one"})).await.status, 200);
}

/// Reads one answer of a connection that stays open.
async fn answer(stream: &mut TcpStream) -> Reply {
    let mut text = String::new();
    loop {
        let mut piece = [0; 4096];
        let read = stream.read(&mut piece).await.unwrap();
        assert!(read > 0, "it was closed after {text:?}");
        text.push_str(std::str::from_utf8(&piece[..read]).unwrap());
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
        if body.len() == length.unwrap() {
            return Reply::of(&text);
        }
    }
}

fn kept_open(body: &str) -> String {
    post("/reward", &[], body).replace("connection: close\r\n", "")
}

#[tokio::test]
async fn the_stop_lets_a_request_in_flight_finish_and_waits_for_no_idle_connection() {
    let mut harness = Harness::kind().await;
    let mut idle = TcpStream::connect(harness.address).await.unwrap();
    idle.write_all(kept_open("{\"response\":\"one\"}").as_bytes()).await.unwrap();
    assert_eq!(answer(&mut idle).await.body, "1.0");
    // Half a head, and a connection that never speaks.
    let mut half = TcpStream::connect(harness.address).await.unwrap();
    half.write_all(b"POST /reward HTTP/1.1\r\nhost: ju").await.unwrap();
    let silent = TcpStream::connect(harness.address).await.unwrap();
    let mut busy = TcpStream::connect(harness.address).await.unwrap();
    busy.write_all(kept_open("{\"response\":\"wait\"}").as_bytes()).await.unwrap();
    harness.strings.waiting.take().unwrap().await.unwrap();

    harness.stop.take().unwrap().send(()).unwrap();
    let mut rest = Vec::new();
    idle.read_to_end(&mut rest).await.unwrap();
    assert!(rest.is_empty());
    harness.strings.released.notify_one();
    let last = answer(&mut busy).await;
    assert_eq!((last.status, last.header("connection")), (200, Some("close")));
    harness.served.await.unwrap().unwrap();
    assert!(TcpStream::connect(harness.address).await.is_err());
    drop((half, silent));
}

#[tokio::test]
async fn what_is_not_done_by_the_end_of_the_drain_is_told_so() {
    let options = ServerOptions { drain_timeout: Duration::ZERO, ..ServerOptions::default() };
    let mut harness = Harness::with(options).await;
    let mut busy = TcpStream::connect(harness.address).await.unwrap();
    busy.write_all(post("/v1/score", &[], &score("wait").to_string()).as_bytes()).await.unwrap();
    harness.strings.waiting.take().unwrap().await.unwrap();
    harness.stop.take().unwrap().send(()).unwrap();
    let last = answer(&mut busy).await;
    assert_eq!((last.status, last.header("retry-after"), last.error().1.as_str()), (503, Some("1"), "STOPPING"));
    harness.served.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_connection_serves_many_requests() {
    let harness = Harness::kind().await;
    let mut stream = TcpStream::connect(harness.address).await.unwrap();
    for response in ["one", "zero", "", "one"] {
        stream.write_all(kept_open(&json!({"response": response}).to_string()).as_bytes()).await.unwrap();
        let expected = if response.is_empty() { 400 } else { 200 };
        assert_eq!(answer(&mut stream).await.status, expected);
    }
}

#[tokio::test]
async fn the_page_and_the_document_are_there_and_say_what_they_are() {
    let harness = Harness::with(Default::default()).await;
    let page = harness.get("/").await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert_eq!(
        page.header("content-security-policy").map(|policy| policy.starts_with("default-src 'self'")),
        Some(true)
    );
    assert_eq!(harness.get("/page/index.html").await.body, page.body);
    let document = harness.get("/openapi.json").await;
    assert_eq!((document.status, document.header("content-type")), (200, Some("application/json")));
    assert!(document.json()["openapi"].as_str().unwrap().starts_with("3.1"));
}
