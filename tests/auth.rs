//! Keys: who may call what, in which lane, and how much.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::fmt::Write as _;
use std::path::Path;

use prism_judge::server::pb;
use prost::Message as _;
use prost_types::FileDescriptorSet;
use support::cli::run;
use support::load::load;
use support::server::{Server, request, tiny_model};
use tonic::metadata::MetadataValue;
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;
use tonic_types::StatusExt as _;

/// Makes a key as its owner would; its entry is added to `entries`.
fn key(entries: &mut String, args: &[&str]) -> String {
    let output = run(&[&["keys", "new"], args].concat(), b"");
    assert!(output.status.success());
    write!(entries, "{}", String::from_utf8(output.stdout).unwrap()).unwrap();
    String::from_utf8(output.stderr).unwrap().trim().to_owned()
}

async fn serve(folder: &Path, keys: &str, more: &[&str]) -> Option<Server> {
    let model = tiny_model(folder)?;
    let file = folder.join("keys.toml");
    std::fs::write(&file, keys).unwrap();
    let args = ["--model", model.to_str().unwrap(), "--api-keys", file.to_str().unwrap(), "--reload-s", "1"];
    Some(Server::start(&[&args, more].concat()).ready().await)
}

fn with<T>(key: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    let value: MetadataValue<_> = format!("Bearer {key}").parse().unwrap();
    request.metadata_mut().insert("authorization", value);
    request
}

fn reason(status: &Status) -> String {
    status.get_details_error_info().map(|info| info.reason).unwrap_or_default()
}

