//! What callers of the judge see when the model thread fails, and what the verdict cache makes of it. A process of its
//! own: fail points belong to the process.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use fail::FailScenario;
use prism_judge::service::{Call, ErrorCode, Health, Judge, JudgeError, Lane};
use support::judge::{LIKELIHOOD, bits, config, open, party};

fn error(judge: &Judge, response: &str, call: &Call) -> JudgeError {
    let scored = judge.score_blocking(&party(&[response]), &LIKELIHOOD, call);
    scored.and_then(|mut results| results.pop().unwrap()).unwrap_err()
}

#[test]
fn a_failed_model_is_an_error_that_is_not_kept_and_what_was_kept_is_still_answered() {
    let Some(path) = support::backbone() else { return };
    let judge = open(config(path));
    let call = Call { lane: Lane::Guard, ..Call::default() };
    let known = party(&["Known before."]);
    let before = judge.score_blocking(&known, &LIKELIHOOD, &call).unwrap().remove(0).unwrap();

    let scenario = FailScenario::setup();
    // A forward pass that fails concerns its own work alone.
    fail::cfg("engine::forward", "panic").unwrap();
    assert_eq!(error(&judge, "Never judged.", &call).code, ErrorCode::Internal);
    fail::remove("engine::forward");
    let recovered = judge.score_blocking(&party(&["Never judged."]), &LIKELIHOOD, &call).unwrap().remove(0).unwrap();
    assert!(!recovered.cached, "the failure was kept");

    // The thread itself fails, restarts once, fails again and is gone.
    fail::cfg("engine::step", "panic").unwrap();
    let health = judge.health();
    while *health.borrow() != Health::Dead {
        // Unavailable: it was just restarting.
        let code = error(&judge, "Not now.", &call).code;
        assert!([ErrorCode::Internal, ErrorCode::Unavailable].contains(&code), "{code:?}");
    }
    scenario.teardown();
    assert_eq!(error(&judge, "Not now.", &call).code, ErrorCode::Unavailable);
    let hit = judge.score_blocking(&known, &LIKELIHOOD, &call).unwrap().remove(0).unwrap();
    assert!(hit.cached);
    assert_eq!(bits(&hit), bits(&before));
}
