//! Check and CheckStream: what their transport adds.

use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Status, Streaming};

use super::*;
use pb::check_stream_request::Message;

fn policy(on_error: pb::OnError) -> Option<pb::Policy> {
    let block = pb::Thresholds { s_prism: Some(0.25), ..pb::Thresholds::default() };
    Some(pb::Policy { block: Some(block), on_error: on_error as i32, ..pb::Policy::default() })
}

fn check(response: &str) -> pb::CheckRequest {
    pb::CheckRequest {
        persona: persona(),
        candidate: Some(candidate("c", response)),
        request_id: "r".into(),
        policy: policy(pb::OnError::Allow),
        ..pb::CheckRequest::default()
    }
}

async fn wrong_fields(harness: &Harness, request: pb::CheckRequest) -> Vec<String> {
    let status = harness.judge().check(request).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    let violations = status.get_details_bad_request().unwrap().field_violations;
    violations.into_iter().map(|violation| violation.field).collect()
}

#[tokio::test]
async fn a_check_has_a_decision_its_reason_and_the_verdict_and_is_guard_work() {
    let harness = Harness::ready().await;
    let reply = harness.judge().check(check("hi")).await.unwrap().into_inner();
    assert_eq!((reply.request_id.as_str(), reply.decision()), ("r", pb::Decision::Allow));
    assert_eq!(reply.reason, "nothing falls short: s_prism 0.5000 (at least 0.25)");
    assert_eq!((reply.verdict.unwrap().id.as_str(), reply.error, reply.policy_name.as_str()), ("c", None, ""));
    let lanes = [pb::Lane::Unspecified, pb::Lane::Train, pb::Lane::Batch];
    for lane in lanes {
        harness.judge().check(pb::CheckRequest { lane: lane as i32, ..check("hi") }).await.unwrap();
    }
    let called: Vec<_> = harness.strings.called.try_iter().map(|call| (call.method, call.lane)).collect();
    let expected = [Lane::Guard, Lane::Guard, Lane::Train, Lane::Batch];
    assert_eq!(called, expected.map(|lane| ("Check", lane)));
}

#[tokio::test]
async fn a_failure_of_the_judge_is_an_answer_with_its_error_and_what_the_policy_says_of_errors() {
    let harness = Harness::ready().await;
    for (on_error, decision) in [
        (pb::OnError::Unspecified, pb::Decision::Allow),
        (pb::OnError::Allow, pb::Decision::Allow),
        (pb::OnError::Block, pb::Decision::Block),
    ] {
        for (response, code) in [("nan", pb::ErrorCode::NonFinite), ("panic", pb::ErrorCode::Internal)] {
            let request = pb::CheckRequest { policy: policy(on_error), ..check(response) };
            let reply = harness.judge().check(request).await.unwrap().into_inner();
            assert_eq!((reply.decision(), reply.failed.as_str()), (decision, ""), "{response}");
            assert_eq!((reply.error.unwrap().code(), reply.verdict), (code, None));
        }
    }
    let status = harness.judge().check(check("")).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::InvalidArgument, "candidate.response: is empty"));
}

#[tokio::test]
async fn a_budget_ends_the_judgement_and_not_the_call() {
    let (fake, strings) = fake();
    let grpc = Grpc::new(Arc::new(OnceLock::from(Arc::new(fake))));
    let late = async |budget_ms, deadline: Option<Instant>| {
        let policy = policy(pb::OnError::Block).map(|policy| pb::Policy { budget_ms, ..policy });
        let mut request = Request::new(pb::CheckRequest { policy, ..check("wait") });
        request.extensions_mut().insert(Deadline(deadline));
        let reply = JudgeService::check(&grpc, request).await.unwrap().into_inner();
        assert!(strings.stopped.recv().is_ok());
        (reply.decision(), reply.error.unwrap().code())
    };
    let expected = (pb::Decision::Block, pb::ErrorCode::DeadlineExceeded);
    let far = Instant::now() + Duration::from_secs(3600);
    assert_eq!(late(20, None).await, expected);
    assert_eq!(late(20, Some(far)).await, expected);
    // The call's own deadline, where that is earlier.
    assert_eq!(late(3_600_000, Some(Instant::now() + Duration::from_millis(20))).await, expected);
}

