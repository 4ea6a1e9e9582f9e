//! Who gets what: hits, leaders, followers, and leaders that go away. Nothing here waits for a clock.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::*;
use crate::prism::{Conclusion, Dimension, DimensionVerdict, DimensionVerdicts, Label, Posterior};

type Store = VerdictCache<&'static str>;

const URGENT: Rank = Rank(0);
const USUAL: Rank = Rank(1);

fn judgement(s_prism: f64) -> Judgement {
    let posterior = Posterior { aligned: 0.5, indeterminate: 0.25, contradictory: 0.25 };
    let dimension = DimensionVerdict { posterior, evidence: 0.5, label_mass: Some(0.9), label_order: vec![Label::ALL] };
    Judgement {
        conclusion: Conclusion {
            s_prism,
            dimensions: DimensionVerdicts {
                task_framing: dimension.clone(),
                interpersonal_stance: dimension.clone(),
                linguistic_style: dimension,
            },
            weakest_dimension: Dimension::TaskFraming,
        },
        prompt_tokens: 7,
    }
}

fn store(bytes: u64) -> Store {
    VerdictCache::new(CacheSettings { bytes, ttl: None }, None)
}

fn key(number: u64) -> Digest {
    Digest::of_bytes(&number.to_le_bytes())
}

fn lead(store: &Store, rank: Rank) -> Lead<Outcome<&'static str>> {
    match store.seat(key(1), rank) {
        Seat::Lead(lead) => lead,
        Seat::Hit(_) => panic!("a hit instead of the lead"),
        Seat::Follow(_) => panic!("another one leads"),
    }
}

fn follow(store: &Store, rank: Rank) -> Follow<Outcome<&'static str>> {
    match store.seat(key(1), rank) {
        Seat::Follow(follow) => follow,
        Seat::Hit(_) => panic!("a hit instead of a leader"),
        Seat::Lead(_) => panic!("nobody leads"),
    }
}

