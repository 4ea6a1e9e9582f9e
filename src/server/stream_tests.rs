//! Calls that have several answers: how far they are read ahead, and how they end.

use std::sync::atomic::AtomicU64;

use tokio::sync::mpsc::{Sender, channel};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

use super::pb::score_stream_response::Result as Wire;
use super::*;

/// Requests of a stream that are judged at a time.
const AHEAD: usize = 64;

fn ask(request_id: &str, response: &str) -> pb::ScoreStreamRequest {
    let score = pb::ScoreRequest { request_id: request_id.into(), ..score(response) };
    pb::ScoreStreamRequest { score: Some(score) }
}

/// A stream that stays open, and where its requests go in.
async fn open(harness: &Harness) -> (Sender<pb::ScoreStreamRequest>, Streaming<pb::ScoreStreamResponse>) {
    let (requests, receiver) = channel(1000);
    let results = harness.judge().score_stream(ReceiverStream::new(receiver)).await.unwrap().into_inner();
    (requests, results)
}

async fn next(results: &mut Streaming<pb::ScoreStreamResponse>) -> Result<pb::ScoreStreamResponse, Status> {
    results.message().await.map(|message| message.expect("the stream ended in order"))
}

/// Waits for so many judgements to begin.
async fn called(strings: &Strings, mut times: usize) {
    while times > 0 {
        match strings.called.try_recv() {
            Ok(_) => times -= 1,
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_read_so_far_ahead_of_its_results_and_no_further_and_its_caller_is_held_back() {
    const REQUESTS: u64 = 400;
    /// What may be on its way beside: windows of 1 MiB and buffers, in requests of 64 KiB.
    const ON_THE_WAY: u64 = 64;
    let harness = Harness::ready().await;
    let sent = Arc::<AtomicU64>::default();
    let text = "t".repeat(64 << 10);
    let requests = {
        let sent = Arc::clone(&sent);
        tokio_stream::iter((0..REQUESTS).map(move |index| {
            sent.fetch_add(1, Ordering::SeqCst);
            let mut request = ask(&index.to_string(), "wait");
            let context = vec![pb::Turn { speaker: "User".into(), text: text.clone() }];
            request.score.as_mut().unwrap().context = context;
            request
        }))
    };
    let mut results = harness.judge().score_stream(requests).await.unwrap().into_inner();
    called(&harness.strings, AHEAD).await;
    let mut seen = Vec::new();
    for answered in 0..REQUESTS {
        let sent = sent.load(Ordering::SeqCst);
        assert!(sent <= answered + AHEAD as u64 + ON_THE_WAY, "{sent} were sent when {answered} had results");
        harness.strings.released.notify_one();
        let result = next(&mut results).await.unwrap();
        assert_eq!(result.request_id, result.index.to_string());
        assert!(matches!(result.result, Some(Wire::Response(_))), "{result:?}");
        seen.push(result.index);
    }
    assert_eq!(results.message().await.unwrap(), None);
    assert_eq!(harness.strings.crowd.most.load(Ordering::SeqCst), AHEAD);
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..REQUESTS), "each request has one result");
}

#[tokio::test]
async fn results_come_as_they_are_done_and_a_request_that_fails_has_its_error_in_their_midst() {
    let harness = Harness::ready().await;
    let (requests, mut results) = open(&harness).await;
    requests.send(ask("slow", "wait")).await.unwrap();
    called(&harness.strings, 1).await;
    requests.send(pb::ScoreStreamRequest { score: None }).await.unwrap();
    let expected = |id: &str, index, code, field: &str, message: &str| {
        let error =
            pb::JudgeError { code: code as i32, field: field.into(), message: message.into(), retry_after_ms: None };
        pb::ScoreStreamResponse { request_id: id.into(), index, result: Some(Wire::Error(error)) }
    };
    let invalid = pb::ErrorCode::InvalidArgument;
    assert_eq!(next(&mut results).await.unwrap(), expected("", 1, invalid, "score", "score: is missing"));
    for (index, id, response, code, field, message) in [
        (2, "empty", "", invalid, "candidate.response", "is empty"),
        (3, "odd", "nan", pb::ErrorCode::NonFinite, "", "not finite"),
        (4, "broken", "panic", pb::ErrorCode::Internal, "", "the judge failed on this request"),
    ] {
        requests.send(ask(id, response)).await.unwrap();
        assert_eq!(next(&mut results).await.unwrap(), expected(id, index, code, field, message));
    }
    let mut unknown = ask("nobody", "hi");
    unknown.score.as_mut().unwrap().persona = None;
    unknown.score.as_mut().unwrap().persona_id = "eve".into();
    requests.send(unknown).await.unwrap();
    assert_eq!(next(&mut results).await.unwrap(), expected("nobody", 5, pb::ErrorCode::NotFound, "", "no eve"));
    let mut several = ask("several", "hi");
    several.score.as_mut().unwrap().lane = 9;
    several.score.as_mut().unwrap().shaping = Some(pb::Shaping { group_z_score: true, ..pb::Shaping::default() });
    requests.send(several).await.unwrap();
    let Some(Wire::Error(error)) = next(&mut results).await.unwrap().result else { panic!("a result") };
    assert_eq!((error.code(), error.field.as_str()), (invalid, "shaping.group_z_score"));
    assert!(error.message.ends_with("(and 1 more)"), "{}", error.message);
    // An id that is no id is not echoed.
    requests.send(ask(&"r".repeat(1025), "hi")).await.unwrap();
    let long = next(&mut results).await.unwrap();
    let Some(Wire::Error(error)) = long.result else { panic!("a result") };
    assert_eq!((long.request_id.as_str(), long.index, error.field.as_str()), ("", 7, "request_id"));

    drop(requests);
    harness.strings.released.notify_one();
    let slow = next(&mut results).await.unwrap();
    assert_eq!((slow.request_id.as_str(), slow.index), ("slow", 0));
    assert_eq!(results.message().await.unwrap(), None);
}

#[tokio::test]
async fn every_request_of_a_stream_has_its_own_lane_and_its_reward() {
    let harness = Harness::ready().await;
    let (requests, mut results) = open(&harness).await;
    for lane in [pb::Lane::Guard, pb::Lane::Batch] {
        let mut request = ask("r", "hi");
        let score = request.score.as_mut().unwrap();
        score.lane = lane as i32;
        score.shaping = Some(pb::Shaping { signal: pb::RewardSignal::Margin as i32, ..pb::Shaping::default() });
        requests.send(request).await.unwrap();
        let Some(Wire::Response(response)) = next(&mut results).await.unwrap().result else { panic!("an error") };
        // The fake's posterior is 1/2, 1/4, 1/4 on every dimension.
        assert_eq!((response.request_id.as_str(), response.reward), ("r", Some(0.25)));
    }
    let calls: Vec<_> = harness.strings.called.try_iter().map(|call| (call.lane, call.method)).collect();
    assert_eq!(calls, [(Lane::Guard, "ScoreStream"), (Lane::Batch, "ScoreStream")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_given_up_stops_all_of_its_work() {
    const REQUESTS: usize = 10;
    let harness = Harness::ready().await;
    let (requests, results) = open(&harness).await;
    for _ in 0..REQUESTS {
        requests.send(ask("r", "wait")).await.unwrap();
    }
    called(&harness.strings, REQUESTS).await;
    drop((results, requests));
    let Strings { stopped, crowd, .. } = harness.strings;
    let all_stopped = move || (0..REQUESTS).for_each(|_| stopped.recv().unwrap());
    tokio::task::spawn_blocking(all_stopped).await.unwrap();
    assert_eq!(crowd.most.load(Ordering::SeqCst), REQUESTS);
}

#[tokio::test]
async fn the_deadline_of_a_stream_ends_it_in_its_trailers_and_stops_its_work() {
    let harness = Harness::ready().await;
    let (requests, receiver) = channel(10);
    let mut call = Request::new(ReceiverStream::new(receiver));
    call.metadata_mut().insert("grpc-timeout", "300m".parse().unwrap());
    let mut results = harness.judge().score_stream(call).await.unwrap().into_inner();
    requests.send(ask("quick", "hi")).await.unwrap();
    assert_eq!(next(&mut results).await.unwrap().request_id, "quick");
    requests.send(ask("slow", "wait")).await.unwrap();
    // The request may be told before its stream is.
    let status = match next(&mut results).await {
        Err(status) => status,
        Ok(result) => {
            let Some(Wire::Error(error)) = result.result else { panic!("a result") };
            assert_eq!(error.code(), pb::ErrorCode::DeadlineExceeded);
            next(&mut results).await.unwrap_err()
        }
    };
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert_eq!(status.get_details_error_info().unwrap().reason, "DEADLINE_EXCEEDED");
    tokio::task::spawn_blocking(move || harness.strings.stopped.recv().unwrap()).await.unwrap();
}

/// No handler of ours is asked: what the front does holds for every stream.
#[tokio::test]
async fn the_deadline_of_a_health_watcher_ends_it_in_its_trailers() {
    let harness = Harness::ready().await;
    let mut request = Request::new(HealthCheckRequest { service: String::new() });
    request.metadata_mut().insert("grpc-timeout", "200m".parse().unwrap());
    let mut watch = HealthClient::new(harness.channel.clone()).watch(request).await.unwrap().into_inner();
    assert_eq!(watch.message().await.unwrap().unwrap().status(), ServingStatus::Serving);
    assert_eq!(watch.message().await.unwrap_err().code(), Code::DeadlineExceeded);
}

#[tokio::test]
async fn the_stop_lets_a_stream_finish_what_it_has_read_and_then_says_so() {
    let mut harness = Harness::ready().await;
    let (idle_requests, mut idle) = open(&harness).await;
    let (requests, mut results) = open(&harness).await;
    requests.send(ask("r", "wait")).await.unwrap();
    called(&harness.strings, 1).await;
    harness.stop.take().unwrap().send(()).unwrap();
    // Nothing is in flight here.
    let status = next(&mut idle).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert_eq!(status.get_details_error_info().unwrap().reason, "STOPPING");
    // What is sent before the last result is still read.
    requests.send(ask("s", "hi")).await.unwrap();
    assert_eq!(next(&mut results).await.unwrap().request_id, "s");
    harness.strings.released.notify_one();
    assert_eq!(next(&mut results).await.unwrap().request_id, "r");
    assert_eq!(next(&mut results).await.unwrap_err().code(), Code::Unavailable);
    harness.served.await.unwrap().unwrap();
    drop((requests, idle_requests));
}

#[tokio::test]
async fn a_stream_that_does_not_finish_within_the_drain_is_told_so() {
    let options = ServerOptions { drain_timeout: Duration::from_millis(50), ..ServerOptions::default() };
    let mut harness = Harness::ready_with(options).await;
    let (requests, mut results) = open(&harness).await;
    requests.send(ask("r", "wait")).await.unwrap();
    called(&harness.strings, 1).await;
    harness.stop.take().unwrap().send(()).unwrap();
    let status = next(&mut results).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Unavailable, "the server is stopping; try again elsewhere"));
    harness.served.await.unwrap().unwrap();
    tokio::task::spawn_blocking(move || harness.strings.stopped.recv().unwrap()).await.unwrap();
}

#[tokio::test]
async fn a_message_that_is_too_large_ends_a_stream_after_the_results_of_those_before_it() {
    let harness = Harness::ready().await;
    let (requests, mut results) = open(&harness).await;
    requests.send(ask("r", "wait")).await.unwrap();
    called(&harness.strings, 1).await;
    requests.send(ask("large", &"x".repeat(MESSAGE_LIMIT))).await.unwrap();
    requests.send(ask("never", "hi")).await.unwrap();
    harness.strings.released.notify_one();
    assert_eq!(next(&mut results).await.unwrap().request_id, "r");
    assert_eq!(next(&mut results).await.unwrap_err().code(), Code::OutOfRange);
    assert!(harness.strings.called.try_recv().is_err());
}
