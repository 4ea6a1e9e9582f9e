//! The verdict cache's second tier, with a real Redis: what it keeps, what it must not believe, and that nothing it does
//! fails a call or changes a bit.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use prism_judge::cache::redis::{RedisSecret, RedisServer, RedisState};
use prism_judge::prism::{EvidenceKind, Group, LabelOrder, Verdict};
use prism_judge::service::{CacheControl, CacheSettings, Call, Judge, JudgeConfig, OptionOverrides, RedisSettings};
use support::judge::{LABEL_SLOT, LIKELIHOOD, bits, config, open, overrides, party, uncached};
use support::redis::{Redis, reaches, tier};
use support::tiny::{Random, Tiny};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A model that knows nothing, and talks as the backbone does; one file for all tests. None where the backbone is missing.
static MODEL: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("redis_tier.gguf");
    Tiny::speaking_as(&support::backbone()?, 12).write(&path);
    Some(path)
});

fn model() -> Option<PathBuf> {
    MODEL.clone()
}

/// A judge that remembers nothing itself: every look-up goes to Redis.
async fn forgetful(model: PathBuf, redis: RedisSettings) -> Judge {
    let cache = CacheSettings { bytes: 0, ttl: None };
    let judge = open(JudgeConfig { redis: Some(redis), cache, ..config(model) });
    reaches(tier(&judge), RedisState::Closed).await;
    judge
}

async fn score(judge: &Judge, group: &Group, overrides: &OptionOverrides, call: &Call) -> Vec<Verdict> {
    judge.score(group.clone(), overrides, call).await.unwrap().into_iter().map(Result::unwrap).collect()
}

/// The verdict of the only candidate, by the usual way.
async fn one(judge: &Judge, group: &Group) -> Verdict {
    score(judge, group, &LIKELIHOOD, &Call::default()).await.remove(0)
}

fn all_bits(verdicts: &[Verdict]) -> Vec<Vec<u64>> {
    verdicts.iter().map(bits).collect()
}

#[tokio::test]
async fn a_judge_that_starts_anew_has_the_verdicts_of_the_one_before_it_bit_by_bit() {
    let Some(backbone) = support::backbone() else { return };
    let redis = Redis::start(&[]);
    let judge = || open(JudgeConfig { redis: Some(redis.settings()), ..config(backbone.clone()) });
    let group = party(&["Yes! Who else is in?", "No, I have a book.", "Perhaps."]);
    let all = overrides(EvidenceKind::LabelSlot, Some(LabelOrder::All));
    let kinds = [LIKELIHOOD, LABEL_SLOT, all];

    let before = judge();
    reaches(tier(&before), RedisState::Closed).await;
    let mut computed = Vec::new();
    for kind in &kinds {
        let verdicts = score(&before, &group, kind, &Call::default()).await;
        assert!(verdicts.iter().all(|verdict| !verdict.cached));
        assert_eq!(all_bits(&verdicts), all_bits(&score(&before, &group, kind, &uncached()).await));
        computed.push(verdicts);
    }
    // Writes what waits.
    drop(before);

    let after = judge();
    reaches(tier(&after), RedisState::Closed).await;
    for (kind, computed) in kinds.iter().zip(computed) {
        let verdicts = score(&after, &group, kind, &Call::default()).await;
        assert_eq!(all_bits(&verdicts), all_bits(&computed));
        for (verdict, mut computed) in verdicts.into_iter().zip(computed) {
            assert!(verdict.cached);
            assert_eq!(verdict.tokens.computed, 0);
            computed.cached = true;
            computed.tokens.computed = 0;
            assert_eq!(verdict, computed);
        }
    }
}

