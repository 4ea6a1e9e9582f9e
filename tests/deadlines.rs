//! Ten thousand calls with small budgets, twice as many as the server can judge: each ends with a verdict, or with the
//! code of its deadline or of a full lane. How late the answers come is a benchmark (`make load-deadlines`).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use serde_json::Value;
use support::load::load;
use support::server::{Server, tiny_model};

#[tokio::test(flavor = "multi_thread")]
async fn a_call_with_a_budget_ends_with_its_verdict_or_the_right_code() {
    const CALL: &str = "context=20,reply=10,lane=guard,evidence=label_slot";
    let folder = tempfile::tempdir().unwrap();
    let Some(model) = tiny_model(folder.path()) else { return };
    let server = Server::start(&["--model", model.to_str().unwrap(), "--threads", "1"]).ready().await;
    let address = server.address.clone();
    let (peak, budgets) = tokio::task::spawn_blocking(move || {
        let closed = format!("{CALL},rate=max,connections=4,in_flight=4");
        let peak = load(&address, &["--seconds", "4", &closed])["calls_per_second"].as_f64().unwrap();
        let stream = format!("{CALL},rate={},calls=10000,connections=16,deadline=5-200", 2.0 * peak);
        let seconds = (10_000.0 / peak + 10.0).to_string();
        (peak, load(&address, &["--seed", "2", "--seconds", &seconds, &stream]))
    })
    .await
    .unwrap();
    assert_eq!(budgets["calls"], 10_000, "at {peak} calls a second");
    let codes = budgets["codes"].as_object().unwrap();
    let count = |code: &str| codes.get(code).and_then(Value::as_u64).unwrap_or(0);
    assert_eq!(count("Ok") + count("DeadlineExceeded") + count("ResourceExhausted"), 10_000, "{codes:?}");
    // Both sides of the claim were tried.
    assert!(count("Ok") > 0 && count("DeadlineExceeded") > 0, "{codes:?}");
}
