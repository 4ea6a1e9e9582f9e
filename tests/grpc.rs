//! The gRPC server with the real model. What needs no model is tested beside the code, in `src/server/tests.rs`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use prism_judge::server::pb;
use prism_judge::server::pb::candidate_result::Result as Wire;
use prism_judge::server::pb::judge_service_client::JudgeServiceClient;
use support::cli::{json_lines, run, s_prism, stderr};
use support::server::{Server, request, tiny_model};
use tonic::transport::Channel;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};
use tonic_types::StatusExt as _;

/// A server of these flags, ready, and a channel to it.
async fn start(args: &[&str]) -> (Server, JudgeServiceClient<Channel>) {
    let server = Server::start(args).ready().await;
    let judge = server.judge().await;
    (server, judge)
}

async fn services(server: &Server) -> Result<Vec<String>, tonic::Status> {
    let request = ServerReflectionRequest {
        message_request: Some(MessageRequest::ListServices(String::new())),
        ..ServerReflectionRequest::default()
    };
    let mut client = ServerReflectionClient::new(server.channel().await);
    let mut replies = client.server_reflection_info(tokio_stream::once(request)).await?.into_inner();
    let reply: ServerReflectionResponse = replies.message().await?.unwrap();
    match reply.message_response {
        Some(MessageResponse::ListServicesResponse(list)) => {
            Ok(list.service.into_iter().map(|service| service.name).collect())
        }
        other => panic!("unexpected {other:?}"),
    }
}

const RESPONSES: [&str; 3] = ["Yes! Who else is in?", "I would rather stay in with a book.", "Maybe."];