#[tokio::test]
async fn two_judges_share_what_either_computes_and_a_group_looks_only_its_rest_up() {
    let Some(model) = model() else { return };
    let redis = Redis::start(&[]);
    let first = forgetful(model.clone(), redis.settings()).await;
    let second = forgetful(model, redis.settings()).await;
    let cached = |verdicts: &[Verdict]| verdicts.iter().map(|verdict| verdict.cached).collect::<Vec<_>>();
    for (judge, responses, expected) in [
        (&first, &["a", "b"][..], &[false, false][..]),
        (&second, &["b", "c", "a"][..], &[true, false, true][..]),
        (&first, &["c", "d", "c"][..], &[true, false, true][..]),
    ] {
        let group = party(responses);
        let verdicts = score(judge, &group, &LIKELIHOOD, &Call::default()).await;
        assert_eq!(cached(&verdicts), expected, "{responses:?}");
        assert_eq!(all_bits(&verdicts), all_bits(&score(judge, &group, &LIKELIHOOD, &uncached()).await));
        tier(judge).flush().await;
    }
    assert_eq!(redis.keys().len(), 4);
    for key in redis.keys() {
        let digest = key.strip_prefix("prism-judge:v1:").unwrap();
        assert!(digest.len() == 64 && digest.chars().all(|c| c.is_ascii_hexdigit()), "{key}");
        let left: u64 = redis.ask("TTL", &[key.as_bytes()]);
        assert!((1..=RedisSettings::TTL.as_secs()).contains(&left), "{left}");
    }
}

#[tokio::test]
async fn a_group_of_many_round_trips_comes_back_whole() {
    let Some(model) = model() else { return };
    let redis = Redis::start(&[]);
    let judge = forgetful(model, redis.settings()).await;
    let responses: Vec<String> = (0..600).map(|number| format!("{number}")).collect();
    let group = party(&responses.iter().map(String::as_str).collect::<Vec<_>>());
    let computed = score(&judge, &group, &LABEL_SLOT, &Call::default()).await;
    assert!(computed.iter().all(|verdict| !verdict.cached));
    tier(&judge).flush().await;
    assert_eq!(redis.keys().len(), 600);
    let recalled = score(&judge, &group, &LABEL_SLOT, &Call::default()).await;
    assert!(recalled.iter().all(|verdict| verdict.cached));
    assert_eq!(all_bits(&recalled), all_bits(&computed));
}

#[tokio::test]
async fn refresh_writes_and_does_not_read_and_off_does_neither() {
    let Some(model) = model() else { return };
    let redis = Redis::start(&[]);
    let judge = forgetful(model, redis.settings()).await;
    let group = party(&["Refreshed."]);
    let with = async |cache| {
        let verdict = score(&judge, &group, &LIKELIHOOD, &Call { cache, ..Call::default() }).await.remove(0);
        tier(&judge).flush().await;
        (verdict.cached, redis.keys().len())
    };
    assert_eq!(with(CacheControl::Off).await, (false, 0));
    assert_eq!(with(CacheControl::Refresh).await, (false, 1));
    assert_eq!(with(CacheControl::Use).await, (true, 1));
    assert_eq!(with(CacheControl::Off).await, (false, 1));
    let key = redis.keys().remove(0);
    let value: Vec<u8> = redis.ask("GET", &[key.as_bytes()]);
    let () = redis.ask("SET", &[key.as_bytes(), b"poison"]);
    assert_eq!(with(CacheControl::Refresh).await, (false, 1));
    assert_eq!(redis.ask::<Vec<u8>>("GET", &[key.as_bytes()]), value, "the same key, and the same value again");
    assert_eq!(with(CacheControl::Use).await, (true, 1));
}

#[tokio::test]
async fn other_secrets_other_prefixes_and_other_tenants_share_nothing() {
    let Some(model) = model() else { return };
    let redis = Redis::start(&[]);
    let ours = redis.settings();
    let secret = RedisSecret::new(b"another secret of the tests").unwrap();
    let prefix = "other".parse().unwrap();
    let group = party(&["Between us."]);
    for settings in [ours.clone(), RedisSettings { prefix, ..ours.clone() }] {
        let judge = forgetful(model.clone(), settings).await;
        assert!(!one(&judge, &group).await.cached);
        tier(&judge).flush().await;
        assert!(one(&judge, &group).await.cached);
        for tenant in ["a", "b"] {
            let call = Call { tenant: tenant.to_owned(), ..Call::default() };
            assert!(!score(&judge, &group, &LIKELIHOOD, &call).await[0].cached, "{tenant}");
        }
    }
    assert_eq!(redis.keys().len(), 6);
    // The same keys: the value of the other is overwritten, not believed.
    let stranger = forgetful(model, RedisSettings { secret, ..ours }).await;
    assert!(!one(&stranger, &group).await.cached);
    tier(&stranger).flush().await;
    assert!(one(&stranger, &group).await.cached);
    assert_eq!(redis.keys().len(), 6);
}

