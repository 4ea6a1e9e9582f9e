//! The transport with a judge that does what a test asks for: no model, no sleeping.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc as unbounded, oneshot, watch};
use tokio::task::JoinHandle;
use tonic::transport::Channel;
use tonic::{Code, Request};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_types::StatusExt as _;

use super::deadline::Deadline;
use super::grpc::Grpc;
use super::pb::candidate_result::Result as Wire;
use super::pb::judge_service_client::JudgeServiceClient;
use super::pb::judge_service_server::JudgeService;
use super::*;
use crate::digest::Digest;
use crate::persona::{Persona, Registry, RegistryError};
use crate::prism::*;
use crate::service::{
    CacheControl, Call, Dialogue, ErrorCode, Health, JudgeError, JudgeInfo, Lane, Load, Numerics, OptionOverrides,
    Scored, ScoredDialogue,
};

mod check;
#[path = "stream_tests.rs"]
mod streams;

/// Judges by the text of the response: `nan` fails, `wait...` waits until it is cancelled or released, `panic` panics,
/// `one` and `zero` get that as S and everything else 0.5. Knows one persona by two ids.
pub(super) struct Fake {
    released: Arc<Notify>,
    /// Told when a waiting judgement stopped before its end.
    stopped: mpsc::Sender<()>,
    /// Told when a judgement starts to wait.
    waiting: Mutex<Option<oneshot::Sender<()>>>,
    health: watch::Sender<Health>,
    /// What the last call said.
    called: mpsc::Sender<Call>,
    /// What the last call asked.
    asked: mpsc::Sender<Group>,
    /// Bytes of a response that grows.
    grown: unbounded::UnboundedSender<usize>,
    crowd: Arc<Crowd>,
}

/// Calls that are judged now, and the most that were at a time.
#[derive(Default)]
struct Crowd {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Crowd {
    fn enter(&self) -> InCrowd<'_> {
        self.most.fetch_max(self.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        InCrowd(self)
    }
}

struct InCrowd<'a>(&'a Crowd);

impl Drop for InCrowd<'_> {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Tells that a judgement was dropped.
struct Tell<'a>(&'a mpsc::Sender<()>);

impl Drop for Tell<'_> {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

impl Fake {
    async fn judge(&self, candidate: &Candidate, call: &Call) -> Result<Verdict, JudgeError> {
        match candidate.response.as_str() {
            "" => Err(JudgeError::invalid("candidates[0].response", "is empty")),
            "nan" => Err(JudgeError::new(ErrorCode::NonFinite, "not finite")),
            "panic" => panic!("as asked"),
            wait if wait.starts_with("wait") => {
                self.waiting.lock().unwrap().take().map(|waiting| waiting.send(()));
                let stopped = Tell(&self.stopped);
                tokio::select! {
                    () = self.released.notified() => {}
                    stop = call.cancel.stopped() => return Err(stop.into()),
                }
                std::mem::forget(stopped);
                Ok(verdict(&candidate.id))
            }
            "zero" => Ok(verdict_of(&candidate.id, 0.0)),
            "one" => Ok(verdict_of(&candidate.id, 1.0)),
            _ => Ok(verdict(&candidate.id)),
        }
    }
}

impl Scorer for Fake {
    async fn score(&self, group: Group, _: &OptionOverrides, call: &Call) -> Scored {
        let _place = self.crowd.enter();
        let _ = self.called.send(call.clone());
        let _ = self.asked.send(group.clone());
        if group.persona.description.is_empty() && group.persona.traits.is_empty() {
            return Err(JudgeError::invalid("persona", "has nothing usable"));
        }
        let mut results = Vec::new();
        for candidate in &group.candidates {
            results.push(self.judge(candidate, call).await);
        }
        Ok(results)
    }

    /// A word is a token.
    async fn response_tokens(&self, group: &Group, _: &OptionOverrides, _: &Call) -> Result<Vec<usize>, JudgeError> {
        Ok(group.candidates.iter().map(|candidate| candidate.response.split_whitespace().count()).collect())
    }

