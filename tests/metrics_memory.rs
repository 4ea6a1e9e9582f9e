//! What metrics take that nobody reads. Alone in its process: it counts all that is allocated.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::pin::pin;
use std::task::{Context, Waker};

use prism_judge::telemetry;
use prism_judge::telemetry::catalogue::{REQUEST_SECONDS, STAGE_SECONDS};
use tikv_jemalloc_ctl::{epoch, stats};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const ROUNDS: usize = 20;
const SAMPLES: usize = 100_000;

fn allocated() -> usize {
    epoch::advance().unwrap();
    stats::allocated::read().unwrap()
}

fn record() {
    for sample in 0..SAMPLES / 2 {
        REQUEST_SECONDS.record(["Score", "train"], sample as f64 * 1e-6);
        STAGE_SECONDS.record(["model", "guard"], sample as f64 * 1e-6);
    }
}

/// One turn of the upkeep: its first is at once.
async fn one_turn() {
    let upkeep = pin!(telemetry::upkeep());
    assert!(upkeep.poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

#[tokio::test]
async fn samples_that_nobody_scrapes_do_not_pile_up() {
    telemetry::install().unwrap();
    for _ in 0..5 {
        record();
        one_turn().await;
    }
    let before = allocated();
    for _ in 0..ROUNDS {
        record();
        one_turn().await;
    }
    let kept = allocated().saturating_sub(before);
    let before = allocated();
    (0..ROUNDS).for_each(|_| record());
    let piled = allocated().saturating_sub(before);
    println!("{} samples: {kept} bytes with upkeep, {piled} without", ROUNDS * SAMPLES);
    // Eight bytes a sample: the test can tell the difference.
    assert!(piled > ROUNDS * SAMPLES * 8, "{piled} bytes without upkeep");
    assert!(kept < piled / 10, "{kept} bytes kept, {piled} without upkeep");
    let text = telemetry::render();
    let count = format!(
        "prism_judge_request_duration_seconds_count{{method=\"Score\",lane=\"train\"}} {}",
        (5 + 2 * ROUNDS) * SAMPLES / 2
    );
    assert!(text.lines().any(|line| line == count), "{count} is not there");
}
