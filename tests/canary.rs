//! No text of a request and no key in logs, metrics or traces, however loud they are.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/collector.rs"]
mod collector;
mod support;

use std::io::Write as _;
use std::net::TcpStream;
use std::path::Path;

use collector::Collector;
use prism_judge::server::pb;
use serde_json::json;
use support::cli::{binary, run};
use support::http::post;
use support::server::{Server, request, tiny_model};
use tonic::metadata::MetadataValue;
use tonic::{Code, Request};

/// Strings that a leak would carry along, one for each place that a text can come from.
const CANARIES: [&str; 10] = [
    "canary-description-4e1f",
    "canary-fact-90ab",
    "canary-speaker-77d2",
    "canary-context-c3b8",
    "canary-response-51fe",
    "canary-candidate-id-e0c7",
    "canary-request-id-8d26",
    "canary-key-2b93",
    "canary-header-6a5c",
    "canary-method-f418",
];

/// Where a canary must not be.
struct Heard {
    log: String,
    metrics: String,
    spans: String,
}

impl Heard {
    /// The canaries in it, and where.
    fn hits(&self, canaries: &[&str]) -> Vec<String> {
        let places = [("log", &self.log), ("metrics", &self.metrics), ("spans", &self.spans)];
        let mut hits = Vec::new();
        for (place, text) in places {
            for line in text.lines().filter(|line| canaries.iter().any(|canary| finds(line, canary))) {
                hits.push(format!("{place}: {line}"));
            }
        }
        hits
    }
}

/// Whether a text has a canary as it is, or as a list of bytes, as libraries print buffers.
fn finds(text: &str, canary: &str) -> bool {
    let numbers = canary.bytes().map(|byte| byte.to_string()).collect::<Vec<_>>().join(", ");
    text.to_lowercase().contains(canary) || text.contains(&numbers)
}

/// A request with a canary in every text.
fn full() -> pb::ScoreRequest {
    let mut ask = request(CANARIES[4]);
    let persona = ask.persona.as_mut().unwrap();
    persona.description = format!("A person. {}", CANARIES[0]);
    persona.facts = vec![CANARIES[1].to_owned()];
    ask.context = vec![pb::Turn { speaker: CANARIES[2].to_owned(), text: CANARIES[3].to_owned() }];
    ask.candidate.as_mut().unwrap().id = CANARIES[5].to_owned();
    ask.request_id = CANARIES[6].to_owned();
    ask
}

fn with<T>(key: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    let value: MetadataValue<_> = format!("Bearer {key}").parse().unwrap();
    request.metadata_mut().insert("authorization", value);
    request.metadata_mut().insert("x-note", CANARIES[8].parse().unwrap());
    request.metadata_mut().insert_bin("x-note-bin", MetadataValue::from_bytes(CANARIES[8].as_bytes()));
    request
        .metadata_mut()
        .insert("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".parse().unwrap());
    request
}

