//! What the second tier says of itself in metrics, counted to the last look-up. Alone in this file: metrics belong to the
//! process.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::time::Duration;

use prism_judge::cache::redis::RedisState;
use prism_judge::service::{CacheSettings, Call, Judge, JudgeConfig, RedisSettings};
use prism_judge::telemetry;
use support::judge::{LIKELIHOOD, config, open, party};
use support::redis::{Redis, reaches, tier};
use support::tiny::Tiny;

/// The value of a series in Prometheus' text format.
fn value(series: &str) -> u64 {
    let text = telemetry::render();
    let line = text.lines().find_map(|line| line.strip_prefix(series)).unwrap_or_else(|| panic!("{series} in {text}"));
    line.trim().parse().unwrap()
}

fn lookups(result: &str) -> u64 {
    value(&format!("prism_judge_verdict_cache_lookups_total{{tier=\"redis\",result=\"{result}\"}}"))
}

fn commands(command: &str, result: &str) -> u64 {
    value(&format!("prism_judge_redis_commands_total{{command=\"{command}\",result=\"{result}\"}}"))
}

fn breaker(state: RedisState) -> u64 {
    value(&format!("prism_judge_redis_breaker_state{{state=\"{}\"}}", state.name()))
}

/// One call of three candidates.
async fn call(judge: &Judge) {
    let verdicts = judge.score(party(&["a", "b", "c"]), &LIKELIHOOD, &Call::default()).await.unwrap();
    assert!(verdicts.iter().all(Result::is_ok));
    tier(judge).flush().await;
}

#[tokio::test]
async fn look_ups_commands_and_the_breaker_are_counted_and_a_redis_that_is_away_is_not_asked() {
    let Some(backbone) = support::backbone() else { return };
    telemetry::install().unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    Tiny::speaking_as(&backbone, 12).write(file.path());
    let mut redis = Redis::start(&[]);
    let judge = open(JudgeConfig {
        redis: Some(RedisSettings { timeout: Duration::from_millis(200), ..redis.settings() }),
        cache: CacheSettings { bytes: 0, ttl: None },
        ..config(file.path().to_owned())
    });
    reaches(tier(&judge), RedisState::Closed).await;
    assert_eq!((breaker(RedisState::Closed), breaker(RedisState::Open), breaker(RedisState::HalfOpen)), (1, 0, 0));

    call(&judge).await;
    assert_eq!((lookups("miss"), lookups("hit"), commands("set", "ok")), (3, 0, 3));
    call(&judge).await;
    assert_eq!((lookups("miss"), lookups("hit"), commands("set", "ok")), (3, 3, 3));
    let () = redis.ask("SET", &[redis.keys()[1].as_bytes(), b"poison"]);
    call(&judge).await;
    assert_eq!((lookups("hit"), lookups("invalid"), commands("set", "ok")), (5, 1, 4));

    redis.pause();
    let mut calls = 0;
    while *tier(&judge).state().borrow() == RedisState::Closed {
        call(&judge).await;
        calls += 1;
    }
    // Three failures in a row, some of which may be those of the beat.
    assert!((1..=4).contains(&calls), "{calls}");
    assert_eq!(lookups("error") + lookups("skipped"), 3 * calls);
    redis.kill();
    let (asked, skipped) = (commands("get", "timeout") + commands("get", "error"), lookups("skipped"));
    for _ in 0..10 {
        call(&judge).await;
    }
    assert_eq!(lookups("skipped"), skipped + 30);
    assert_eq!(commands("get", "timeout") + commands("get", "error"), asked);
    assert_eq!(breaker(RedisState::Closed), 0);
    assert_eq!(lookups("hit") + lookups("miss") + lookups("invalid"), 9);

    redis.restart();
    reaches(tier(&judge), RedisState::Closed).await;
    assert_eq!(breaker(RedisState::Closed), 1);
    call(&judge).await;
    call(&judge).await;
    assert_eq!((lookups("miss"), lookups("hit")), (6, 8));
}