    fn check_candidate(&self, candidate: &Candidate) -> Result<(), JudgeError> {
        let bytes = candidate.response.len();
        let _ = self.grown.send(bytes);
        match bytes {
            0..=100 => Ok(()),
            _ => Err(JudgeError::invalid("candidates[0].response", "at most 100")),
        }
    }

    async fn score_dialogue(
        &self,
        dialogue: Dialogue,
        _: &OptionOverrides,
        call: &Call,
    ) -> Result<ScoredDialogue, JudgeError> {
        let judge = async |turn: Turn| self.judge(&Candidate { id: String::new(), response: turn.text }, call).await;
        let mut turns = Vec::new();
        for (at, turn) in dialogue.turns.into_iter().enumerate().filter(|(_, turn)| turn.speaker == dialogue.agent) {
            turns.push((at, judge(turn).await));
        }
        Ok(ScoredDialogue { turns, drift: None })
    }

    fn health(&self) -> watch::Receiver<Health> {
        self.health.subscribe()
    }

    fn persona(&self, id: &str) -> Result<Persona, JudgeError> {
        match id {
            "kind" | "teodor" => Ok(Persona { description: "kind".into(), ..Persona::default() }),
            id => Err(JudgeError::new(ErrorCode::NotFound, format!("no {id}"))),
        }
    }

    fn personas(&self) -> Arc<Registry> {
        Arc::default()
    }

    fn reload_personas(&self) -> Option<Result<bool, RegistryError>> {
        None
    }

    fn observe(&self) {}

    fn load(&self) -> Load {
        Load {
            lanes: [].into(),
            active_pieces: 1,
            kv_cache_bytes: 2,
            kv_cache_limit_bytes: 3,
            verdict_cache_entries: 4,
            verdict_cache_bytes: 5,
        }
    }

    fn info(&self) -> JudgeInfo {
        let digest = Digest::of_bytes(b"");
        JudgeInfo {
            version: "0",
            model: "fake".into(),
            model_digest: digest,
            prompt_digest: digest,
            label_space_digest: digest,
            architecture: "none".into(),
            parameters: 1,
            context_length: 2,
            vocabulary: 3,
            answer_slot: ["A".into(), "B".into(), "C".into()],
            threads: 1,
            numerics: Numerics::F32,
            options: Options {
                evidence: EvidenceKind::LabelSlot,
                layout: Layout::Shared,
                label_order: LabelOrder::Cyclic,
                calibration: Calibration::None,
                persona_block: true,
                scale: LikelihoodScale { t: 1.0, b: 0.0 },
            },
        }
    }
}

/// What a test holds of its judge.
pub(super) struct Strings {
    pub released: Arc<Notify>,
    pub stopped: mpsc::Receiver<()>,
    pub waiting: Option<oneshot::Receiver<()>>,
    pub health: watch::Sender<Health>,
    pub called: mpsc::Receiver<Call>,
    pub asked: mpsc::Receiver<Group>,
    grown: unbounded::UnboundedReceiver<usize>,
    crowd: Arc<Crowd>,
}

pub(super) fn fake() -> (Fake, Strings) {
    let released = Arc::<Notify>::default();
    let (stopped_sender, stopped) = mpsc::channel();
    let (waiting_sender, waiting) = oneshot::channel();
    let (called_sender, called) = mpsc::channel();
    let (asked_sender, asked) = mpsc::channel();
    let (grown_sender, grown) = unbounded::unbounded_channel();
    let health = watch::Sender::new(Health::Ready);
    let crowd = Arc::<Crowd>::default();
    let fake = Fake {
        released: Arc::clone(&released),
        stopped: stopped_sender,
        waiting: Mutex::new(Some(waiting_sender)),
        health: health.clone(),
        called: called_sender,
        asked: asked_sender,
        grown: grown_sender,
        crowd: Arc::clone(&crowd),
    };
    (fake, Strings { released, stopped, waiting: Some(waiting), health, called, asked, grown, crowd })
}

fn verdict(id: &str) -> Verdict {
    verdict_of(id, 0.5)
}