/// Every kind of request, with a key and with wrong ones.
async fn everything(server: &Server, key: &str) {
    let mut judge = server.judge().await;
    judge.score(with(key, full())).await.unwrap();
    let cached = judge.score(with(key, full())).await.unwrap().into_inner().verdict.unwrap();
    assert!(cached.cached);

    // What a person does not see, what a model takes for structure, what no vocabulary has.
    for text in ["\u{0}\u{1}\u{7f}", "\u{202e}\u{2066}", "\u{200b}\u{feff}", "<|im_start|>system", "\u{10ffff}"] {
        let mut odd = full();
        odd.candidate.as_mut().unwrap().response.push_str(text);
        odd.context[0].text.push_str(text);
        // Judged or refused: both must stay silent about the text.
        let _ = judge.score(with(key, odd)).await;
    }
    // Fields at fault, whose errors quote them.
    let wrong: [fn(&mut pb::ScoreRequest); 7] = [
        |ask| ask.persona = None,
        |ask| ask.candidate = None,
        |ask| ask.candidate.as_mut().unwrap().response = String::new(),
        |ask| ask.lane = 99,
        |ask| ask.context[0].text = String::new(),
        |ask| ask.context[0].speaker = CANARIES[2].repeat(1_000),
        |ask| ask.candidate.as_mut().unwrap().response = format!("{} ", CANARIES[4]).repeat(20_000),
    ];
    for (at, wrong) in wrong.into_iter().enumerate() {
        let mut ask = full();
        wrong(&mut ask);
        let answer = judge.score(with(key, ask)).await;
        assert!(at >= 4 || answer.is_err(), "request {at} is not refused");
    }
    // More than the lane has room for, all at once.
    let mut crowd = tokio::task::JoinSet::new();
    for call in 0..64 {
        let (mut judge, key) = (judge.clone(), key.to_owned());
        crowd.spawn(async move {
            let mut ask = full();
            ask.candidate.as_mut().unwrap().response = format!("{} {call}", CANARIES[4]);
            judge.score(with(&key, ask)).await.map(drop).map_err(|status| status.code())
        });
    }
    let answers = crowd.join_all().await;
    assert!(answers.contains(&Err(Code::ResourceExhausted)), "{answers:?}");
    // Too late, and given up.
    let mut late = with(key, full());
    late.set_timeout(std::time::Duration::from_micros(1));
    let _ = judge.score(late).await;
    let given_up = with(key, full());
    let given_up = tokio::spawn(async move { judge.score(given_up).await.map(drop) });
    tokio::task::yield_now().await;
    given_up.abort();

    let mut judge = server.judge().await;
    for key in [CANARIES[7], "", "\u{7f}"] {
        if format!("Bearer {key}").parse::<MetadataValue<tonic::metadata::Ascii>>().is_ok() {
            assert_eq!(judge.score(with(key, full())).await.unwrap_err().code(), Code::Unauthenticated);
        }
    }
    let mut anything = tonic::client::Grpc::new(server.channel().await);
    anything.ready().await.unwrap();
    let path = format!("/{}/Do", CANARIES[9]).parse().unwrap();
    let codec: tonic_prost::ProstCodec<pb::ScoreRequest, pb::ScoreResponse> = tonic_prost::ProstCodec::default();
    anything.unary(with(key, full()), path, codec).await.unwrap_err();
    // Bytes that are no HTTP/2 and no message.
    for bytes in [CANARIES[4].as_bytes().to_vec(), format!("GET /{} HTTP/1.1\r\n\r\n", CANARIES[9]).into_bytes()] {
        // The server may have hung up by then.
        let _ = TcpStream::connect(&server.address).unwrap().write_all(&bytes);
    }
    let (status, _) = server.get(&format!("/{}", CANARIES[9]));
    assert_eq!(status, 404);
    over_http(server, key);
}

/// Every kind of request to the HTTP port.
fn over_http(server: &Server, key: &str) {
    let bearer = format!("Bearer {key}");
    let headers = [("authorization", bearer.as_str()), ("x-note", CANARIES[8])];
    let messages = json!([{"role": CANARIES[2], "content": CANARIES[3]}]);
    let persona = json!({"description": format!("A person. {}", CANARIES[0]), "facts": [CANARIES[1]]});
    let reward = json!({"prompt": messages, "response": CANARIES[4], "label": persona});
    assert_eq!(post(&server.http, "/reward", &headers, &reward).status, 200);
    let system = json!([{"role": "system", "content": CANARIES[0]}, {"role": "user", "content": CANARIES[3]}]);
    let litellm = "/beta/litellm_basic_guardrail_api";
    let before = json!({"input_type": "request", "litellm_call_id": CANARIES[6], "structured_messages": system});
    let after = json!({"input_type": "response", "litellm_call_id": CANARIES[6], "texts": [CANARIES[4]]});
    for body in [before, after] {
        assert_eq!(post(&server.http, litellm, &headers, &body).status, 200);
    }
    let wrong = json!({"candidate": {"id": CANARIES[5], "response": CANARIES[4]}, "request_id": CANARIES[6], "lane": CANARIES[0]});
    for (path, headers, body, status) in [
        ("/v1/score", &headers[..], wrong, 400),
        ("/v1/score", &headers, json!({CANARIES[0]: CANARIES[1]}), 400),
        ("/reward", &headers, json!({"response": CANARIES[4], "label": CANARIES[5]}), 404),
        (&format!("/reward?{}={}", CANARIES[0], CANARIES[1]), &headers, reward.clone(), 400),
        (&format!("/{}", CANARIES[9]), &headers, reward.clone(), 404),
        ("/reward", &[("authorization", CANARIES[7])], reward.clone(), 401),
        ("/reward", &[headers[0], ("x-timeout-ms", CANARIES[8])], reward.clone(), 400),
        ("/reward", &[headers[0], ("content-type", CANARIES[8])], reward.clone(), 415),
    ] {
        let reply = post(&server.http, path, headers, &body);
        assert_eq!(reply.status, status, "{path}: {}", reply.body);
    }
}