#[tokio::test]
async fn a_short_response_is_not_judged_and_a_wrong_policy_is_told_with_all_else() {
    let harness = Harness::ready().await;
    let least = |min_tokens| policy(pb::OnError::Allow).map(|policy| pb::Policy { min_tokens, ..policy });
    let request = |min_tokens| pb::CheckRequest { policy: least(min_tokens), ..check("two words") };
    let reply = harness.judge().check(request(3)).await.unwrap().into_inner();
    assert_eq!((reply.decision(), reply.verdict, reply.error), (pb::Decision::Abstain, None, None));
    assert!(harness.strings.called.try_iter().next().is_none());
    let reply = harness.judge().check(request(2)).await.unwrap().into_inner();
    assert_eq!(reply.decision(), pb::Decision::Allow);

    let wrong = pb::Policy {
        block: Some(pb::Thresholds { s_prism: Some(2.0), ..pb::Thresholds::default() }),
        on_error: 7,
        ..pb::Policy::default()
    };
    let request = pb::CheckRequest { policy: Some(wrong), candidate: None, lane: 9, ..check("hi") };
    assert_eq!(wrong_fields(&harness, request).await, ["candidate", "policy.on_error", "policy.block.s_prism", "lane"]);
    let nothing = Some(pb::Policy::default());
    assert_eq!(wrong_fields(&harness, pb::CheckRequest { policy: nothing, ..check("hi") }).await, ["policy"]);
    let both = pb::CheckRequest { policy_name: "strict".into(), ..check("hi") };
    assert_eq!(wrong_fields(&harness, both).await, ["policy_name"]);
    let none = pb::CheckRequest { policy: None, ..check("hi") };
    assert_eq!(wrong_fields(&harness, none.clone()).await, ["policy"]);
    let unknown = pb::CheckRequest { policy_name: "strict".into(), ..none };
    assert_eq!(harness.judge().check(unknown).await.unwrap_err().code(), Code::NotFound);
}

/// A stream under way.
struct Stream {
    send: Option<unbounded::UnboundedSender<pb::CheckStreamRequest>>,
    answers: Streaming<pb::CheckStreamResponse>,
}

fn start(request: pb::CheckRequest) -> pb::CheckStreamRequest {
    pb::CheckStreamRequest { message: Some(Message::Start(request)) }
}

fn text(text: &str) -> pb::CheckStreamRequest {
    pb::CheckStreamRequest { message: Some(Message::Text(text.to_owned())) }
}

impl Stream {
    async fn open(harness: &Harness, messages: impl IntoIterator<Item = pb::CheckStreamRequest>) -> Self {
        let (send, messages_sent) = unbounded::unbounded_channel();
        let answers = harness.judge().check_stream(UnboundedReceiverStream::new(messages_sent)).await.unwrap();
        let stream = Self { send: Some(send), answers: answers.into_inner() };
        messages.into_iter().for_each(|message| stream.send(message));
        stream
    }

    fn send(&self, message: pb::CheckStreamRequest) {
        self.send.as_ref().unwrap().send(message).unwrap();
    }

    /// Bytes judged and whether that was all.
    async fn judged(&mut self) -> (u64, bool) {
        let answer = self.answers.message().await.unwrap().unwrap();
        assert_eq!(answer.check.unwrap().request_id, "r");
        (answer.judged_bytes, answer.last)
    }

    /// Ends the caller's side.
    fn close(&mut self) {
        self.send = None;
    }

    async fn failed(mut self) -> Status {
        self.close();
        loop {
            match self.answers.message().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("it ended well"),
                Err(status) => return status,
            }
        }
    }
}

/// The first message of a stream whose response begins with `response`.
fn begin(response: &str) -> pb::CheckStreamRequest {
    start(check(response))
}

#[tokio::test]
async fn a_stream_is_judged_at_sentence_ends_and_once_more_at_its_end() {
    let harness = Harness::ready().await;
    let mut stream = Stream::open(&harness, [begin("")]).await;
    for (piece, judged) in [("One", None), (" is.", Some(7)), (" Two", None), ("", None), (" are. A", Some(16))] {
        stream.send(text(piece));
        if let Some(judged) = judged {
            assert_eq!(stream.judged().await, (judged, false), "{piece}");
        }
    }
    stream.close();
    assert_eq!(stream.judged().await, (18, true));
    assert_eq!(stream.answers.message().await.unwrap(), None);
    let called: Vec<_> = harness.strings.called.try_iter().map(|call| (call.method, call.lane)).collect();
    assert_eq!(called, [("CheckStream", Lane::Guard); 3]);
}

#[tokio::test]
async fn what_ends_while_a_judgement_runs_is_judged_together() {
    let mut harness = Harness::ready().await;
    let mut stream = Stream::open(&harness, [begin("wait one.")]).await;
    harness.strings.waiting.take().unwrap().await.unwrap();
    for piece in [" Two.", " Three.", " Four"] {
        stream.send(text(piece));
    }
    // All of it is there before the first judgement is done.
    while harness.strings.grown.recv().await.unwrap() < 26 {}
    for judged in [(9, false), (21, false), (26, true)] {
        harness.strings.released.notify_one();
        if judged.1 {
            stream.close();
        }
        assert_eq!(stream.judged().await, judged);
    }
    assert_eq!(harness.strings.called.try_iter().count(), 3);
}

