//! The admin port: what people, probes and Prometheus find there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use support::cli::binary;
use support::server::{Server, request, tiny_model};

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_tell_how_the_server_stands() {
    let folder = tempfile::tempdir().unwrap();
    let Some(model) = tiny_model(folder.path()) else { return };
    let ports = ["serve", "--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];
    let mut command = binary(&[&ports, &["--model", model.to_str().unwrap()][..]].concat());
    let server = Server::of(command.env("RUST_LOG", "info,h2=warn")).ready().await;
    server.judge().await.score(request("Yes! Who else is in?")).await.unwrap();

    assert_eq!(server.get("/livez"), (200, "model: ready\nserver: serving\n".to_owned()));
    assert_eq!(server.get("/readyz"), (200, "model: ready\nserver: serving\n".to_owned()));
    let (status, metrics) = server.get("/metrics");
    assert_eq!(status, 200);
    for line in ["prism_judge_ready 1", "prism_judge_requests_total{method=\"Score\",code=\"OK\"} 1"] {
        assert!(metrics.lines().any(|have| have == line), "{line} is not in\n{metrics}");
    }
    let (status, queue) = server.get("/debug/queue");
    assert_eq!(status, 200);
    let queue: serde_json::Value = serde_json::from_str(&queue).unwrap();
    assert_eq!(queue["lanes"]["guard"]["queue_tokens"], 0, "{queue}");
    let (status, settings) = server.get("/configz");
    assert_eq!(status, 200);
    for line in ["drain_timeout_s = 10  # default", "log_level = \"info,h2=warn\"  # environment RUST_LOG"] {
        assert!(settings.lines().any(|have| have == line), "{line} is not in\n{settings}");
    }
    let (status, routes) = server.get("/no-such-page");
    assert_eq!(status, 404);
    assert!(routes.contains("/readyz"), "{routes}");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_answers_while_the_model_is_loading() {
    let Some(_) = support::backbone() else { return };
    let server = Server::start(&[]);
    let (status, body) = server.get("/readyz");
    // A second's worth of weights is being read.
    assert_eq!((status, body.as_str()), (503, "model: loading\nserver: serving\n"));
    assert_eq!(server.get("/livez").0, 200);
    let status = server.judge().await.score(request("Too early.")).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::Unavailable);
    server.ready().await;
}