fn verdict_of(id: &str, s_prism: f64) -> Verdict {
    let rest = (1.0 - s_prism) / 2.0;
    let posterior = Posterior { aligned: s_prism, indeterminate: rest, contradictory: rest };
    let evidence = s_prism;
    let dimension = DimensionVerdict { posterior, evidence, label_mass: None, label_order: vec![Label::ALL] };
    let digest = Digest::of_bytes(b"");
    Verdict {
        id: id.into(),
        s_prism,
        dimensions: DimensionVerdicts {
            task_framing: dimension.clone(),
            interpersonal_stance: dimension.clone(),
            linguistic_style: dimension,
        },
        weakest_dimension: Dimension::TaskFraming,
        judge: Provenance {
            model: "fake".into(),
            model_digest: digest,
            prompt_digest: digest,
            label_space_digest: digest,
            evidence: EvidenceKind::LabelSlot,
            layout: Layout::Shared,
            label_order: LabelOrder::Cyclic,
            calibration: Calibration::None,
            numerics: Numerics::Int8,
        },
        tokens: TokenCounts { prompt: 9, computed: 3 },
        cached: true,
        warnings: TextWarnings {
            response: TextCounts { control: 1, bidi: 2, invisible: 3, special_tokens: 4 },
            request: TextCounts { control: 5, bidi: 6, invisible: 7, special_tokens: 8 },
        },
    }
}

struct Harness {
    address: SocketAddr,
    channel: Channel,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<Result<(), ServeError<String>>>,
    strings: Strings,
}

impl Harness {
    /// A server whose model is loaded when `load` gets its message.
    async fn loading(load: mpsc::Receiver<Result<(), String>>) -> Self {
        Self::with(load, ServerOptions { reflection: true, ..ServerOptions::default() }).await
    }

    async fn with(load: mpsc::Receiver<Result<(), String>>, options: ServerOptions) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stop_signal) = oneshot::channel();
        let (fake, strings) = fake();
        let load = move || load.recv().unwrap().map(|()| fake);
        let shutdown = async { drop(stop_signal.await) };
        let served = tokio::spawn(run(plain(listener), load, options, shutdown));
        let channel = Channel::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap();
        Self { address, channel, stop: Some(stop), served, strings }
    }

    async fn ready() -> Self {
        Self::ready_with(ServerOptions { reflection: true, ..ServerOptions::default() }).await
    }

    async fn ready_with(options: ServerOptions) -> Self {
        let (loaded, load) = mpsc::channel();
        loaded.send(Ok(())).unwrap();
        let harness = Self::with(load, options).await;
        harness.until(ServingStatus::Serving).await;
        harness
    }

    fn judge(&self) -> JudgeServiceClient<Channel> {
        JudgeServiceClient::new(self.channel.clone())
    }

    async fn health(&self, service: &str) -> ServingStatus {
        let request = HealthCheckRequest { service: service.into() };
        let response = HealthClient::new(self.channel.clone()).check(request).await.unwrap();
        response.into_inner().status()
    }

    async fn watch(&self) -> tonic::Streaming<HealthCheckResponse> {
        let request = HealthCheckRequest { service: String::new() };
        HealthClient::new(self.channel.clone()).watch(request).await.unwrap().into_inner()
    }

    /// Waits for a status without polling.
    async fn until(&self, status: ServingStatus) {
        let mut watch = self.watch().await;
        while watch.message().await.unwrap().unwrap().status() != status {}
    }
}

fn plain(judge: TcpListener) -> Ports {
    Ports { judge, http: None, admin: None }
}

fn persona() -> Option<pb::Persona> {
    Some(pb::Persona { description: "kind".into(), ..pb::Persona::default() })
}

fn candidate(id: &str, response: &str) -> pb::Candidate {
    pb::Candidate { id: id.into(), response: response.into() }
}

fn score(response: &str) -> pb::ScoreRequest {
    let candidate = Some(candidate("c", response));
    pb::ScoreRequest { persona: persona(), candidate, request_id: "r".into(), ..pb::ScoreRequest::default() }
}

