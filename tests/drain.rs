//! The end of a server: SIGTERM under load, with clients that do not help.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prism_judge::server::pb;
use support::server::{Server, request, tiny_model};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

fn start(model: &Path, more: &[&str]) -> Server {
    Server::start(&[&["--model", model.to_str().unwrap()], more].concat())
}

/// Twenty servers in turn, each with calls under way, bare sockets, half a preface, an idle client and a health watcher.
/// A call either has its verdict or is told that it was not begun; none is lost.
#[tokio::test(flavor = "multi_thread")]
async fn twenty_servers_end_in_order_under_load() {
    let folder = tempfile::tempdir().unwrap();
    let Some(model) = tiny_model(folder.path()) else { return };
    for round in 0..20 {
        let server = start(&model, &[]).ready().await;
        let bare = TcpStream::connect(&server.address).await.unwrap();
        let mut half = TcpStream::connect(&server.address).await.unwrap();
        half.write_all(b"PRI * HTTP/2.0\r\n").await.unwrap();
        let idle = server.channel().await;
        let watch = HealthClient::new(server.channel().await).watch(HealthCheckRequest::default()).await.unwrap();

        let answered = Arc::<AtomicU64>::default();
        let mut callers = JoinSet::new();
        for caller in 0..4 {
            let (mut judge, answered) = (server.judge().await, Arc::clone(&answered));
            callers.spawn(async move {
                for call in 0.. {
                    match judge.score(request(&format!("Round {round}, caller {caller}, call {call}."))).await {
                        Ok(reply) => assert!(reply.into_inner().verdict.is_some()),
                        Err(status) => return status,
                    }
                    answered.fetch_add(1, Ordering::Relaxed);
                }
                unreachable!()
            });
        }
        // Under load.
        while answered.load(Ordering::Relaxed) < 8 {
            tokio::task::yield_now().await;
        }
        server.signal("TERM");
        let last = callers.join_all().await;
        for status in last {
            // The connection is closed after its last answer: a new call finds no server, and was not begun.
            assert!([Code::Unavailable, Code::Cancelled, Code::Unknown].contains(&status.code()), "{status:?}");
        }
        let status = tokio::task::spawn_blocking(|| server.end()).await.unwrap();
        assert_eq!(status.code(), Some(0), "round {round}");
        drop((bare, half, idle, watch));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn before_the_drain_it_is_not_ready_and_still_answers() {
    let folder = tempfile::tempdir().unwrap();
    let Some(model) = tiny_model(folder.path()) else { return };
    let server = start(&model, &["--drain-delay-s", "3600"]).ready().await;
    let mut judge = server.judge().await;
    assert_eq!(server.get("/readyz").0, 200);
    server.signal("TERM");
    server.logged("stopping: not ready");
    let (status, body) = server.get("/readyz");
    assert_eq!((status, body.as_str()), (503, "model: ready\nserver: stopping\n"));
    assert_eq!(server.get("/livez").0, 200);
    assert!(judge.score(request("Still here?")).await.is_ok());
    // So do new connections, until the drain.
    assert!(server.judge().await.get_judge_info(pb::GetJudgeInfoRequest {}).await.is_ok());
    // A second signal ends it at once.
    server.signal("TERM");
    let status = tokio::task::spawn_blocking(|| server.end()).await.unwrap();
    assert_eq!(status.code(), Some(143));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_end_within_the_drain_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let Some(model) = tiny_model(folder.path()) else { return };
    // Calls wait for company for ten seconds before the model begins.
    let server = start(&model, &["--drain-timeout-s", "0", "--batch-delay-ms", "10000"]).ready().await;
    let mut judge = server.judge().await;
    let call = tokio::spawn(async move { judge.score(request("Never judged.")).await });
    let mut info = server.judge().await;
    loop {
        let (_, queue) = server.get("/debug/queue");
        let queue: serde_json::Value = serde_json::from_str(&queue).unwrap();
        if queue["lanes"]["train"]["queue_tokens"].as_u64().unwrap() > 0 {
            break;
        }
        info.get_judge_info(pb::GetJudgeInfoRequest {}).await.unwrap();
    }
    server.signal("TERM");
    let status = call.await.unwrap().unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert!(status.message().contains("stopping"), "{}", status.message());
    let status = tokio::task::spawn_blocking(|| server.end()).await.unwrap();
    assert_eq!(status.code(), Some(0));
}
