//! Spans, as a collector receives them from the running server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/collector.rs"]
mod collector;
mod support;

use collector::Collector;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use prism_judge::server::pb;
use support::server::{Server, request, tiny_model};
use tempfile::TempDir;
use tonic::{Code, Request};

/// The specification's own example of a caller.
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

async fn serve(endpoint: &str, more: &[&str]) -> Option<(TempDir, Server)> {
    let folder = tempfile::tempdir().unwrap();
    let model = tiny_model(folder.path())?;
    let args = ["--model", model.to_str().unwrap(), "--otlp-endpoint", endpoint];
    let server = Server::start(&[&args, more].concat()).ready().await;
    Some((folder, server))
}

/// The request as a caller with a span of its own sends it; `flags` says whether it is sampled.
fn traced<T>(message: T, flags: &str) -> Request<T> {
    let mut request = Request::new(message);
    let header = format!("00-{TRACE}-{CALLER}-{flags}");
    request.metadata_mut().insert("traceparent", header.parse().unwrap());
    request.metadata_mut().insert("tracestate", "vendor=1".parse().unwrap());
    request
}

fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An attribute as text.
fn attribute(span: &Span, key: &str) -> Option<String> {
    let value = span.attributes.iter().find(|attribute| attribute.key == key)?.value.clone()?.value?;
    Some(match value {
        Value::StringValue(text) => text,
        Value::IntValue(number) => number.to_string(),
        other => panic!("{key} is {other:?}"),
    })
}