#[tokio::test]
async fn until_the_model_is_loaded_health_is_not_serving_and_calls_are_unavailable() {
    let (loaded, load) = mpsc::channel();
    let harness = Harness::loading(load).await;
    for service in ["", "prism.judge.v1.JudgeService"] {
        assert_eq!(harness.health(service).await, ServingStatus::NotServing);
    }
    let status = harness.judge().score(score("hi")).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Unavailable, "the model is loading; try again in a moment"));
    let status = harness.judge().get_judge_info(pb::GetJudgeInfoRequest {}).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    loaded.send(Ok(())).unwrap();
    harness.until(ServingStatus::Serving).await;
    assert_eq!(harness.health("prism.judge.v1.JudgeService").await, ServingStatus::Serving);
    assert!(harness.judge().score(score("hi")).await.is_ok());
}

#[tokio::test]
async fn a_model_that_cannot_be_loaded_ends_the_server_with_the_reason() {
    let (loaded, load) = mpsc::channel();
    let harness = Harness::loading(load).await;
    loaded.send(Err("no such file".to_owned())).unwrap();
    assert_eq!(harness.served.await.unwrap().unwrap_err().to_string(), "no such file");
}

#[tokio::test]
async fn a_group_keeps_order_and_a_failure_stays_with_its_candidate() {
    let harness = Harness::ready().await;
    let request = pb::ScoreGroupRequest {
        persona: persona(),
        candidates: vec![candidate("a", "hi"), candidate("b", "nan"), candidate("", "hi")],
        request_id: "r7".into(),
        ..pb::ScoreGroupRequest::default()
    };
    let reply = harness.judge().score_group(request).await.unwrap().into_inner();
    assert_eq!(reply.request_id, "r7");
    let places: Vec<_> = reply.results.iter().map(|result| (result.id.as_str(), result.index)).collect();
    assert_eq!(places, [("a", 0), ("b", 1), ("", 2)]);
    let Some(Wire::Error(error)) = &reply.results[1].result else { panic!("b has a verdict") };
    assert_eq!((error.code(), error.message.as_str()), (pb::ErrorCode::NonFinite, "not finite"));
    let Some(Wire::Verdict(verdict)) = &reply.results[0].result else { panic!("a has no verdict") };
    assert_eq!((verdict.id.as_str(), verdict.s_prism), ("a", 0.5));
    assert_eq!(verdict.weakest_dimension(), pb::Dimension::TaskFraming);
}

