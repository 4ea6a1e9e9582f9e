//! The guardrail with the real model: decisions, policies, budgets, and a reply that is judged while it grows. What needs no
//! model is tested beside the code (src/server/tests/check.rs, src/service/check).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::collections::HashMap;

use prism_judge::engine::{Prompt, Read};
use prism_judge::prism::{Group, Turn};
use prism_judge::server::pb;
use prism_judge::server::pb::check_stream_request::Message;
use prism_judge::server::pb::judge_service_client::JudgeServiceClient;
use prism_judge::service::{Call, OptionOverrides};
use support::cli::{run, stderr};
use support::judge::{JUDGE, LABEL_SLOT, LIKELIHOOD, extravert, uncached};
use support::server::{Server, tiny_model};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Streaming};

type Client = JudgeServiceClient<Channel>;

const CONTEXT: &str = "Are you coming to the party tonight?";

fn thresholds(s_prism: f64) -> Option<pb::Thresholds> {
    Some(pb::Thresholds { s_prism: Some(s_prism), ..pb::Thresholds::default() })
}

/// A policy that nothing falls short of.
fn anything() -> pb::Policy {
    pb::Policy { block: thresholds(0.0), ..pb::Policy::default() }
}

fn check(response: &str, policy: pb::Policy) -> pb::CheckRequest {
    let target = pb::TraitTarget { r#trait: pb::Trait::Extraversion as i32, polarity: pb::Polarity::High as i32 };
    pb::CheckRequest {
        persona: Some(pb::Persona { traits: vec![target], ..pb::Persona::default() }),
        context: vec![pb::Turn { speaker: "User".into(), text: CONTEXT.into() }],
        candidate: Some(pb::Candidate { id: "c".into(), response: response.into() }),
        policy: Some(policy),
        ..pb::CheckRequest::default()
    }
}

async fn checked(judge: &Client, request: pb::CheckRequest) -> pb::CheckResponse {
    judge.clone().check(request).await.unwrap().into_inner()
}

/// A stream under way.
struct Stream {
    send: mpsc::UnboundedSender<pb::CheckStreamRequest>,
    answers: Streaming<pb::CheckStreamResponse>,
}

impl Stream {
    async fn open(judge: &Client, start: pb::CheckRequest) -> Self {
        let (send, messages) = mpsc::unbounded_channel();
        send.send(pb::CheckStreamRequest { message: Some(Message::Start(start)) }).unwrap();
        let answers = judge.clone().check_stream(UnboundedReceiverStream::new(messages)).await.unwrap();
        Self { send, answers: answers.into_inner() }
    }

    fn say(&self, text: &str) {
        self.send.send(pb::CheckStreamRequest { message: Some(Message::Text(text.to_owned())) }).unwrap();
    }

    async fn answer(&mut self) -> pb::CheckStreamResponse {
        self.answers.message().await.unwrap().unwrap()
    }

    /// Ends the caller's side; what is still answered.
    async fn close(self) -> Vec<pb::CheckStreamResponse> {
        let Self { send, mut answers } = self;
        drop(send);
        let mut rest = Vec::new();
        while let Some(answer) = answers.message().await.unwrap() {
            rest.push(answer);
        }
        rest
    }
}

/// A reply as it comes, and the bytes of it that are judged after each piece; None where no sentence ends.
const REPLY: [(&str, Option<usize>); 7] = [
    ("Oh yes, count me in!", Some(20)),
    (" I will bring my guitar, the big speaker", None),
    (" and two friends who love to dance.", Some(95)),
    (" Who else is coming?", Some(115)),
    (" Tell me everything! We could start at 7.30 and stay until they throw us out.", Some(192)),
    ("\n", None),
    ("See you at eight", None),
];

/// What one prompt after the other must compute where keys and values are kept, and what was read of a row: tokens that
/// are new, a row after which the last prompt read another token, and the row of an answer slot.
#[derive(Default)]
struct Kept(HashMap<Vec<u32>, Option<u32>>);

impl Kept {
    fn computes(&mut self, Prompt { ids, read }: &Prompt) -> u64 {
        let rows = match read {
            Read::Next(_) => ids.len() - 1..ids.len(),
            Read::Span(span) => span.start - 1..span.end - 1,
        };
        let mut computed = 0;
        for at in 0..rows.end {
            let target = match read {
                Read::Span(_) if rows.contains(&at) => Some(ids[at + 1]),
                _ => None,
            };
            let known = self.0.get(&ids[..=at]).copied();
            if known.is_none_or(|last| rows.contains(&at) && (target.is_none() || last != target)) {
                computed += 1;
            }
            let last = target.or(known.flatten());
            self.0.insert(ids[..=at].to_vec(), last);
        }
        computed
    }
}

/// The prompts of a response.
fn prompts(response: &str, overrides: &OptionOverrides) -> Vec<Prompt> {
    let group = group(response);
    let prompts = JUDGE.as_ref().unwrap().prompts(&group, overrides).unwrap();
    prompts.into_iter().map(|prompt| prompt.prompt).collect()
}

fn group(response: &str) -> Group {
    Group {
        context: vec![Turn { speaker: "User".to_owned(), text: CONTEXT.to_owned() }],
        ..support::judge::group(extravert(), "", &[response])
    }
}

fn common(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Both estimators: what is computed for each text, and that the bits are those of a check of that text alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_grows_never_pays_twice_and_is_judged_as_each_of_its_beginnings_alone() {
    let Some(alone) = JUDGE.as_ref() else { return };
    let server = Server::start(&[]).ready().await;
    let judge = server.judge().await;
    for (evidence, overrides) in [(pb::EvidenceKind::Likelihood, LIKELIHOOD), (pb::EvidenceKind::LabelSlot, LABEL_SLOT)]
    {
        let options = Some(pb::Options { evidence: Some(evidence as i32), ..pb::Options::default() });
        let with = |request: pb::CheckRequest| pb::CheckRequest { options, ..request };
        let mut stream =
            Stream::open(&judge, with(pb::CheckRequest { candidate: None, ..check("", anything()) })).await;
        let (mut text, mut answers) = (String::new(), Vec::new());
        for (piece, judged) in REPLY {
            stream.say(piece);
            text.push_str(piece);
            if let Some(judged) = judged {
                let answer = stream.answer().await;
                assert_eq!((answer.judged_bytes, answer.last), (judged as u64, false), "{text}");
                answers.push(answer);
            }
        }
        answers.extend(stream.close().await);
        assert_eq!(answers.len(), 5);
        let ends: Vec<_> = answers.iter().map(|answer| (answer.judged_bytes as usize, answer.last)).collect();
        assert_eq!(ends[4], (text.len(), true));

        let whole = prompts(&text, &overrides);
        let (mut kept, mut computed, mut suffixes, mut apart) = (Kept::default(), 0, 0, Vec::new());
        let ask = async |call: Call, response: &str| {
            alone.score(group(response), &overrides, &call).await.unwrap().remove(0).unwrap()
        };
        for answer in &answers {
            let judged = &text[..answer.judged_bytes as usize];
            let verdict = answer.check.as_ref().unwrap().verdict.as_ref().unwrap();
            // A check of that text alone.
            let again = pb::CheckRequest { cache: pb::CacheControl::Off as i32, ..check(judged, anything()) };
            let again = checked(&judge, with(again)).await.verdict.unwrap();
            assert_eq!((&again.dimensions, again.s_prism), (&verdict.dimensions, verdict.s_prism), "{judged}");

            // The same texts in the same order, where nobody has asked before: not even the server's self-check.
            let grown = ask(Call { tenant: format!("grows {evidence:?}"), ..Call::default() }, judged).await;
            assert_eq!(grown.s_prism, verdict.s_prism, "{judged}");
            let prompts = prompts(judged, &overrides);
            let computes = |kept: &mut Kept| prompts.iter().map(|prompt| kept.computes(prompt)).sum::<u64>();
            let expected = computes(&mut kept);
            assert_eq!(grown.tokens.computed, expected, "{evidence:?}: {judged}");
            assert!(verdict.tokens.unwrap().computed <= expected, "{evidence:?}: {judged}");
            computed += expected;
            apart.push(computes(&mut Kept::default()));
            if !answer.last {
                // What the whole text does not share with it, and the end of what it shares once more.
                let own = |(prompt, whole): (&Prompt, &Prompt)| prompt.ids.len() - common(&prompt.ids, &whole.ids) + 1;
                suffixes += prompts.iter().zip(&whole).map(own).sum::<usize>() as u64;
            }
        }
        let once = ask(Call { tenant: format!("once {evidence:?}"), ..uncached() }, &text).await;
        assert_eq!((once.tokens.computed, once.s_prism.to_bits()), (apart[4], last_s_prism(&answers).to_bits()));
        assert!(computed <= apart[4] + suffixes, "{evidence:?}: {computed} > {} + {suffixes}", apart[4]);
        println!("{evidence:?}: {computed} tokens; each text where nobody has asked before: {apart:?}");
    }
}

fn last_s_prism(answers: &[pb::CheckStreamResponse]) -> f64 {
    answers.last().unwrap().check.as_ref().unwrap().verdict.as_ref().unwrap().s_prism
}

#[tokio::test]
async fn thresholds_decide_by_the_numbers_of_the_verdict() {
    let Some(_) = support::backbone() else { return };
    let server = Server::start(&[]).ready().await;
    let judge = server.judge().await;
    let response = "I would rather stay in and read by myself, if that is all right.";
    let free = checked(&judge, check(response, anything())).await;
    assert_eq!((free.decision(), free.failed.as_str()), (pb::Decision::Allow, ""));
    let verdict = free.verdict.unwrap();
    let stance = verdict.dimensions.as_ref().unwrap().interpersonal_stance.as_ref().unwrap().evidence;
    let above = f64::from_bits(stance.to_bits() + 1);
    let stance_at = |least| Some(pb::Thresholds { interpersonal_stance: Some(least), ..pb::Thresholds::default() });
    for (policy, decision, failed) in [
        (pb::Policy { block: stance_at(stance), ..pb::Policy::default() }, pb::Decision::Allow, ""),
        (pb::Policy { block: stance_at(above), ..pb::Policy::default() }, pb::Decision::Block, "interpersonal_stance"),
        (pb::Policy { warn: stance_at(above), ..pb::Policy::default() }, pb::Decision::Warn, "interpersonal_stance"),
        (
            pb::Policy { block: stance_at(stance), warn: thresholds(1.0), ..pb::Policy::default() },
            pb::Decision::Warn,
            "s_prism",
        ),
    ] {
        let reply = checked(&judge, check(response, policy)).await;
        assert_eq!((reply.decision(), reply.failed.as_str()), (decision, failed), "{}", reply.reason);
        assert!(!reply.reason.contains("read"), "{}", reply.reason);
        let again = reply.verdict.unwrap();
        assert_eq!((again.cached, again.s_prism.to_bits()), (true, verdict.s_prism.to_bits()));
    }
}

#[tokio::test]
async fn what_takes_too_long_is_decided_by_the_policy_and_counted_as_an_error() {
    let Some(_) = support::backbone() else { return };
    let server = Server::start(&[]).ready().await;
    let judge = server.judge().await;
    // Hundreds of tokens: no machine judges them in a millisecond.
    let response = "Of course I am, and I will bring everybody. ".repeat(40);
    for (on_error, decision) in [(pb::OnError::Allow, pb::Decision::Allow), (pb::OnError::Block, pb::Decision::Block)] {
        let policy = pb::Policy { budget_ms: 1, on_error: on_error as i32, ..anything() };
        let reply = checked(&judge, check(&response, policy)).await;
        let error = reply.error.as_ref().unwrap();
        assert_eq!((reply.decision(), error.code()), (decision, pb::ErrorCode::DeadlineExceeded));
        assert_eq!(reply.verdict, None);
    }
    let reply = checked(&judge, check("Of course I am!", pb::Policy { min_tokens: 99, ..anything() })).await;
    assert_eq!(reply.decision(), pb::Decision::Abstain);
    assert_eq!(checked(&judge, check("Of course I am!", anything())).await.decision(), pb::Decision::Allow);
    let (_, metrics) = server.get("/metrics");
    for (decision, ground, count) in [
        ("allow", "error", 1),
        ("block", "error", 1),
        ("abstain", "length", 1),
        ("allow", "verdict", 1),
        ("block", "verdict", 0),
    ] {
        let series = format!("prism_judge_checks_total{{decision=\"{decision}\",ground=\"{ground}\"}} {count}\n");
        assert!(metrics.contains(&series), "{series}{metrics}");
    }
}

/// Lengths are those of llama.cpp's tokens (tests/golden).
#[tokio::test]
async fn a_response_is_as_long_as_its_tokens_and_a_wrong_request_is_wrong_whatever_its_length() {
    let folder = tempfile::tempdir().unwrap();
    let Some(model) = tiny_model(folder.path()) else { return };
    let server = Server::start(&["--model", model.to_str().unwrap()]).ready().await;
    let judge = server.judge().await;
    let golden = include_str!("golden/smollm2_tokens.jsonl").lines();
    let golden = golden.map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let texts: Vec<(String, u32)> = golden
        .map(|line| (line["text"].as_str().unwrap().to_owned(), line["ids"].as_array().unwrap().len() as u32))
        .filter(|(text, tokens)| *tokens > 1 && !text.trim().is_empty() && !text.chars().any(char::is_control))
        .step_by(10)
        .take(12)
        .collect();
    assert!(texts.len() >= 10, "{texts:?}");
    for (text, tokens) in texts {
        for (min_tokens, decision) in [(tokens, pb::Decision::Allow), (tokens + 1, pb::Decision::Abstain)] {
            let reply = checked(&judge, check(&text, pb::Policy { min_tokens, ..anything() })).await;
            assert_eq!(reply.decision(), decision, "{text:?} {tokens}");
        }
    }
    let long = pb::Policy { min_tokens: 1000, ..anything() };
    let nobody = pb::CheckRequest { persona: Some(pb::Persona::default()), ..check("Short.", long) };
    for (request, field) in [(nobody, "persona"), (check(" ", long), "candidate.response")] {
        let status = judge.clone().check(request).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().starts_with(field), "{}", status.message());
    }
}

#[tokio::test]
async fn policies_are_read_from_a_file_by_name_and_the_example_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let Some(model) = tiny_model(folder.path()) else { return };
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/policies.toml");
    let sidecar = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/config/guardrail-sidecar.toml");
    let flags = ["--config", sidecar, "--policies", example, "--model", model.to_str().unwrap()];
    let server = Server::start(&flags).ready().await;
    let judge = server.judge().await;
    let named = |name: &str| pb::CheckRequest {
        policy: None,
        policy_name: name.into(),
        ..check("Yes! I will bring everyone I know, and we can dance all night!", anything())
    };
    for (name, told) in [("", "default"), ("watch", "watch"), ("strict", "strict")] {
        let reply = checked(&judge, named(name)).await;
        assert_eq!((reply.policy_name.as_str(), reply.reason.is_empty()), (told, false));
    }
    let status = judge.clone().check(named("strickt")).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert!(status.message().contains("near it: strict"), "{}", status.message());

    let wrong = folder.path().join("wrong.toml");
    std::fs::write(&wrong, "[policies.a]\nblock = { s_prism = 30 }\n").unwrap();
    let output =
        run(&["serve", "--listen", "127.0.0.1:0", "--admin-listen", "off", "--policies", wrong.to_str().unwrap()], b"");
    assert_eq!(output.status.code(), Some(64));
    let told = "wrong.toml: policies.a.block.s_prism: it is 30 and must be a number from 0 to 1";
    assert!(stderr(&output).contains(told), "{}", stderr(&output));
}

#[tokio::test]
async fn checks_are_recorded_by_their_method_and_replay() {
    let folder = tempfile::tempdir().unwrap();
    let Some(model) = tiny_model(folder.path()) else { return };
    let (model, audit) = (model.to_str().unwrap(), folder.path().join("audit.jsonl"));
    let audit = audit.to_str().unwrap();
    let server = Server::start(&["--model", model, "--audit-file", audit]).ready().await;
    let judge = server.judge().await;
    checked(&judge, check("Yes, of course!", anything())).await;
    let mut stream = Stream::open(&judge, check("Yes, indeed!", anything())).await;
    assert_eq!(stream.answer().await.judged_bytes, 12);
    stream.say(" And you");
    assert_eq!(stream.close().await.len(), 1);
    server.signal("TERM");
    assert_eq!(server.end().code(), Some(0));
    let records = std::fs::read_to_string(audit).unwrap();
    let methods = |name: &str| records.matches(&format!("\"method\":\"{name}\"")).count();
    assert_eq!((methods("Check"), methods("CheckStream")), (1, 2), "{records}");
    let replayed = run(&["replay", "--model", model, audit], b"");
    assert_eq!(replayed.status.code(), Some(0), "{}", stderr(&replayed));
}