/// Every method of every service that the server has, found in the descriptors that it is built from, and some that it
/// does not have.
fn methods() -> Vec<String> {
    let sets = [
        pb::DESCRIPTORS,
        tonic_health::pb::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
    ];
    let mut methods = vec!["/no.such.Service/Call".to_owned(), "/prism.judge.v1.JudgeService/NoSuchCall".to_owned()];
    for set in sets {
        for file in FileDescriptorSet::decode(set).unwrap().file {
            for service in &file.service {
                let path = |method: &str| format!("/{}.{}/{method}", file.package(), service.name());
                methods.extend(service.method.iter().map(|method| path(method.name())));
            }
        }
    }
    methods
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_key_no_method_of_any_service_answers() {
    let folder = tempfile::tempdir().unwrap();
    let mut entries = String::new();
    let known = key(&mut entries, &["--tenant", "chat"]);
    let Some(server) = serve(folder.path(), &entries, &["--reflection"]).await else { return };
    let methods = methods();
    assert!(methods.len() >= 9, "{methods:?}");
    let channel = server.channel().await;
    for method in &methods {
        for (shown, expected) in [(None, "NO_KEY"), (Some("Bearer no"), "UNKNOWN_KEY"), (Some("Basic no"), "NO_KEY")] {
            let mut client = tonic::client::Grpc::new(channel.clone());
            client.ready().await.unwrap();
            let mut request = Request::new(pb::GetJudgeInfoRequest {});
            if let Some(shown) = shown {
                request.metadata_mut().insert("authorization", shown.parse().unwrap());
            }
            let codec: ProstCodec<pb::GetJudgeInfoRequest, pb::GetJudgeInfoResponse> = ProstCodec::default();
            let status = client.unary(request, method.parse().unwrap(), codec).await.unwrap_err();
            assert_eq!((status.code(), reason(&status).as_str()), (Code::Unauthenticated, expected), "{method}");
            assert_eq!(status.metadata().get("www-authenticate").unwrap(), "Bearer");
        }
    }
    // Probes need none.
    assert_eq!(server.get("/readyz").0, 200);
    assert!(server.judge().await.get_judge_info(with(&known, pb::GetJudgeInfoRequest {})).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_opens_its_lanes_and_tenants_share_no_verdicts() {
    let folder = tempfile::tempdir().unwrap();
    let mut entries = String::new();
    let chat = key(&mut entries, &["--tenant", "chat", "--lane", "guard"]);
    let (rl, other) = (key(&mut entries, &["--tenant", "rl"]), key(&mut entries, &["--tenant", "rl"]));
    let Some(server) = serve(folder.path(), &entries, &[]).await else { return };
    let mut judge = server.judge().await;
    let in_lane = |lane: pb::Lane| pb::ScoreRequest { lane: lane as i32, ..request("Yes! Who else is in?") };

    let status = judge.score(with(&chat, in_lane(pb::Lane::Train))).await.unwrap_err();
    assert_eq!((status.code(), reason(&status).as_str()), (Code::PermissionDenied, "LANE_NOT_ALLOWED"));
    assert!(status.message().contains("it opens guard"), "{}", status.message());

    let mut cached = async |key: &str| {
        let reply = judge.score(with(key, in_lane(pb::Lane::Guard))).await.unwrap().into_inner();
        reply.verdict.unwrap().cached
    };
    assert!(!cached(&chat).await);
    assert!(cached(&chat).await);
    assert!(!cached(&rl).await, "a verdict of another tenant");
    assert!(cached(&other).await, "two keys of one tenant");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_has_used_up_its_share_is_told_when_to_come_back_and_others_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut entries = String::new();
    let (small, large) = (key(&mut entries, &["--tenant", "small"]), key(&mut entries, &["--tenant", "large"]));
    entries.push_str("[tenants.small]\ntokens_per_second = 1\nburst_tokens = 10\n");
    let Some(server) = serve(folder.path(), &entries, &[]).await else { return };
    let mut judge = server.judge().await;
    assert!(judge.score(with(&small, request("One."))).await.is_ok(), "more than the burst, from a full bucket");
    let status = judge.score(with(&small, request("Two."))).await.unwrap_err();
    assert_eq!((status.code(), reason(&status).as_str()), (Code::ResourceExhausted, "OVER_QUOTA"));
    let pause = status.get_details_retry_info().unwrap().retry_delay.unwrap();
    // A judgement has some hundred tokens; the bucket is that far below zero, at one token a second.
    assert!((60..3600).contains(&pause.as_secs()), "{pause:?}");
    let pushback: u128 = status.metadata().get("grpc-retry-pushback-ms").unwrap().to_str().unwrap().parse().unwrap();
    assert_eq!(pushback, pause.as_millis());
    // What was judged costs nothing.
    assert!(judge.score(with(&small, request("One."))).await.unwrap().into_inner().verdict.unwrap().cached);
    assert!(judge.score(with(&large, request("Two."))).await.is_ok());
    // A group that is refused hands nothing out, not even what the cache had of it.
    let pb::ScoreRequest { persona, context, candidate, .. } = request("One.");
    let other = pb::Candidate { response: "Three.".into(), ..pb::Candidate::default() };
    let candidates = candidate.into_iter().chain([other]).collect();
    let group = pb::ScoreGroupRequest { persona, context, candidates, ..pb::ScoreGroupRequest::default() };
    let prompt_tokens = || {
        let (_, metrics) = server.get("/metrics");
        let line = metrics.lines().find(|line| line.starts_with("prism_judge_prompt_tokens_total")).unwrap();
        line.to_owned()
    };
    let before = prompt_tokens();
    assert_eq!(judge.score_group(with(&small, group)).await.unwrap_err().code(), Code::ResourceExhausted);
    assert_eq!(prompt_tokens(), before);
}

/// Requests that are wrong in a way that can be told without computing, and the fields at fault.
fn wrong_requests() -> Vec<(pb::ScoreRequest, &'static str)> {
    let good = || request("Well?");
    let options = |options: pb::Options| pb::ScoreRequest { options: Some(options), ..good() };
    let persona = |persona: pb::Persona| pb::ScoreRequest { persona: Some(persona), ..good() };
    let mut nameless = good();
    nameless.context[0].speaker.clear();
    let released = pb::Options {
        evidence: Some(pb::EvidenceKind::LabelSlot as i32),
        label_order: Some(pb::LabelOrder::Released as i32),
        ..pb::Options::default()
    };
    let mut without_id = options(released);
    without_id.candidate.as_mut().unwrap().id.clear();
    vec![
        (persona(pb::Persona::default()), "persona"),
        (
            persona(pb::Persona { traits: good().persona.unwrap().traits.repeat(2), ..Default::default() }),
            "persona.traits",
        ),
        (
            persona(pb::Persona { description: "Big Five focus: charm".into(), ..Default::default() }),
            "persona.description",
        ),
        (nameless, "context[0].speaker"),
        (request(" "), "candidate.response"),
        (without_id, "candidate.id"),
        (options(pb::Options { likelihood_t: Some(-1.0), ..pb::Options::default() }), "options.likelihood_t"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_request_is_told_before_its_quota_and_costs_its_tenant_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut entries = String::new();
    let small = key(&mut entries, &["--tenant", "small"]);
    entries.push_str("[tenants.small]\ntokens_per_second = 1\nburst_tokens = 10\n");
    let Some(server) = serve(folder.path(), &entries, &[]).await else { return };
    let judge = server.judge().await;
    let wrong_field = async |request: pb::ScoreRequest| {
        let status = judge.clone().score(with(&small, request)).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        status.get_details_bad_request().unwrap().field_violations.remove(0).field
    };
    for (request, field) in wrong_requests() {
        assert_eq!(wrong_field(request).await, field);
    }
    // Only its tokens say that this is too long, and the whole group needs them.
    let mut long = request("Well?");
    long.context[0].text = "a b ".repeat(15_000);
    let calibration = Some(pb::Calibration::Contextual as i32);
    long.options = Some(pb::Options { calibration, ..pb::Options::default() });
    assert_eq!(wrong_field(long).await, "context");
    assert!(judge.clone().score(with(&small, request("One."))).await.is_ok(), "nothing was taken");
    let status = judge.clone().score(with(&small, request("Two."))).await.unwrap_err();
    assert_eq!(reason(&status), "OVER_QUOTA");
    for (request, field) in wrong_requests() {
        assert_eq!(wrong_field(request).await, field, "beyond the quota");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_load_client_shows_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let mut entries = String::new();
    let key = key(&mut entries, &["--tenant", "load"]);
    let Some(server) = serve(folder.path(), &entries, &[]).await else { return };
    let address = server.address.clone();
    tokio::task::spawn_blocking(move || {
        let stream = "rate=max,calls=4,context=5,reply=5";
        assert_eq!(load(&address, &["--api-key", &key, stream])["codes"], serde_json::json!({"Ok": 4}));
        assert_eq!(load(&address, &[stream])["codes"], serde_json::json!({"Unauthenticated": 4}));
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_file_changes_who_may_call_and_a_wrong_one_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let (mut entries, mut later) = (String::new(), String::new());
    let (old, new) = (key(&mut entries, &["--tenant", "t"]), key(&mut later, &["--tenant", "t"]));
    let Some(server) = serve(folder.path(), &entries, &[]).await else { return };
    let file = folder.path().join("keys.toml");
    let mut judge = server.judge().await;
    let mut code = async |key: &str| match judge.get_judge_info(with(key, pb::GetJudgeInfoRequest {})).await {
        Ok(_) => Code::Ok,
        Err(status) => status.code(),
    };
    assert_eq!((code(&old).await, code(&new).await), (Code::Ok, Code::Unauthenticated));
    std::fs::write(&file, "[[keys]]\nsha256 = \"no\"").unwrap();
    server.logged("new API keys cannot be used");
    assert_eq!(code(&old).await, Code::Ok);
    std::fs::write(&file, &later).unwrap();
    server.logged("new API keys are in use");
    assert_eq!((code(&old).await, code(&new).await), (Code::Unauthenticated, Code::Ok));
}