fn score(outcome: Option<Outcome<&'static str>>) -> Result<f64, &'static str> {
    outcome.expect("the leader gave up").map(|judgement| judgement.conclusion.s_prism)
}

#[tokio::test]
async fn the_first_leads_the_others_follow_and_later_ones_hit() {
    let store = store(1 << 20);
    let first = lead(&store, USUAL);
    let followers = [follow(&store, USUAL), follow(&store, USUAL)];
    store.finish(first, Ok(judgement(0.25)));
    for follower in followers {
        assert_eq!(score(follower.outcome().await), Ok(0.25));
    }
    assert!(matches!(store.seat(key(1), USUAL), Seat::Hit(hit) if hit.conclusion.s_prism == 0.25));
    assert!(matches!(store.seat(key(2), USUAL), Seat::Lead(_)));
}

#[tokio::test]
async fn a_leader_that_goes_away_hands_over_to_a_follower() {
    let store = store(1 << 20);
    let first = lead(&store, USUAL);
    let (second, third) = (follow(&store, USUAL), follow(&store, USUAL));
    drop(first);
    assert!(second.outcome().await.is_none());
    let second = lead(&store, USUAL);
    assert!(third.outcome().await.is_none());
    let third = follow(&store, USUAL);
    store.finish(second, Ok(judgement(0.5)));
    assert_eq!(score(third.outcome().await), Ok(0.5));
}

/// The second leader's place must not be taken away when the first one, which has its outcome, is dropped late.
#[tokio::test]
async fn a_leader_that_is_done_does_not_end_the_next_one() {
    let store = store(0);
    store.finish(lead(&store, USUAL), Ok(judgement(0.5)));
    let next = lead(&store, USUAL);
    let follower = follow(&store, USUAL);
    store.finish(next, Ok(judgement(0.75)));
    assert_eq!(score(follower.outcome().await), Ok(0.75));
}

#[tokio::test]
async fn an_error_is_shared_with_those_who_wait_and_never_kept() {
    let store = store(1 << 20);
    let first = lead(&store, USUAL);
    let follower = follow(&store, USUAL);
    store.finish(first, Err("too long"));
    assert_eq!(score(follower.outcome().await), Err("too long"));
    drop(lead(&store, USUAL));
    assert_eq!(store.flights.waiting(), 0);
}

#[tokio::test]
async fn a_number_that_is_not_finite_is_neither_kept_nor_shared() {
    let store = store(1 << 20);
    for field in 0..4 {
        let mut broken = judgement(0.5);
        let dimension = &mut broken.conclusion.dimensions.linguistic_style;
        match field {
            0 => broken.conclusion.s_prism = f64::NAN,
            1 => dimension.posterior.contradictory = f64::INFINITY,
            2 => dimension.evidence = f64::NEG_INFINITY,
            _ => dimension.label_mass = Some(f64::NAN),
        }
        let first = lead(&store, USUAL);
        let follower = follow(&store, USUAL);
        store.finish(first, Ok(broken.clone()));
        assert!(follower.outcome().await.is_none());
        assert!(!store.keep(key(1), &Arc::new(broken)));
    }
    assert!(matches!(store.seat(key(1), USUAL), Seat::Lead(_)));
}

#[tokio::test]
async fn an_urgent_caller_does_not_wait_for_a_usual_one_but_a_usual_one_waits_for_it() {
    let store = store(1 << 20);
    let usual = lead(&store, USUAL);
    let urgent = lead(&store, URGENT);
    let follower = follow(&store, USUAL);
    store.finish(urgent, Ok(judgement(0.5)));
    assert_eq!(score(follower.outcome().await), Ok(0.5));
    drop(usual);
    assert_eq!(store.flights.waiting(), 0);
}

#[test]
fn a_fresh_judgement_replaces_the_one_that_is_kept() {
    let store = store(1 << 20);
    for s_prism in [0.25, 0.5] {
        assert!(store.keep(key(1), &Arc::new(judgement(s_prism))));
        assert!(matches!(store.seat(key(1), USUAL), Seat::Hit(hit) if hit.conclusion.s_prism == s_prism));
    }
}

#[test]
fn what_is_older_than_its_time_to_live_is_gone() {
    let kept = |ttl| {
        let store = Store::new(CacheSettings { bytes: 1 << 20, ttl: Some(ttl) }, None);
        assert!(store.keep(key(1), &Arc::new(judgement(0.5))));
        matches!(store.seat(key(1), USUAL), Seat::Hit(_))
    };
    assert!(!kept(Duration::from_nanos(1)));
    assert!(kept(Duration::from_secs(3600)));
}

#[test]
fn the_budget_of_bytes_holds_and_what_was_used_last_stays() {
    let budget = 64 * bytes(&judgement(0.5)) as u64;
    let store = store(budget);
    for number in 0..1_000 {
        assert!(store.keep(key(number), &Arc::new(judgement(0.5))));
        store.kept.run_pending_tasks();
        assert!(matches!(store.seat(key(0), USUAL), Seat::Hit(_)), "in use, after {number}");
        store.kept.run_pending_tasks();
        assert!(store.size().1 <= budget);
    }
    assert_eq!(store.size(), (64, budget));
}

/// What a thousand calls did.
#[derive(Default)]
struct Tally {
    led: AtomicUsize,
    computed: AtomicUsize,
    answered: AtomicUsize,
}

impl Tally {
    /// One call. The first leaders are cancelled.
    async fn call(&self, store: &Store, cancelled: usize) {
        loop {
            match store.seat(key(1), USUAL) {
                Seat::Hit(_) => break,
                Seat::Follow(follow) => {
                    if let Some(outcome) = follow.outcome().await {
                        outcome.unwrap();
                        break;
                    }
                }
                Seat::Lead(lead) => {
                    // Lets others come and follow.
                    tokio::task::yield_now().await;
                    if self.led.fetch_add(1, Ordering::Relaxed) < cancelled {
                        return;
                    }
                    self.computed.fetch_add(1, Ordering::Relaxed);
                    store.finish(lead, Ok(judgement(0.5)));
                    break;
                }
            }
        }
        self.answered.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn cancelled_leaders_never_leave_a_follower_alone_and_one_computation_is_enough() {
    const CALLS: usize = 1_000;
    const CANCELLED: usize = 20;
    let (store, tally) = (Arc::new(store(1 << 20)), Arc::new(Tally::default()));
    let start = Arc::new(Barrier::new(CALLS));
    let mut calls = JoinSet::new();
    for _ in 0..CALLS {
        let (store, tally, start) = (Arc::clone(&store), Arc::clone(&tally), Arc::clone(&start));
        calls.spawn(async move {
            start.wait().await;
            tally.call(&store, CANCELLED).await;
        });
    }
    calls.join_all().await;
    assert_eq!(tally.computed.load(Ordering::Relaxed), 1);
    assert_eq!(tally.answered.load(Ordering::Relaxed), CALLS - CANCELLED);
    assert_eq!(store.flights.waiting(), 0);
}
