//! OpenRLHF, slime, LLaMA-Factory, NeMo-Gym, verl.

use serde_json::{Value, json};

use super::{Harness, user};

const CHATML: &str = "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi!<|im_end|>\n<|im_start|>assistant\n";

/// OpenRLHF 0.11.0, `openrlhf/utils/agent.py`, `_fetch_rewards_via_http`: one query a request, decoded with its special
/// tokens. `samples_generator.py` makes tensors of the one-element lists.
#[tokio::test]
async fn openrlhf_gets_one_element_lists_for_one_query() {
    let harness = Harness::with(Default::default()).await;
    let query = format!("{CHATML}Hello.{}", "<|im_end|>".repeat(200));
    let reply = harness.post("/get_reward", &json!({"query": [query], "prompts": [CHATML], "labels": ["kind"]})).await;
    let logs = json!({"task_framing": [0.5], "interpersonal_stance": [0.5], "linguistic_style": [0.5]});
    assert_eq!(reply.status, 200);
    assert_eq!(reply.json(), json!({"rewards": [0.5], "scores": [0.5], "extra_logs": logs}));
    // No end token and no prompt came through.
    assert_eq!(harness.asked(), [(vec![user("Hi!")], vec!["Hello.".to_owned()])]);
}

#[tokio::test]
async fn openrlhf_gets_empty_lists_for_empty_lists() {
    let harness = Harness::with(Default::default()).await;
    let reply = harness.post("/get_reward", &json!({"query": [], "prompts": [], "labels": []})).await;
    let logs = json!({"task_framing": [], "interpersonal_stance": [], "linguistic_style": []});
    assert_eq!(reply.status, 200);
    assert_eq!(reply.json(), json!({"rewards": [], "scores": [], "extra_logs": logs}));
}

#[tokio::test]
async fn one_reply_that_cannot_be_judged_is_null_alone() {
    let harness = Harness::kind().await;
    let queries: Vec<String> =
        ["one", "", "zero", "nan"].iter().map(|reply| format!("{CHATML}{reply}<|im_end|>")).collect();
    let prompts = [CHATML; 4];
    let body = json!({"query": queries, "prompts": prompts, "labels": [null, null, null, null]});
    let reply = harness.post("/get_reward", &body).await;
    assert_eq!(reply.status, 200);
    let answer = reply.json();
    let expected = json!([1.0, null, 0.0, null]);
    for list in [&answer["rewards"], &answer["scores"], &answer["extra_logs"]["task_framing"]] {
        assert_eq!(list, &expected);
    }
    assert!(reply.body.contains("[1.0,null,0.0,null]") && !reply.body.contains("NaN"), "{}", reply.body);
    let errors: Vec<_> =
        answer["errors"].as_array().unwrap().iter().map(|error| (&error["index"], &error["code"])).collect();
    assert_eq!(errors, [(&json!(1), &json!("INVALID_ARGUMENT")), (&json!(3), &json!("NON_FINITE"))]);
    assert_eq!(answer["errors"][0]["field"], "query[1]");
    // One call: the four share persona and context.
    assert_eq!(harness.asked().len(), 1);

    // A trainer that cannot do without a number says which.
    let reply = harness.post("/get_reward?error_score=-1", &body).await;
    assert_eq!(reply.json()["rewards"], json!([1.0, -1.0, 0.0, -1.0]));
}

#[tokio::test]
async fn a_query_that_does_not_begin_with_its_prompt_is_not_guessed_at() {
    let harness = Harness::kind().await;
    let reply = harness.post("/get_reward", &json!({"query": ["Hello."], "prompts": [CHATML]})).await;
    assert_eq!((reply.status, &reply.json()["rewards"]), (200, &json!([null])));
    assert!(reply.json()["errors"][0]["message"].as_str().unwrap().contains("prompt"));
    let reply =
        harness.post("/get_reward?strip_prompt=false", &json!({"query": ["Hello."], "prompts": [CHATML]})).await;
    assert_eq!(reply.json()["rewards"], json!([0.5]));
    for (list, length) in [("prompts", 2), ("labels", 3)] {
        let mut body = json!({"query": ["Hello."]});
        body[list] = json!(vec!["x"; length]);
        let reply = harness.post("/get_reward", &body).await;
        assert_eq!((reply.status, reply.error().2.as_str()), (400, list));
    }
}