fn named<'a>(spans: &'a [Span], name: &str) -> Vec<&'a Span> {
    spans.iter().filter(|span| span.name == name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_hangs_under_its_callers_span_and_is_linked_to_the_passes_it_took_part_in() {
    let collector = Collector::start().await;
    let Some((_folder, server)) = serve(&collector.endpoint, &["--chunk-tokens", "32"]).await else { return };
    let mut judge = server.judge().await;
    let lane = pb::Lane::Guard as i32;
    let ask = pb::ScoreRequest { lane, ..request("Yes! Who else is in?") };
    let verdict = judge.score(traced(ask.clone(), "01")).await.unwrap().into_inner().verdict.unwrap();
    // The same again comes from the cache: no pass.
    judge.score(traced(ask, "01")).await.unwrap();
    let bad = pb::ScoreRequest { candidate: None, ..request("") };
    assert_eq!(judge.score(traced(bad, "01")).await.unwrap_err().code(), Code::InvalidArgument);

    let spans = collector.wait_for(|spans| named(spans, "Score").len() == 3).await;
    let calls = named(&spans, "Score");
    for call in &calls {
        assert_eq!((hex(&call.trace_id).as_str(), hex(&call.parent_span_id).as_str()), (TRACE, CALLER));
        assert_eq!((call.kind, call.trace_state.as_str()), (SpanKind::Server as i32, "vendor=1"));
        assert!(call.end_time_unix_nano >= call.start_time_unix_nano);
    }
    let told = |call: &Span, key: &str| attribute(call, key).unwrap_or_default();
    let by_status = |status: &'static str| calls.iter().filter(move |call| told(call, "rpc.grpc.status") == status);
    let (computed, cached): (Vec<&Span>, Vec<&Span>) =
        by_status("OK").copied().partition(|call| told(call, "prism.candidates.cached") == "0");
    let ([computed], [cached]) = (computed.as_slice(), cached.as_slice()) else { panic!("{calls:#?}") };
    assert_eq!(by_status("INVALID_ARGUMENT").count(), 1);

    let tokens = verdict.tokens.unwrap();
    assert_eq!(told(computed, "prism.lane"), "guard");
    assert_eq!(told(computed, "prism.candidates"), "1");
    assert_eq!(told(computed, "prism.tokens.prompt"), tokens.prompt.to_string());
    assert_eq!(told(computed, "prism.tokens.computed"), tokens.computed.to_string());
    assert_eq!(told(cached, "prism.tokens.computed"), "0");

    let batches = named(&spans, "batch");
    let sizes: u64 = batches.iter().map(|batch| told(batch, "prism.tokens").parse::<u64>().unwrap()).sum();
    assert_eq!(sizes, tokens.computed, "every pass has a span");
    assert!(batches.len() >= 2, "more than 32 tokens");
    let linked: Vec<_> = computed.links.iter().map(|link| (link.trace_id.clone(), link.span_id.clone())).collect();
    let passes: Vec<_> = batches.iter().map(|batch| (batch.trace_id.clone(), batch.span_id.clone())).collect();
    assert_eq!(linked, passes);
    for batch in batches {
        assert_ne!(hex(&batch.trace_id), TRACE, "a pass belongs to no single call");
        let callers: Vec<_> = batch.links.iter().map(|link| &link.span_id).collect();
        assert_eq!(callers, [&computed.span_id]);
    }
    assert!(cached.links.is_empty());

    let received = collector.received();
    let resource = received[0].resource_spans[0].resource.as_ref().unwrap();
    let service = resource.attributes.iter().find(|attribute| attribute.key == "service.name").unwrap();
    assert!(format!("{service:?}").contains("prism-judge"), "{service:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_share_a_pass_are_linked_to_one_span() {
    let collector = Collector::start().await;
    // An idle model waits so long for company, or until there are so many tokens.
    let delay = ["--batch-delay-ms", "1000", "--max-batch-tokens", "4096", "--chunk-tokens", "4096"];
    let Some((_folder, server)) = serve(&collector.endpoint, &delay).await else { return };
    let judge = server.judge().await;
    let calls = (0..12).map(|call| {
        let mut judge = judge.clone();
        // Each has some hundred tokens: a few of them fill a batch.
        let response = format!("{call}: {}", "I would rather stay in with a book. ".repeat(8));
        tokio::spawn(async move { judge.score(traced(request(&response), "01")).await.map(drop) })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap().unwrap();
    }
    let spans = collector.wait_for(|spans| named(spans, "Score").len() == 12).await;
    let shared =
        named(&spans, "batch").into_iter().find(|batch| batch.links.len() > 1).expect("a pass of several calls");
    for caller in &shared.links {
        let call = spans.iter().find(|span| span.span_id == caller.span_id).unwrap();
        assert!(call.links.iter().any(|link| link.span_id == shared.span_id), "{call:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_caller_decides_what_is_traced_and_else_the_ratio() {
    let collector = Collector::start().await;
    let Some((_folder, server)) = serve(&collector.endpoint, &["--otlp-sample-ratio", "0"]).await else { return };
    let mut judge = server.judge().await;
    judge.score(request("One.")).await.unwrap();
    judge.score(traced(request("Two."), "00")).await.unwrap();
    judge.score(traced(request("Three."), "01")).await.unwrap();
    server.signal("TERM");
    assert_eq!(server.end().code(), Some(0));
    // What was still unsent came before the end.
    assert_eq!(named(&collector.spans(), "Score").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_away_costs_spans_and_no_call() {
    // A port that nobody listens on any more.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let Some((_folder, server)) = serve(&format!("http://{port}"), &[]).await else { return };
    let mut judge = server.judge().await;
    for call in 0..50 {
        judge.score(traced(request(&format!("Call {call}.")), "01")).await.unwrap();
    }
    let failed = || {
        let (_, metrics) = server.get("/metrics");
        let line = "prism_judge_trace_spans_total{result=\"failed\"} ";
        metrics.lines().find_map(|have| have.strip_prefix(line)).unwrap().parse::<u64>().unwrap()
    };
    let counted = tokio::time::timeout(std::time::Duration::from_secs(30), async {
        while failed() < 50 {
            tokio::task::yield_now().await;
        }
    });
    counted.await.expect("spans that could not be sent are counted");
    server.signal("TERM");
    assert_eq!(server.end().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_over_http_hangs_under_its_callers_span_too() {
    let collector = Collector::start().await;
    let Some((_folder, server)) = serve(&collector.endpoint, &[]).await else { return };
    let parent = format!("00-{TRACE}-{CALLER}-01");
    let body = serde_json::json!({"prompt": "Coming?", "response": "Yes!", "label": {"description": "A kind person."}});
    assert_eq!(support::http::post(&server.http, "/reward", &[("traceparent", &parent)], &body).status, 200);
    let spans = collector.wait_for(|spans| !named(spans, "ScoreGroup").is_empty()).await;
    let call = named(&spans, "ScoreGroup")[0];
    assert_eq!((hex(&call.trace_id).as_str(), hex(&call.parent_span_id).as_str()), (TRACE, CALLER));
    let told = |key| attribute(call, key).unwrap_or_default();
    assert_eq!(
        (told("http.route"), told("rpc.system"), told("prism.candidates")),
        ("/reward".into(), String::new(), "1".into())
    );
}