#[tokio::test]
async fn field_errors_of_the_wire_and_of_the_service_name_the_field() {
    let harness = Harness::ready().await;
    let fields = async |request: pb::ScoreRequest| {
        let status = harness.judge().score(request).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        let violations = status.get_details_bad_request().unwrap().field_violations;
        violations.into_iter().map(|violation| violation.field).collect::<Vec<_>>()
    };
    assert_eq!(fields(pb::ScoreRequest::default()).await, ["candidate"]);
    assert_eq!(fields(pb::ScoreRequest { persona: None, ..score("hi") }).await, ["persona"]);
    assert_eq!(fields(score("")).await, ["candidate.response"]);
    let mut unknown = score("hi");
    unknown.options = Some(pb::Options { evidence: Some(99), ..pb::Options::default() });
    unknown.persona.as_mut().unwrap().traits = vec![pb::TraitTarget { r#trait: 0, polarity: 3 }];
    assert_eq!(fields(unknown).await, ["persona.traits[0].trait", "persona.traits[0].polarity", "options.evidence"]);
}

#[tokio::test]
async fn a_reply_that_would_not_fit_is_refused_before_the_work() {
    let harness = Harness::ready().await;
    let candidates = vec![candidate("c", "wait"); 20_000];
    let request = pb::ScoreGroupRequest { persona: persona(), candidates, ..pb::ScoreGroupRequest::default() };
    let status = harness.judge().score_group(request).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(status.get_details_bad_request().unwrap().field_violations[0].field, "candidates");
    let status = harness.judge().score(score(&"x".repeat(MESSAGE_LIMIT))).await.unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange);
}

#[tokio::test]
async fn a_call_that_is_dropped_cancels_its_work() {
    let mut harness = Harness::ready().await;
    let mut client = harness.judge();
    let call = tokio::spawn(async move { client.score(score("wait")).await });
    harness.strings.waiting.take().unwrap().await.unwrap();
    call.abort();
    tokio::task::spawn_blocking(move || harness.strings.stopped.recv().unwrap()).await.unwrap();
}

#[tokio::test]
async fn a_timeout_is_deadline_exceeded_and_stops_the_work() {
    // Without a connection: a tonic client runs a timer of its own, which may win.
    let (fake, strings) = fake();
    let grpc = Grpc::new(Arc::new(OnceLock::from(Arc::new(fake))));
    let mut request = Request::new(score("wait"));
    request.extensions_mut().insert(Deadline(Some(Instant::now() + Duration::from_millis(30))));
    let status = JudgeService::score(&grpc, request).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert!(strings.stopped.recv().is_ok());
}

#[tokio::test]
async fn a_budget_that_is_over_on_arrival_fails_alone() {
    let harness = Harness::ready().await;
    for timeout in ["2m", "1m", "1u", "0m"] {
        let mut request = Request::new(score("wait"));
        request.metadata_mut().insert("grpc-timeout", timeout.parse().unwrap());
        let status = harness.judge().score(request).await.unwrap_err();
        // CANCELLED is the client's own timer.
        assert!([Code::DeadlineExceeded, Code::Cancelled].contains(&status.code()), "{timeout}: {status:?}");
    }
    assert!(harness.judge().score(score("hi")).await.is_ok());
}

#[tokio::test]
async fn a_failure_of_the_judge_is_an_internal_error_with_its_reason_and_the_server_goes_on() {
    let harness = Harness::ready().await;
    for (response, reason) in [("panic", "INTERNAL"), ("nan", "NON_FINITE")] {
        let status = harness.judge().score(score(response)).await.unwrap_err();
        let told = status.get_details_error_info().map(|info| info.reason);
        assert_eq!((status.code(), told.as_deref()), (Code::Internal, Some(reason)));
    }
    assert!(harness.judge().score(score("hi")).await.is_ok());
}

#[tokio::test]
async fn the_lane_and_the_cache_control_of_a_call_reach_the_judge() {
    let harness = Harness::ready().await;
    let request =
        pb::ScoreRequest { lane: pb::Lane::Guard as i32, cache: pb::CacheControl::Refresh as i32, ..score("hi") };
    let reply = harness.judge().score(request).await.unwrap().into_inner();
    assert!(reply.verdict.unwrap().cached);
    harness.judge().score(score("hi")).await.unwrap();
    let calls: Vec<_> = harness.strings.called.try_iter().map(|call| (call.lane, call.cache)).collect();
    assert_eq!(calls, [(Lane::Guard, CacheControl::Refresh), (Lane::Train, CacheControl::Use)]);
}

#[tokio::test]
async fn the_warnings_of_a_verdict_are_in_its_message() {
    let harness = Harness::ready().await;
    let verdict = harness.judge().score(score("hi")).await.unwrap().into_inner().verdict.unwrap();
    let counts =
        |control| pb::TextCounts { control, bidi: control + 1, invisible: control + 2, special_tokens: control + 3 };
    assert_eq!(verdict.warnings, Some(pb::TextWarnings { response: Some(counts(1)), request: Some(counts(5)) }));
}

#[tokio::test]
async fn a_request_id_that_is_too_long_is_refused_before_anything_is_judged() {
    let harness = Harness::ready().await;
    let long = pb::ScoreRequest { request_id: "r".repeat(1025), ..score("hi") };
    let status = harness.judge().score(long).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().starts_with("request_id: it has 1025 bytes"), "{}", status.message());
    assert!(harness.strings.called.try_iter().next().is_none());
}

#[tokio::test]
async fn the_health_service_follows_the_model() {
    let harness = Harness::ready().await;
    for health in [Health::Restarting, Health::Ready, Health::Dead] {
        harness.strings.health.send(health).unwrap();
        let serving = if health == Health::Ready { ServingStatus::Serving } else { ServingStatus::NotServing };
        harness.until(serving).await;
    }
}