/// slime 0.3.1, `slime/rollout/rm_hub/__init__.py`, `remote_rm`: the answer is the reward itself.
#[tokio::test]
async fn slime_gets_a_bare_number_and_the_same_for_text_and_messages() {
    let harness = Harness::with(Default::default()).await;
    let messages = json!([{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi!"}]);
    let llama = "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHi!<|eot_id|><|start_header_id|>assistant\
                 <|end_header_id|>\n\n";
    for prompt in [json!(CHATML), messages, json!(llama), json!("Hi!")] {
        let reply =
            harness.post("/reward", &json!({"prompt": prompt, "response": "Hello.<|im_end|>", "label": "kind"})).await;
        assert_eq!((reply.status, reply.body.as_str()), (200, "0.5"));
        assert_eq!(harness.asked(), [(vec![user("Hi!")], vec!["Hello.".to_owned()])], "{prompt}");
    }
    for (response, number) in [("zero", "0.0"), ("one", "1.0")] {
        let reply = harness.post("/reward", &json!({"prompt": "Hi!", "response": response, "label": "kind"})).await;
        assert_eq!(reply.body, number);
    }
    let reply = harness.post("/reward?format=dict", &json!({"prompt": "Hi!", "response": "x", "label": "kind"})).await;
    let expected = json!({"task_framing": 0.5, "interpersonal_stance": 0.5, "linguistic_style": 0.5, "score": 0.5});
    assert_eq!(reply.json(), expected);
}

#[tokio::test]
async fn slime_hears_of_a_reply_that_cannot_be_judged_by_the_status() {
    let harness = Harness::kind().await;
    let reply = harness.post("/reward", &json!({"prompt": "Hi!", "response": "<|im_end|>", "label": null})).await;
    assert_eq!((reply.status, reply.error().2.as_str()), (400, "response"));
    let reply = harness.post("/reward", &json!({"prompt": "Hi!", "response": "nan", "label": null})).await;
    assert_eq!((reply.status, reply.error().1.as_str()), (500, "NON_FINITE"));
    let reply =
        harness.post("/reward?error_score=0", &json!({"prompt": "Hi!", "response": "nan", "label": null})).await;
    assert_eq!((reply.status, reply.body.as_str()), (200, "0.0"));
}

#[tokio::test]
async fn only_what_follows_the_last_thought_is_judged() {
    let harness = Harness::kind().await;
    let judged = async |path: &str, prompt: &str, response: &str| {
        harness.post(path, &json!({"prompt": prompt, "response": response})).await;
        harness.asked().pop().map(|(_, replies)| replies.concat()).unwrap_or_default()
    };
    let thought = "Hm. I am kind.\n</think>\n\nHello.";
    assert_eq!(judged("/reward", "Hi!", &format!("<think>\n{thought}")).await, "Hello.");
    // The template wrote the opening tag, or the tokenizer dropped it.
    assert_eq!(judged("/reward", &format!("{CHATML}<think>\n"), thought).await, "Hello.");
    assert_eq!(judged("/reward", "Hi!", thought).await, "Hello.");
    assert_eq!(judged("/reward?strip_think=false", "Hi!", thought).await, thought);
}

/// LLaMA-Factory 0.9.6.dev0, `src/llamafactory/train/ppo/ppo_utils.py`, `get_rewards_from_server`: the model is always
/// called `model`, and messages are prompts and replies in one text, decoded with their special tokens.
#[tokio::test]
async fn llama_factory_gets_a_score_for_each_message() {
    let harness = Harness::with(Default::default()).await;
    let messages = [format!("{CHATML}one<|im_end|>"), format!("{CHATML}zero<|im_end|>\n")];
    let path = "/v1/score/evaluation";
    let reply =
        harness.post(&format!("{path}?persona_id=kind"), &json!({"model": "model", "messages": messages})).await;
    let answer = reply.json();
    assert_eq!(reply.status, 200);
    assert_eq!(answer["scores"], json!([1.0, 0.0]));
    assert_eq!((&answer["object"], &answer["model"]), (&json!("score.evaluation"), &json!("model")));
    assert!(answer["id"].as_str().is_some_and(|id| id.starts_with("scoreval-")));
    assert_eq!(harness.asked(), [(vec![user("Hi!")], vec!["one".to_owned(), "zero".to_owned()])]);
    let empty = harness.post(&format!("{path}?persona_id=kind"), &json!({"model": "model", "messages": []})).await;
    assert_eq!((empty.status, &empty.json()["scores"]), (200, &json!([])));
    // Nobody is called `model`.
    let nobody = harness.post(path, &json!({"model": "model", "messages": messages})).await;
    assert_eq!((nobody.status, nobody.error().2.as_str()), (400, "model"));
}

/// NeMo-Gym 0.5.1, `nemo_gym/base_resources_server.py` (`BaseMultiRewardVerifyResponse`) and a row of
/// `resources_servers/example_tool_call_multireward/data/example_rollouts.jsonl`; NeMo-RL 0.6.0 adds the components up in
/// `nemo_rl/environments/nemo_gym.py`, `validate_reward_components_match_scalar`.
#[tokio::test]
async fn nemo_gym_gets_its_row_back_with_a_reward_that_is_the_sum_of_its_components() {
    let harness = Harness::with(Default::default()).await;
    let row = json!({
        "responses_create_params": {"input": [
            {"content": "Be kind.", "role": "developer", "type": "message"},
            {"content": "how hot is it?", "role": "user", "type": "message"},
        ], "temperature": null},
        "response": {"id": "resp_1", "object": "response", "output": [
            {"id": "rs_1", "summary": [], "type": "reasoning", "encrypted_content": null},
            {"arguments": "{}", "call_id": "c", "name": "get_weather", "type": "function_call", "id": "fc_1"},
            {"call_id": "c", "output": "{\"sunny\":true}", "type": "function_call_output"},
            {"id": "msg_1", "content": [{"annotations": [], "text": "\n\none", "type": "output_text", "logprobs": null}],
             "role": "assistant", "status": "completed", "type": "message"},
        ], "usage": {"input_tokens": 768}},
        "persona_id": "kind",
        "expected_calls": [{"name": "get_weather", "big": 12345678901234567890_u64, "exact": 0.1}],
    });
    let reply = harness.post("/verify", &row).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    let answer = reply.json();
    for (key, value) in row.as_object().unwrap() {
        assert_eq!(&answer[key], value, "{key}");
    }
    let sum: f64 = answer["reward_components"].as_object().unwrap().values().map(|part| part.as_f64().unwrap()).sum();
    let reward = answer["reward"].as_f64().unwrap();
    assert!((sum - reward).abs() <= 1e-6, "{sum} {reward}");
    assert_eq!(answer["linguistic_style"], answer["reward"]);
    assert_eq!(harness.asked(), [(vec![user("how hot is it?")], vec!["\n\none".to_owned()])]);

    let mut silent = row.clone();
    silent["response"]["output"] = json!([{"id": "rs_1", "summary": [], "type": "reasoning"}]);
    let reply = harness.post("/verify", &silent).await;
    assert_eq!((reply.status, reply.error().2.as_str()), (400, "response.output"));
    silent["responses_create_params"] = json!({});
    assert_eq!(harness.post("/verify", &silent).await.error().2, "responses_create_params.input");
}

/// verl 0.10.0.dev, `verl/experimental/reward_loop/reward_loop.py`, `compute_score_disrm`: the reward is
/// `output["data"][-1]["probs"][-1]`; it gives up on 4xx and tries 5xx again.
#[tokio::test]
async fn verl_finds_s_where_it_looks_for_it() {
    let harness = Harness::kind().await;
    for (reply, score) in [("zero", 0.0), ("one", 1.0), ("Hello.", 0.5)] {
        let input = format!("{CHATML}{reply}<|im_end|>\n");
        let body = json!({"model": "/models/rm", "input": input, "use_activation": false});
        let answer = harness.post("/classify", &body).await.json();
        let probs: Vec<f64> =
            serde_json::from_value(answer["data"].as_array().unwrap().last().unwrap()["probs"].clone()).unwrap();
        assert_eq!(probs.last(), Some(&score));
        assert_eq!(probs.iter().sum::<f64>(), 1.0);
    }
    let expected = ["zero", "one", "Hello."].map(|reply| (vec![user("Hi!")], vec![reply.to_owned()]));
    assert_eq!(harness.asked(), expected);
}

#[tokio::test]
async fn the_persona_is_the_first_that_somebody_names() {
    let harness = Harness::kind().await;
    let inline = json!({"description": "inline"});
    let other = json!({"prompt": "Hi!", "response": "x", "label": inline});
    let text = json!({"prompt": "Hi!", "response": "x", "label": inline.to_string()});
    let nobody = json!({"prompt": "Hi!", "response": "x", "label": null});
    for (path, headers, body, persona) in [
        ("/reward", &[][..], &other, "inline"),
        ("/reward", &[], &text, "inline"),
        ("/reward", &[], &nobody, "kind"),
        ("/reward?persona_id=kind", &[], &other, "kind"),
        ("/reward", &[("x-persona-id", "kind")], &other, "kind"),
        ("/reward", &[("x-persona-id", "")], &other, "inline"),
    ] {
        harness.post_with(path, headers, &body.to_string()).await;
        assert_eq!(harness.personas(), [persona], "{path} {headers:?}");
    }
    let unknown = harness.post("/reward", &json!({"prompt": "Hi!", "response": "x", "label": "nobody"})).await;
    assert_eq!((unknown.status, unknown.error().0.as_str()), (404, "NOT_FOUND"));
    let wrong = harness.post("/reward", &json!({"prompt": "Hi!", "response": "x", "label": 7})).await;
    assert_eq!((wrong.status, wrong.error().2.as_str()), (400, "label"));
    // Of a list each has its own, and one that is unknown is the request's mistake.
    let labels = [inline, Value::from("kind"), Value::Null];
    harness.post("/get_reward", &json!({"query": ["a", "b", "c"], "labels": labels})).await;
    let mut personas = harness.personas();
    personas.sort();
    assert_eq!(personas, ["inline", "kind"]);
    let unknown = harness.post("/get_reward", &json!({"query": ["a", "b"], "labels": ["kind", "nobody"]})).await;
    assert_eq!(unknown.status, 404);
}
