//! What is refused, and how that looks.

use serde_json::{Value, json};

use super::{Harness, head};
use crate::server::MESSAGE_LIMIT;
use crate::server::http::route::Route;

#[tokio::test]
async fn a_body_that_is_wrong_is_named_by_field_and_place() {
    let harness = Harness::with(Default::default()).await;
    for (path, body, field) in [
        ("/v1/score", "{", ""),
        ("/v1/score", "{\"candidate\":{\"response\":\"x\"},\n\"lane\":\"LANE_FAST\"}", "lane"),
        ("/v1/score", "{\"persona\":{\"traits\":[{\"trait\":7}]}}", "persona.traits[0].trait"),
        ("/v1/score_group", "{\"candidates\":[{\"id\":\"a\"},{\"id\":1}]}", "candidates[1].id"),
        ("/get_reward", "{\"query\":[\"a\",7]}", "query[1]"),
        ("/get_reward", "{}", ""),
        ("/reward", "{\"prompt\":[{\"role\":\"user\",\"content\":7}],\"response\":\"x\"}", "prompt[0].content"),
        ("/v1/moderations", "{\"input\":7}", "input"),
        ("/beta/litellm_basic_guardrail_api", "{\"input_type\":\"both\"}", "input_type"),
    ] {
        let reply = harness.post_with(path, &[], body).await;
        assert_eq!((reply.status, reply.error().2.as_str()), (400, field), "{path} {body}: {}", reply.body);
        let message = reply.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains("line ") && message.contains("column "), "{message}");
    }
    // What is well-formed and still wrong is told by the service, every field at once.
    let reply = harness.post("/v1/score", &json!({"persona": {"traits": [{"trait": "TRAIT_OPENNESS"}]}})).await;
    let fields = reply.json()["error"]["fields"].clone();
    let fields: Vec<_> = fields.as_array().unwrap().iter().map(|field| field["field"].clone()).collect();
    assert_eq!(fields, ["candidate", "persona.traits[0].polarity"]);
}

#[tokio::test]
async fn an_unknown_path_is_told_the_routes_and_a_wrong_method_the_right_one() {
    let harness = Harness::with(Default::default()).await;
    let reply = harness.post("/v1/scores", &json!({})).await;
    assert_eq!((reply.status, reply.error().1.as_str()), (404, "NO_ROUTE"));
    let message = reply.json()["error"]["message"].as_str().unwrap().to_owned();
    for route in Route::ALL.into_iter().filter(|route| *route != Route::PageFile) {
        assert!(message.contains(&format!("{} {}", route.verb(), route.path())), "{message}");
    }
    assert_eq!(harness.get("/page/absent.js").await.status, 404);
    for route in Route::ALL {
        let path = route.path().replace("{file}", "index.html");
        let (verb, right) = if route.verb() == "GET" { ("POST", "get") } else { ("GET", "post") };
        let reply = harness.send(head(verb, &path, &[]).as_bytes()).await;
        assert_eq!((reply.status, reply.header("allow")), (405, Some(right)), "{path}");
        assert_eq!(reply.error().1, "METHOD_NOT_ALLOWED");
    }
}

#[tokio::test]
async fn only_json_of_a_bounded_size_is_read() {
    let harness = Harness::kind().await;
    for kind in ["text/plain", "application/x-www-form-urlencoded"] {
        let reply = harness.post_with("/reward", &[("content-type", kind)], "{}").await;
        assert_eq!((reply.status, reply.error().1.as_str()), (415, "MEDIA_TYPE"));
    }
    let fits = json!({"prompt": "x".repeat(MESSAGE_LIMIT - 100), "response": "one"});
    assert_eq!(harness.post("/reward", &fits).await.body, "1.0");
    // The whole body is sent before the answer is read.
    let large = json!({"prompt": "x".repeat(MESSAGE_LIMIT), "response": "one"});
    let reply = harness.post("/reward", &large).await;
    assert_eq!((reply.status, reply.error().0.as_str()), (413, "OUT_OF_RANGE"));
}

#[tokio::test]
async fn a_parameter_that_a_route_does_not_have_is_refused() {
    let harness = Harness::kind().await;
    let body = json!({"prompt": "Hi!", "response": "one"});
    for (path, field) in [
        ("/reward?strip_thinks=false", "strip_thinks"),
        ("/reward?strip_think=no", "strip_think"),
        ("/reward?threshold=0.5", "threshold"),
    ] {
        let reply = harness.post(path, &body).await;
        assert_eq!((reply.status, reply.error().2.as_str()), (400, field), "{path}");
    }
    assert_eq!(harness.get("/v1/info?x=1").await.status, 400);
    assert_eq!(harness.get("/v1/info?").await.status, 200);
}

/// Hosts look for these keys and take what they find for a reward.
#[tokio::test]
async fn no_error_has_a_key_that_a_host_takes_for_a_result() {
    let harness = Harness::with(Default::default()).await;
    let bodies = [json!({}), json!({"query": ["x"], "messages": ["x"], "response": "x", "input": "x", "output": "x"})];
    for route in Route::ALL.into_iter().filter(|route| route.verb() == "POST") {
        for body in &bodies {
            let reply = harness.post(&format!("{}?x=1", route.path()), body).await;
            assert_eq!(reply.status, 400, "{}", route.path());
            let error = reply.json();
            let keys: Vec<&String> = error.as_object().unwrap().keys().collect();
            assert_eq!(keys, ["error"]);
            let keys: Vec<&String> = error["error"].as_object().unwrap().keys().collect();
            assert_eq!(keys, ["code", "message", "fields", "reason"]);
            assert!(!matches!(error["error"]["message"], Value::Null));
        }
    }
}
