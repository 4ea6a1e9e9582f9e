//! Keys: who may call what, in which lane, and how much.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::fmt::Write as _;
use std::path::Path;

use prism_judge::server::pb;
use prost::Message as _;
use prost_types::FileDescriptorSet;
use support::cli::run;
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