/// Whatever is at the key: the call succeeds, computes, has the right bits, and the right value is there again.
#[tokio::test]
async fn values_that_are_not_ours_are_neither_believed_nor_an_error() {
    let Some(model) = model() else { return };
    let redis = Redis::start(&[]);
    let judge = forgetful(model, redis.settings()).await;
    let group = party(&["Believe me."]);
    let expected = bits(&score(&judge, &group, &LIKELIHOOD, &uncached()).await[0]);
    let check = async |what: &str, cached: bool| {
        let verdict = one(&judge, &group).await;
        assert_eq!(bits(&verdict), expected, "{what}");
        assert_eq!(verdict.cached, cached, "{what}");
        tier(&judge).flush().await;
    };
    check("nothing is there", false).await;
    check("it is there", true).await;
    let key = redis.keys().remove(0);
    let value: Vec<u8> = redis.ask("GET", &[key.as_bytes()]);

    let mut values: Vec<(String, Vec<u8>)> = Vec::new();
    for at in 0..value.len() {
        let mut flipped = value.clone();
        flipped[at] ^= 1 << (at % 8);
        values.push((format!("byte {at} flipped"), flipped));
        values.push((format!("{at} bytes"), value[..at].to_vec()));
    }
    values.push(("a byte more".to_owned(), [&value[..], b"\0"].concat()));
    values.push(("twice".to_owned(), [&value[..], &value].concat()));
    values.push(("32 MiB".to_owned(), vec![1; 32 << 20]));
    values.push(("text".to_owned(), b"{\"s_prism\":1.0}".to_vec()));
    let mut random = Random(9);
    values.extend((0..64).map(|number| {
        let bytes = (0..random.below(400)).map(|_| random.bits() as u8).collect();
        (format!("made up {number}"), bytes)
    }));
    for (what, poison) in &values {
        let () = redis.ask("SET", &[key.as_bytes(), poison]);
        check(what, false).await;
        assert_eq!(redis.ask::<Vec<u8>>("GET", &[key.as_bytes()]), value, "{what}");
    }
    for (command, arguments) in [
        ("RPUSH", &["x", "y"][..]),
        ("HSET", &["x", "y"][..]),
        ("SADD", &["x"][..]),
        ("ZADD", &["1", "x"][..]),
        ("XADD", &["*", "x", "y"][..]),
    ] {
        let () = redis.ask("DEL", &[key.as_bytes()]);
        let arguments: Vec<&[u8]> = arguments.iter().map(|text| text.as_bytes()).collect();
        let _: ::redis::Value = redis.ask(command, &[&[key.as_bytes()], &arguments[..]].concat());
        check(command, false).await;
        check(command, true).await;
    }
}

#[tokio::test]
async fn values_that_change_places_are_not_believed() {
    let Some(model) = model() else { return };
    let redis = Redis::start(&[]);
    let judge = forgetful(model, redis.settings()).await;
    // Two responses, and the same response for another tenant.
    let asked = [("Mine.", ""), ("Yours.", ""), ("Mine.", "other")];
    let call = |tenant: &str| Call { tenant: tenant.to_owned(), ..Call::default() };
    let mut places = Vec::new();
    for (response, tenant) in asked {
        let known = redis.keys();
        let verdict = score(&judge, &party(&[response]), &LIKELIHOOD, &call(tenant)).await.remove(0);
        tier(&judge).flush().await;
        let key = redis.keys().into_iter().find(|key| !known.contains(key)).unwrap();
        let value: Vec<u8> = redis.ask("GET", &[key.as_bytes()]);
        places.push((response, tenant, bits(&verdict), key, value));
    }
    for (response, tenant, expected, key, value) in &places {
        for (_, _, _, other, moved) in &places {
            let () = redis.ask("SET", &[key.as_bytes(), moved]);
            let verdict = score(&judge, &party(&[*response]), &LIKELIHOOD, &call(tenant)).await.remove(0);
            assert_eq!(&bits(&verdict), expected);
            assert_eq!(verdict.cached, key == other, "the value of {other} at {key}");
            tier(&judge).flush().await;
            assert_eq!(&redis.ask::<Vec<u8>>("GET", &[key.as_bytes()]), value);
        }
    }
}