/// A server as loud as it can be, with a key of its own; what was heard of it.
async fn heard(folder: &Path, model: &Path, log: &[&str]) -> (Heard, String) {
    let collector = Collector::start().await;
    let made = run(&["keys", "new", "--tenant", "tenant"], b"");
    let key = String::from_utf8(made.stderr).unwrap().trim().to_owned();
    let keys = folder.join("keys.toml");
    std::fs::write(&keys, made.stdout).unwrap();
    let (model, keys) = (model.to_str().unwrap(), keys.to_str().unwrap());
    let args = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--http-listen",
        "127.0.0.1:0",
        "--admin-listen",
        "127.0.0.1:0",
        "--model",
        model,
        "--api-keys",
        keys,
    ];
    let more = ["--queue-tokens-train", "2000", "--otlp-endpoint", &*collector.endpoint];
    let mut command = binary(&[&args[..], &more[..], log].concat());
    command.env("RUST_LOG", "trace");
    let server = Server::of(&mut command).ready().await;
    everything(&server, &key).await;
    collector.wait_for(|spans| spans.iter().any(|span| span.name == "batch")).await;
    let (_, metrics) = server.get("/metrics");
    server.signal("TERM");
    // The log ends with the process.
    let log: Vec<String> = std::iter::from_fn(|| server.log.recv().ok()).collect();
    assert_eq!(server.end().code(), Some(0));
    let spans = collector.received().iter().map(|request| format!("{request:?}\n")).collect();
    (Heard { log: log.join("\n"), metrics, spans }, key)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_text_and_no_key_is_in_any_log_metric_or_trace() {
    let folder = tempfile::tempdir().unwrap();
    let Some(model) = tiny_model(folder.path()) else { return };
    for format in ["json", "pretty"] {
        let (heard, key) = heard(folder.path(), &model, &["--log-format", format]).await;
        let secrets = [&CANARIES[..], &[key.as_str(), key.strip_prefix("prism-").unwrap()]].concat();
        assert_eq!(heard.hits(&secrets), Vec::<String>::new(), "{format}");
        // There was something to hear.
        assert!(heard.log.contains("RESOURCE_EXHAUSTED") && heard.log.contains("UNAUTHENTICATED"), "{}", heard.log);
        assert!(heard.metrics.contains("prism_judge_requests_total") && heard.spans.contains("prism.lane"));
        if format == "json" {
            for line in heard.log.lines() {
                let line: serde_json::Value =
                    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
                assert!(line["timestamp"].is_string() && line["level"].is_string(), "{line}");
            }
        }
    }
}

#[test]
fn a_canary_is_found_where_it_is() {
    let heard = |text: String| Heard { log: text, metrics: String::new(), spans: String::new() };
    for text in [CANARIES[0].to_owned(), CANARIES[0].to_uppercase(), format!("{:?}", CANARIES[0].as_bytes())] {
        assert_eq!(heard(text.clone()).hits(&CANARIES).len(), 1, "{text}");
    }
    assert!(heard("a log line".to_owned()).hits(&CANARIES).is_empty());
}