fn persona() -> Option<pb::Persona> {
    let target = pb::TraitTarget { r#trait: pb::Trait::Extraversion as i32, polarity: pb::Polarity::High as i32 };
    Some(pb::Persona { traits: vec![target], ..pb::Persona::default() })
}

fn context() -> Vec<pb::Turn> {
    vec![pb::Turn { speaker: "User".into(), text: "Are you coming to the party tonight?".into() }]
}

fn candidates() -> Vec<pb::Candidate> {
    let candidate =
        |(index, response): (usize, &&str)| pb::Candidate { id: index.to_string(), response: (*response).into() };
    RESPONSES.iter().enumerate().map(candidate).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_call_a_group_and_the_command_line_give_the_same_bits() {
    let Some(_) = support::backbone() else { return };
    let in_f32 = same_bits(&[], pb::Numerics::F32).await;
    let in_int8 = same_bits(&["--numerics", "int8"], pb::Numerics::Int8).await;
    for (a, b) in in_f32.iter().zip(in_int8) {
        assert!(*a != b && (a - b).abs() < 1e-3, "{a} in f32, {b} in int8");
    }
}

/// Compares a server of these flags with `score`; gives S of [`RESPONSES`].
async fn same_bits(flags: &[&str], numerics: pb::Numerics) -> Vec<f64> {
    let (server, mut judge) = start(flags).await;
    let rows: String = RESPONSES
        .iter()
        .enumerate()
        .map(|(index, response)| support::cli::row(&index.to_string(), "extraversion", "high", response))
        .collect();
    let output = run(&[&["score"], flags].concat(), rows.as_bytes());
    let text = String::from_utf8(output.stdout).unwrap();
    let from_cli: Vec<f64> = text.lines().map(s_prism).collect();
    let name = format!("\"numerics\":\"{}\"", numerics.as_str_name().trim_start_matches("NUMERICS_").to_lowercase());
    assert!(text.lines().all(|line| line.contains(&name)), "{text}");

    let request = pb::ScoreGroupRequest {
        persona: persona(),
        context: context(),
        candidates: candidates(),
        request_id: "r".into(),
        ..pb::ScoreGroupRequest::default()
    };
    let reply = judge.score_group(request).await.unwrap().into_inner();
    assert_eq!(reply.request_id, "r");
    let verdict = |result: &pb::CandidateResult| match &result.result {
        Some(Wire::Verdict(verdict)) => verdict.clone(),
        other => panic!("no verdict but {other:?}"),
    };
    let group: Vec<_> = reply.results.iter().map(verdict).collect();
    assert_eq!(group.iter().map(|verdict| verdict.s_prism).collect::<Vec<_>>(), from_cli);
    assert!(group.iter().all(|verdict| verdict.judge.as_ref().unwrap().numerics() == numerics));

    for (candidate, in_group) in candidates().into_iter().zip(group) {
        let request = pb::ScoreRequest {
            persona: persona(),
            context: context(),
            candidate: Some(candidate),
            cache: pb::CacheControl::Off as i32,
            ..pb::ScoreRequest::default()
        };
        let cached = pb::ScoreRequest { cache: pb::CacheControl::Use as i32, ..request.clone() };
        let mut alone = judge.score(request).await.unwrap().into_inner().verdict.unwrap();
        // A group shares tokens; the judgement is the same.
        alone.tokens = in_group.tokens;
        assert_eq!(alone, in_group);
        let cached = judge.score(cached).await.unwrap().into_inner().verdict.unwrap();
        let tokens = pb::TokenCounts { computed: 0, ..in_group.tokens.unwrap() };
        assert_eq!(cached, pb::Verdict { tokens: Some(tokens), cached: true, ..in_group });
    }
    let info = judge.get_judge_info(pb::GetJudgeInfoRequest {}).await.unwrap().into_inner();
    assert_eq!((info.model.as_str(), info.numerics()), ("smollm2-135m-instruct", numerics));
    assert_eq!(info.model_digest, "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53");
    server.signal("TERM");
    assert_eq!(server.end().code(), Some(0));
    from_cli
}

#[tokio::test]
async fn options_of_a_request_are_in_its_verdict() {
    let Some(_) = support::backbone() else { return };
    let (_server, judge) = start(&["--evidence", "label_slot", "--label-order", "cyclic"]).await;
    let ask = async |options: Option<pb::Options>| {
        let request = pb::ScoreRequest {
            persona: persona(),
            context: context(),
            candidate: candidates().pop(),
            options,
            ..pb::ScoreRequest::default()
        };
        judge.clone().score(request).await.unwrap().into_inner().verdict.unwrap()
    };
    let orders =
        |verdict: &pb::Verdict| verdict.dimensions.as_ref().unwrap().task_framing.as_ref().unwrap().label_order.len();
    let default = ask(None).await;
    assert_eq!((default.judge.as_ref().unwrap().label_order(), orders(&default)), (pb::LabelOrder::Cyclic, 3));
    let options = pb::Options { label_order: Some(pb::LabelOrder::All as i32), ..pb::Options::default() };
    let all = ask(Some(options)).await;
    assert_eq!((all.judge.as_ref().unwrap().label_order(), orders(&all)), (pb::LabelOrder::All, 6));
    let mass = all.dimensions.unwrap().task_framing.unwrap().label_mass.unwrap();
    assert!((0.0..=1.0).contains(&mass));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trait_that_is_given_twice_is_refused_alike_by_the_command_line_and_over_grpc() {
    let folder = tempfile::tempdir().unwrap();
    let Some(model) = tiny_model(folder.path()) else { return };
    let model = model.to_str().unwrap();
    let expected =
        "the trait `extraversion` is in persona.traits[0] and again in persona.traits[1]; give each trait once";
    let target = r#"{"trait":"extraversion","polarity":"high"}"#;
    let row = format!(r#"{{"id":"a","persona":{{"traits":[{target},{target}]}},"context":[],"response":"Yes!"}}"#);
    let output = run(&["score", "--model", model], row.as_bytes());
    assert_eq!(json_lines(&output)[0]["error"]["message"], expected, "{}", stderr(&output));
    let (_server, mut judge) = start(&["--model", model]).await;
    let mut twice = request("Yes!");
    let traits = &mut twice.persona.as_mut().unwrap().traits;
    traits.extend(traits.clone());
    let status = judge.score(twice).await.unwrap_err();
    let violation = status.get_details_bad_request().unwrap().field_violations.remove(0);
    assert_eq!((violation.field.as_str(), violation.description.as_str()), ("persona.traits", expected));
}

#[tokio::test]
async fn reflection_is_offered_only_when_asked_for() {
    let Some(_) = support::backbone() else { return };
    let server = Server::start(&["--reflection"]).ready().await;
    let services = services(&server).await.unwrap();
    assert!(services.iter().any(|name| name == "prism.judge.v1.JudgeService"), "{services:?}");
    let server = Server::start(&[]).ready().await;
    assert_eq!(self::services(&server).await.unwrap_err().code(), tonic::Code::Unimplemented);
}

#[tokio::test]
async fn a_port_that_is_taken_is_a_failed_start() {
    let Some(_) = support::backbone() else { return };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let output = tokio::task::spawn_blocking(move || run(&["serve", "--listen", &address], b"")).await.unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("cannot listen on"), "{}", stderr(&output));
}