/// Callers that go on whatever happens to Redis.
struct Traffic {
    stop: Arc<AtomicBool>,
    answered: watch::Receiver<usize>,
    callers: JoinSet<()>,
}

impl Traffic {
    async fn start(judge: &Arc<Judge>) -> Self {
        let replies = ["Yes!", "No.", "Who else is in?", "I would rather read.", "Perhaps.", "Sure"];
        let mut cases = Vec::new();
        for first in 0..replies.len() {
            let group = party(&[replies[first], replies[(first + 1) % 6]]);
            let expected = all_bits(&score(judge, &group, &LIKELIHOOD, &uncached()).await);
            cases.push((group, expected));
        }
        let cases = Arc::new(cases);
        let stop = Arc::<AtomicBool>::default();
        let (count, answered) = watch::channel(0);
        let count = Arc::new(count);
        let mut callers = JoinSet::new();
        for caller in 0..4 {
            let (judge, cases, stop, count) =
                (Arc::clone(judge), Arc::clone(&cases), Arc::clone(&stop), Arc::clone(&count));
            callers.spawn(async move {
                let mut random = Random(caller);
                while !stop.load(Ordering::Relaxed) {
                    let (group, expected) = &cases[random.below(cases.len())];
                    let cache = [CacheControl::Use, CacheControl::Use, CacheControl::Refresh][random.below(3)];
                    let verdicts = score(&judge, group, &LIKELIHOOD, &Call { cache, ..Call::default() }).await;
                    assert_eq!(&all_bits(&verdicts), expected);
                    count.send_modify(|answered| *answered += 1);
                }
            });
        }
        Self { stop, answered, callers }
    }

    /// Waits for so many more answers.
    async fn goes_on(&mut self, calls: usize) {
        let until = *self.answered.borrow() + calls;
        let answered = self.answered.wait_for(|answered| *answered >= until);
        tokio::time::timeout(Duration::from_secs(60), answered).await.expect("calls are answered").unwrap();
    }