#[tokio::test]
async fn a_block_is_told_at_once_and_a_failure_too_and_the_stream_goes_on() {
    let harness = Harness::ready().await;
    let all = pb::Thresholds { s_prism: Some(1.0), ..pb::Thresholds::default() };
    let policy = Some(pb::Policy { block: Some(all), on_error: pb::OnError::Block as i32, ..pb::Policy::default() });
    let mut stream = Stream::open(&harness, [start(pb::CheckRequest { policy, ..check("One is.") })]).await;
    let decided = async |stream: &mut Stream| {
        let check = stream.answers.message().await.unwrap().unwrap().check.unwrap();
        (check.decision(), check.failed, check.error.map(|error| error.code()))
    };
    assert_eq!(decided(&mut stream).await, (pb::Decision::Block, "s_prism".into(), None));
    stream.send(text(" Two are."));
    assert_eq!(decided(&mut stream).await, (pb::Decision::Block, "s_prism".into(), None));
    stream.close();
    assert_eq!(decided(&mut stream).await, (pb::Decision::Block, "s_prism".into(), None));
    assert_eq!(stream.answers.message().await.unwrap(), None);

    let mut stream = Stream::open(&harness, [begin("nan"), text("")]).await;
    stream.close();
    let failed = (pb::Decision::Allow, String::new(), Some(pb::ErrorCode::NonFinite));
    assert_eq!(decided(&mut stream).await, failed);
    assert_eq!(stream.answers.message().await.unwrap(), None);
}

#[tokio::test]
async fn a_stream_that_is_wrong_is_told_which_message_is() {
    let harness = Harness::ready().await;
    let neither = pb::CheckStreamRequest { message: None };
    let long = "x".repeat(60);
    for (messages, expected) in [
        (vec![], "messages[0]: is missing: the first message is `start`"),
        (vec![text("hi")], "messages[0].text: comes before `start`, which is the first message"),
        (vec![neither.clone()], "messages[0]: has neither `start` nor `text`"),
        (vec![begin("hi"), text("a"), begin("hi")], "messages[2].start: there is one already"),
        (vec![begin("hi"), neither], "messages[1]: has neither `start` nor `text`"),
        (vec![begin(""), text(" \n")], "messages[2]: is missing: the stream ends before any text has come"),
        (vec![begin(&long), text(&long)], "messages[1].text: the response so far: at most 100"),
        (vec![begin(&long.repeat(2))], "messages[0].start.candidate.response: the response so far: at most 100"),
        (vec![start(pb::CheckRequest { lane: 9, ..check("hi") })], "lane: 9 is not known here"),
        (vec![start(pb::CheckRequest { policy: None, ..check("hi") })], "policy: it is missing"),
        (vec![start(pb::CheckRequest { persona: None, ..check("hi") })], "persona: has nothing usable"),
    ] {
        let status = Stream::open(&harness, messages).await.failed().await;
        assert_eq!(status.code(), Code::InvalidArgument, "{expected}: {status:?}");
        assert!(status.message().starts_with(expected), "{expected}: {}", status.message());
    }
    let unknown = pb::CheckRequest { persona: None, persona_id: "nobody".into(), ..check("hi") };
    assert_eq!(Stream::open(&harness, [start(unknown)]).await.failed().await.code(), Code::NotFound);
    // A start without a candidate is fine.
    let mut stream = Stream::open(&harness, [start(pb::CheckRequest { candidate: None, ..check("") })]).await;
    stream.send(text("hi"));
    stream.close();
    assert_eq!(stream.judged().await, (2, true));
}

#[tokio::test]
async fn a_stream_whose_caller_goes_away_stops_its_work() {
    let mut harness = Harness::ready().await;
    let stream = Stream::open(&harness, [begin("wait for me.")]).await;
    harness.strings.waiting.take().unwrap().await.unwrap();
    drop(stream);
    tokio::task::spawn_blocking(move || harness.strings.stopped.recv().unwrap()).await.unwrap();
}

#[tokio::test]
async fn the_deadline_of_a_stream_holds_for_all_of_it() {
    let harness = Harness::ready().await;
    let (send, messages) = unbounded::unbounded_channel();
    let mut request = Request::new(UnboundedReceiverStream::new(messages));
    request.metadata_mut().insert("grpc-timeout", "300m".parse().unwrap());
    let mut answers = harness.judge().check_stream(request).await.unwrap().into_inner();
    send.send(begin("One is. ")).unwrap();
    assert_eq!(answers.message().await.unwrap().unwrap().judged_bytes, 7);
    // Nobody ends it.
    send.send(text("Two")).unwrap();
    assert_eq!(answers.message().await.unwrap_err().code(), Code::DeadlineExceeded);
}

#[tokio::test]
async fn a_stream_that_is_open_when_the_server_is_over_is_told_so() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stop_signal) = oneshot::channel::<()>();
    let (fake, _strings) = fake();
    let load = move || Ok::<_, String>(fake);
    let shutdown = async { drop(stop_signal.await) };
    let options = ServerOptions { drain_timeout: Duration::from_millis(50), ..ServerOptions::default() };
    let served = tokio::spawn(run(plain(listener), load, options, shutdown));
    let channel = Channel::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap();
    let mut judge = JudgeServiceClient::new(channel);
    while judge.get_judge_info(pb::GetJudgeInfoRequest {}).await.is_err() {}
    let (send, messages) = unbounded::unbounded_channel();
    let mut answers = judge.check_stream(UnboundedReceiverStream::new(messages)).await.unwrap().into_inner();
    send.send(begin("One is. ")).unwrap();
    assert!(answers.message().await.unwrap().is_some());
    stop.send(()).unwrap();
    let status = answers.message().await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    assert!(status.message().contains("stopping"), "{}", status.message());
    assert!(served.await.unwrap().is_ok());
}