#[tokio::test]
async fn the_judge_tells_what_it_is() {
    let harness = Harness::ready().await;
    let info = harness.judge().get_judge_info(pb::GetJudgeInfoRequest {}).await.unwrap().into_inner();
    assert_eq!((info.model.as_str(), info.answer_slot.len()), ("fake", 3));
    assert_eq!(info.options.unwrap().label_order(), pb::LabelOrder::Cyclic);
}

#[tokio::test]
async fn the_stop_ends_watchers_lets_a_call_in_flight_finish_and_closes_the_port() {
    let mut harness = Harness::ready().await;
    let mut watch = harness.watch().await;
    assert_eq!(watch.message().await.unwrap().unwrap().status(), ServingStatus::Serving);
    let mut client = harness.judge();
    let call = tokio::spawn(async move { client.score(score("wait")).await });
    harness.strings.waiting.take().unwrap().await.unwrap();
    harness.stop.take().unwrap().send(()).unwrap();
    assert_eq!(watch.message().await.unwrap().unwrap().status(), ServingStatus::NotServing);
    assert_eq!(watch.message().await.unwrap(), None);
    harness.strings.released.notify_one();
    assert!(call.await.unwrap().is_ok(), "it ran to its own end");
    harness.served.await.unwrap().unwrap();
    assert!(tokio::net::TcpStream::connect(harness.address).await.is_err());
}

#[tokio::test]
async fn a_connection_that_never_speaks_holds_the_stop_no_longer_than_the_bound() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let silent = tokio::net::TcpStream::connect(address).await.unwrap();
    let (stop, stop_signal) = oneshot::channel::<()>();
    let (fake, ..) = fake();
    let load = move || Ok::<_, String>(fake);
    let shutdown = async { drop(stop_signal.await) };
    let options = ServerOptions { drain_timeout: Duration::from_millis(50), ..ServerOptions::default() };
    let served = tokio::spawn(run(plain(listener), load, options, shutdown));
    stop.send(()).unwrap();
    let started = tokio::time::Instant::now();
    assert!(served.await.unwrap().is_ok());
    assert!(started.elapsed() <= Duration::from_secs(5));
    drop(silent);
}

/// Without a limit the second would hold the stop until its bound, and both would cost a file for ever.
#[tokio::test]
async fn a_connection_that_never_speaks_is_closed_and_does_not_hold_the_stop() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stop_signal) = oneshot::channel::<()>();
    let (fake, ..) = fake();
    let load = move || Ok::<_, String>(fake);
    let shutdown = async { drop(stop_signal.await) };
    let options = ServerOptions { handshake_timeout: Duration::from_millis(50), ..ServerOptions::default() };
    let served = tokio::spawn(run(plain(listener), load, options, shutdown));
    for words in [&b""[..], b"PRI * HT", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        let mut silent = tokio::net::TcpStream::connect(address).await.unwrap();
        silent.write_all(words).await.unwrap();
        let mut reply = Vec::new();
        let closed = tokio::time::timeout(Duration::from_secs(5), silent.read_to_end(&mut reply));
        assert!(closed.await.is_ok(), "{words:?}");
    }
    let _silent = tokio::net::TcpStream::connect(address).await.unwrap();
    stop.send(()).unwrap();
    assert!(tokio::time::timeout(Duration::from_secs(5), served).await.unwrap().unwrap().is_ok());
}

#[tokio::test]
async fn one_connection_too_many_is_closed_at_once_and_its_place_comes_back() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (_stop, stop_signal) = oneshot::channel::<()>();
    let (fake, ..) = fake();
    let load = move || Ok::<_, String>(fake);
    let shutdown = async { drop(stop_signal.await) };
    let options = ServerOptions { max_connections: 1, ..ServerOptions::default() };
    tokio::spawn(run(plain(listener), load, options, shutdown));
    let connect = async || {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
        // The server's settings come at once, or nothing ever does.
        let mut first = [0];
        let spoken = stream.read(&mut first).await.is_ok_and(|bytes| bytes > 0);
        (stream, spoken)
    };
    let (first, spoken) = connect().await;
    assert!(spoken);
    assert!(!connect().await.1);
    drop(first);
    let again = async { while !connect().await.1 {} };
    assert!(tokio::time::timeout(Duration::from_secs(5), again).await.is_ok());
}