    async fn stop(mut self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        while let Some(caller) = self.callers.join_next().await {
            caller.unwrap();
        }
        *self.answered.borrow()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_fails_while_redis_is_stopped_killed_and_started_anew() {
    const ROUNDS: usize = 3;
    let Some(model) = model() else { return };
    let mut redis = Redis::start(&[]);
    let settings = RedisSettings { timeout: Duration::from_millis(20), ..redis.settings() };
    let judge = Arc::new(forgetful(model, settings).await);
    let mut traffic = Traffic::start(&judge).await;
    let tier = tier(&judge);
    for _ in 0..ROUNDS {
        traffic.goes_on(10).await;
        redis.pause();
        reaches(tier, RedisState::Open).await;
        traffic.goes_on(10).await;
        redis.resume();
        reaches(tier, RedisState::Closed).await;
        traffic.goes_on(10).await;
        redis.kill();
        reaches(tier, RedisState::Open).await;
        traffic.goes_on(10).await;
        redis.restart();
        reaches(tier, RedisState::Closed).await;
        traffic.goes_on(10).await;
        // Killed while it is stopped, so that its connections end without an answer.
        redis.pause();
        traffic.goes_on(10).await;
        redis.kill();
        traffic.goes_on(10).await;
        redis.restart();
        reaches(tier, RedisState::Closed).await;
    }
    let answered = traffic.stop().await;
    println!("{answered} calls, none failed");
    assert!(answered >= ROUNDS * 70);
    // Still of use: the last of many connections.
    let group = party(&["After all that."]);
    assert!(!one(&judge, &group).await.cached);
    tier.flush().await;
    assert!(one(&judge, &group).await.cached);
}

#[tokio::test]
async fn a_judge_opens_and_answers_without_redis_and_uses_it_when_it_comes() {
    let Some(model) = model() else { return };
    let mut redis = Redis::start(&[]);
    redis.kill();
    let cache = CacheSettings { bytes: 0, ttl: None };
    let judge = open(JudgeConfig { redis: Some(redis.settings()), cache, ..config(model) });
    let group = party(&["Without it."]);
    let verdict = one(&judge, &group).await;
    assert!(!verdict.cached && !one(&judge, &group).await.cached);
    // Nothing waits for it.
    tier(&judge).flush().await;
    redis.restart();
    reaches(tier(&judge), RedisState::Closed).await;
    assert!(redis.keys().is_empty());
    assert!(!one(&judge, &group).await.cached);
    tier(&judge).flush().await;
    let recalled = one(&judge, &group).await;
    assert!(recalled.cached);
    assert_eq!(bits(&recalled), bits(&verdict));
}

#[tokio::test]
async fn a_wrong_password_fails_no_call_and_the_right_one_is_taken_when_it_comes() {
    let Some(model) = model() else { return };
    let redis = Redis::with_password("right");
    let cache = CacheSettings { bytes: 0, ttl: None };
    let settings = |password: Option<&str>| {
        let server = RedisServer::parse(&redis.url_with(password)).unwrap();
        JudgeConfig { redis: Some(RedisSettings { server, ..redis.settings() }), cache, ..config(model.clone()) }
    };
    let (wrong, none) = (open(settings(Some("wrong"))), open(settings(None)));
    let group = party(&["Let me in."]);
    for judge in [&wrong, &none] {
        reaches(tier(judge), RedisState::Open).await;
        for _ in 0..3 {
            assert!(!one(judge, &group).await.cached);
        }
        tier(judge).flush().await;
    }
    assert!(redis.keys().is_empty());
    let () = redis.ask("CONFIG", &[b"SET", b"requirepass", b"wrong"]);
    reaches(tier(&wrong), RedisState::Closed).await;
    assert!(!one(&wrong, &group).await.cached);
    tier(&wrong).flush().await;
    assert!(one(&wrong, &group).await.cached);
    assert_ne!(*tier(&none).state().borrow(), RedisState::Closed);
}

/// A Redis that takes no more, or may not be written to by us: what is there is still read.
#[tokio::test]
async fn a_redis_that_refuses_writes_fails_no_call_and_is_still_read() {
    let Some(model) = model() else { return };
    let redis = Redis::start(&[]);
    let judge = forgetful(model, redis.settings()).await;
    let (known, unknown) = (party(&["Known."]), party(&["Unknown."]));
    one(&judge, &known).await;
    tier(&judge).flush().await;
    let () = redis.ask("CONFIG", &[b"SET", b"maxmemory", b"1"]);
    for _ in 0..5 {
        assert!(!one(&judge, &unknown).await.cached);
        tier(&judge).flush().await;
        assert!(one(&judge, &known).await.cached);
    }
    assert_eq!(*tier(&judge).state().borrow(), RedisState::Closed);
}

#[tokio::test]
async fn a_follower_takes_what_its_leader_finds_in_redis() {
    let Some(model) = model() else { return };
    let redis = Redis::start(&[]);
    let judge = Arc::new(forgetful(model, redis.settings()).await);
    let group = party(&["Follow me."]);
    let expected = bits(&one(&judge, &group).await);
    tier(&judge).flush().await;
    let mut calls = JoinSet::new();
    for _ in 0..200 {
        let (judge, group) = (Arc::clone(&judge), group.clone());
        calls.spawn(async move { one(&judge, &group).await });
    }
    while let Some(verdict) = calls.join_next().await {
        let verdict = verdict.unwrap();
        assert!(verdict.cached);
        assert_eq!(bits(&verdict), expected);
    }
}
