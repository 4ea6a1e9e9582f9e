//! The HTTP routes judge what gRPC judges: the same item has the same bits on every way.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use prism_judge::server::pb;
use serde_json::{Value, json};
use support::http::post;
use support::server::{Server, request, tiny_model};

const CHATML: &str = "<|im_start|>system\nYou are Teodor.<|im_end|>\n<|im_start|>user\nAre you coming to the party tonight?<|im_end|>\n\
                      <|im_start|>assistant\n";

async fn serve(more: &[&str]) -> Option<(tempfile::TempDir, Server)> {
    let folder = tempfile::tempdir().unwrap();
    let model = tiny_model(folder.path())?;
    let server = Server::start(&[&["--model", model.to_str().unwrap()], more].concat()).ready().await;
    Some((folder, server))
}

/// The persona of [`request`], as JSON.
fn persona() -> Value {
    json!({"traits": [{"trait": "TRAIT_EXTRAVERSION", "polarity": "POLARITY_HIGH"}]})
}

async fn over_grpc(server: &Server, response: &str) -> pb::Verdict {
    let ask = pb::ScoreRequest { cache: pb::CacheControl::Off as i32, ..request(response) };
    server.judge().await.score(ask).await.unwrap().into_inner().verdict.unwrap()
}

/// S to the last bit.
fn bits(value: &Value) -> u64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number")).to_bits()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_gives_the_bits_of_grpc() {
    let Some((_folder, server)) = serve(&[]).await else { return };
    let messages = json!([{"role": "user", "content": "Are you coming to the party tonight?"}]);
    for reply in ["Yes! Who else is in?", "I would rather read."] {
        let verdict = over_grpc(&server, reply).await;
        let expected = verdict.s_prism.to_bits();
        let ask = |path: &str, body: Value| {
            let answer = post(&server.http, path, &[], &body);
            assert_eq!(answer.status, 200, "{path}: {}", answer.body);
            answer.json()
        };
        let own = json!({"persona": persona(), "context": [{"speaker": "User", "text": "Are you coming to the party tonight?"}],
            "candidate": {"id": "c", "response": reply}, "cache": "CACHE_CONTROL_OFF"});
        let score = ask("/v1/score", own);
        assert_eq!(bits(&score["verdict"]["s_prism"]), expected);
        let stance = verdict.dimensions.unwrap().interpersonal_stance.unwrap().evidence.to_bits();
        assert_eq!(bits(&score["verdict"]["dimensions"]["interpersonal_stance"]["evidence"]), stance);

        // Alone, among others, padded, as text and as messages.
        let padded = format!("{CHATML}{reply}{}", "<|im_end|>".repeat(200));
        let queries = [padded.clone(), format!("{CHATML}Perhaps."), format!("{CHATML}{reply}")];
        let list = json!({"query": queries, "prompts": [CHATML, CHATML, messages], "labels": [persona(), persona(), persona()]});
        let rewards = ask("/get_reward", list)["rewards"].clone();
        assert_eq!((bits(&rewards[0]), bits(&rewards[2])), (expected, expected));
        for prompt in [json!(CHATML), messages.clone(), json!("Are you coming to the party tonight?")] {
            let body = json!({"prompt": prompt, "response": reply, "label": persona()});
            assert_eq!(bits(&ask("/reward", body)), expected);
        }
        let row = json!({"persona": persona(), "responses_create_params": {"input": messages},
            "response": {"output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": reply}]}]}});
        assert_eq!(bits(&ask("/verify", row)["reward"]), expected);
        let thought = format!("Hm, a party.\n</think>\n\n{reply}");
        let body = json!({"prompt": format!("{CHATML}<think>\n"), "response": thought, "label": persona()});
        assert_eq!(bits(&ask("/reward", body)), expected);
        let guarded =
            json!({"output": reply, "context": {"prompt": messages.to_string(), "vars": {"persona": persona()}}});
        assert_eq!(bits(&ask("/promptfoo", guarded)["score"]), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_reply_of_a_mile_fails_alone_and_leaves_its_neighbours_their_bits() {
    let Some((_folder, server)) = serve(&[]).await else { return };
    let mut replies: Vec<String> = (0..7).map(|at| format!("Reply {at}: yes!")).collect();
    replies.insert(3, "ha ".repeat(70_000));
    let queries: Vec<String> = replies.iter().map(|reply| format!("{CHATML}{reply}<|im_end|>")).collect();
    let body = json!({"query": queries, "prompts": vec![CHATML; 8], "labels": vec![persona(); 8]});
    let answer = post(&server.http, "/get_reward", &[], &body);
    assert_eq!(answer.status, 200, "{}", answer.body);
    let answer = answer.json();
    for (at, reply) in replies.iter().enumerate() {
        if at == 3 {
            assert_eq!(answer["rewards"][3], Value::Null);
        } else {
            assert_eq!(bits(&answer["rewards"][at]), over_grpc(&server, reply).await.s_prism.to_bits(), "{at}");
        }
    }
    let errors = answer["errors"].as_array().unwrap();
    assert_eq!((errors.len(), &errors[0]["index"], &errors[0]["field"]), (1, &json!(3), &json!("query[3]")));
}

#[tokio::test(flavor = "multi_thread")]
async fn options_reach_the_judge_to_the_last_bit() {
    let Some((_folder, server)) = serve(&[]).await else { return };
    // The shortest text of a double that a careless reader of numbers rounds another way.
    let t = 0.299_999_999_999_999_93_f64;
    let options = pb::Options { evidence: Some(2), likelihood_t: Some(t), ..pb::Options::default() };
    let ask = pb::ScoreRequest { options: Some(options), ..request("Yes!") };
    let verdict = server.judge().await.score(ask).await.unwrap().into_inner().verdict.unwrap();
    let own = json!({"persona": persona(), "context": [{"speaker": "User", "text": "Are you coming to the party tonight?"}],
        "candidate": {"id": "c", "response": "Yes!"}, "options": {"evidence": "EVIDENCE_KIND_LIKELIHOOD", "likelihood_t": t}});
    let answer = post(&server.http, "/v1/score", &[], &own).json();
    assert_eq!(answer["verdict"]["judge"]["prompt_digest"], verdict.judge.unwrap().prompt_digest);
    assert_eq!(bits(&answer["verdict"]["s_prism"]), verdict.s_prism.to_bits());
    assert_eq!(answer["verdict"]["cached"], true);
}
