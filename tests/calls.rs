//! How calls are served: the verdict cache, single flight, lanes, deadlines, callers that go away. With the real backbone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::pin::Pin;
use std::sync::LazyLock;
use std::task::Poll;
use std::time::{Duration, Instant};

use prism_judge::prism::{Calibration, EvidenceKind, Group, LabelOrder, Verdict};
use prism_judge::service::{
    CacheControl, Call, Cancel, EngineSettings, ErrorCode, Judge, JudgeConfig, JudgeError, Lane, OptionOverrides,
    Scored,
};
use support::judge::{JUDGE, LABEL_SLOT, LIKELIHOOD, bits, config, open, overrides, party, uncached};
use tokio::task::JoinSet;

/// Calls of one test: what other tests leave in the cache is another tenant's.
fn of(tenant: &str) -> Call {
    Call { tenant: tenant.to_owned(), ..Call::default() }
}

fn verdicts(judge: &Judge, group: &Group, overrides: &OptionOverrides, call: &Call) -> Vec<Verdict> {
    judge.score_blocking(group, overrides, call).unwrap().into_iter().map(Result::unwrap).collect()
}

fn one(scored: Scored) -> Result<Verdict, JudgeError> {
    scored?.pop().unwrap()
}

/// Polls once; a call that waits for nothing is done by then.
async fn poll<F: Future>(future: &mut Pin<Box<F>>) -> Option<F::Output> {
    std::future::poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

#[test]
fn a_judgement_from_the_cache_has_the_bits_of_a_computed_one_and_no_computed_token() {
    let Some(judge) = JUDGE.as_ref() else { return };
    let cyclic = overrides(EvidenceKind::LabelSlot, Some(LabelOrder::Cyclic));
    for (index, overrides) in
        [LIKELIHOOD, cyclic, OptionOverrides { calibration: Some(Calibration::Contextual), ..LABEL_SLOT }]
            .into_iter()
            .enumerate()
    {
        let call = of(&format!("bits {index}"));
        let mut group = party(&["Yes! Who else is in?", "No, I have a book."]);
        let expected: Vec<_> = verdicts(judge, &group, &overrides, &uncached()).iter().map(bits).collect();
        let with = |cache, group: &Group| verdicts(judge, group, &overrides, &Call { cache, ..call.clone() });
        let told = |verdicts: &[Verdict]| verdicts.iter().map(|verdict| verdict.cached).collect::<Vec<_>>();
        for (cache, cached) in [
            (CacheControl::Off, false),
            (CacheControl::Use, false),
            (CacheControl::Use, true),
            (CacheControl::Refresh, false),
            (CacheControl::Off, false),
            (CacheControl::Use, true),
        ] {
            let found = with(cache, &group);
            assert_eq!(told(&found), [cached; 2], "{cache:?}");
            assert_eq!(found.iter().map(bits).collect::<Vec<_>>(), expected);
            assert!(found.iter().all(|verdict| !verdict.cached || verdict.tokens.computed == 0));
        }
        // A new candidate among known ones, in another order and with other ids.
        group.candidates.reverse();
        group.candidates[0].id = "other".to_owned();
        group.candidates.insert(1, party(&["Perhaps."]).candidates.remove(0));
        let mixed = with(CacheControl::Use, &group);
        assert_eq!(told(&mixed), [true, false, true]);
        assert_eq!(mixed[0].id, "other");
        assert_eq!([bits(&mixed[2]), bits(&mixed[0])], [expected[0].clone(), expected[1].clone()]);
        let alone = verdicts(judge, &party(&["Perhaps."]), &overrides, &uncached());
        assert_eq!(bits(&mixed[1]), bits(&alone[0]));
    }
}

#[test]
fn tenants_do_not_share() {
    let Some(judge) = JUDGE.as_ref() else { return };
    let group = party(&["Tenants do not share."]);
    for tenant in ["a", "b", "", "ab"] {
        // The empty tenant is that of other tests; none judges this text.
        assert!(!verdicts(judge, &group, &LIKELIHOOD, &of(tenant))[0].cached, "{tenant}");
        assert!(verdicts(judge, &group, &LIKELIHOOD, &of(tenant))[0].cached, "{tenant}");
    }
}

#[tokio::test]
async fn tenants_do_not_wait_for_each_other() {
    let Some(judge) = JUDGE.as_ref() else { return };
    let (first, second) = (of("leader"), of("stranger"));
    let mut leader = Box::pin(judge.score(party(&["Nobody waits."]), &LIKELIHOOD, &first));
    assert!(poll(&mut leader).await.is_none());
    // The leader is not polled meanwhile: whoever waited for it would wait for ever.
    assert!(!one(judge.score(party(&["Nobody waits."]), &LIKELIHOOD, &second).await).unwrap().cached);
    assert!(!one(leader.await).unwrap().cached);
}

#[test]
fn a_response_that_stands_twice_in_a_group_is_computed_once_and_its_errors_name_their_own_place() {
    let Some(judge) = JUDGE.as_ref() else { return };
    let group = party(&["Twice.", "Once.", "Twice.", "", ""]);
    let results = judge.score_blocking(&group, &LIKELIHOOD, &of("twice")).unwrap();
    let verdicts: Vec<_> = results[..3].iter().map(|result| result.as_ref().unwrap()).collect();
    assert_eq!(verdicts.iter().map(|verdict| verdict.cached).collect::<Vec<_>>(), [false, false, true]);
    assert_eq!((verdicts[2].id.as_str(), bits(verdicts[2])), ("c2", bits(verdicts[0])));
    for index in [3, 4] {
        let error = results[index].as_ref().unwrap_err();
        assert_eq!(error.field.as_deref(), Some(format!("candidates[{index}].response").as_str()));
    }
}

#[test]
fn errors_are_not_kept() {
    let Some(judge) = JUDGE.as_ref() else { return };
    let call = of("errors");
    for responses in [&[""][..], &["fine", ""], &["", "fine"]] {
        let at = responses.iter().position(|response| response.is_empty()).unwrap();
        let error = judge.score_blocking(&party(responses), &LIKELIHOOD, &call).unwrap().remove(at).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArgument);
        assert_eq!(error.field, Some(format!("candidates[{at}].response")));
    }
}

#[test]
fn ids_count_where_the_label_order_is_made_from_them() {
    let Some(judge) = JUDGE.as_ref() else { return };
    let call = of("ids");
    for (order, counts) in [(LabelOrder::Released, true), (LabelOrder::Content, false)] {
        let overrides = overrides(EvidenceKind::LabelSlot, Some(order));
        let mut group = party(&["By any name."]);
        assert!(!verdicts(judge, &group, &overrides, &call)[0].cached);
        group.candidates[0].id = "renamed".to_owned();
        assert_eq!(verdicts(judge, &group, &overrides, &call)[0].cached, !counts);
    }
}

#[tokio::test]
async fn two_thousand_calls_for_one_judgement_compute_it_once_and_take_no_thread_each() {
    let Some(judge) = JUDGE.as_ref() else { return };
    let threads = || std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    let before = threads();
    let mut calls = JoinSet::new();
    for _ in 0..2_000 {
        calls.spawn(async {
            let call = of("two thousand");
            one(judge.score(party(&["Two thousand of us."]), &LIKELIHOOD, &call).await).unwrap()
        });
    }
    let mut most = 0;
    let (mut computed, mut first) = (0, None);
    while let Some(verdict) = calls.join_next().await {
        let verdict = verdict.unwrap();
        most = most.max(threads());
        computed += usize::from(!verdict.cached);
        assert_eq!(*first.get_or_insert_with(|| bits(&verdict)), bits(&verdict));
    }
    assert_eq!(computed, 1);
    // Other tests of this file run beside this one.
    assert!(most <= before + 16, "{before} threads before, {most} at most");
}

#[tokio::test]
async fn a_follower_takes_over_from_a_leader_that_is_dropped_or_cancelled() {
    let Some(judge) = JUDGE.as_ref() else { return };
    let (first, second) = (of("hand over"), of("hand over"));
    let group = || party(&["Hand it over."]);
    let mut leader = Box::pin(judge.score(group(), &LIKELIHOOD, &first));
    assert!(poll(&mut leader).await.is_none());
    let mut follower = Box::pin(judge.score(group(), &LIKELIHOOD, &second));
    assert!(poll(&mut follower).await.is_none());
    drop(leader);
    let taken_over = one(follower.await).unwrap();
    assert!(!taken_over.cached);

    let (first, second) = (of("cancel"), of("cancel"));
    let mut leader = Box::pin(judge.score(group(), &LIKELIHOOD, &first));
    assert!(poll(&mut leader).await.is_none());
    let mut follower = Box::pin(judge.score(group(), &LIKELIHOOD, &second));
    assert!(poll(&mut follower).await.is_none());
    first.cancel.cancel();
    assert_eq!(leader.await.unwrap_err().code, ErrorCode::Cancelled);
    assert_eq!(bits(&one(follower.await).unwrap()), bits(&taken_over));
}

#[tokio::test]
async fn a_follower_keeps_its_own_deadline_and_cancellation() {
    let Some(judge) = JUDGE.as_ref() else { return };
    let leading = of("patience");
    let group = || party(&["Have patience."]);
    let mut leader = Box::pin(judge.score(group(), &LIKELIHOOD, &leading));
    assert!(poll(&mut leader).await.is_none());
    // The leader is not polled: its followers never get an outcome.
    let cancel = Cancel::with_deadline(Some(Instant::now() + Duration::from_millis(20)));
    let late = judge.score(group(), &LIKELIHOOD, &Call { cancel, ..of("patience") }).await;
    assert_eq!(late.unwrap_err().code, ErrorCode::DeadlineExceeded);
    let following = of("patience");
    let mut follower = Box::pin(judge.score(group(), &LIKELIHOOD, &following));
    assert!(poll(&mut follower).await.is_none());
    following.cancel.cancel();
    assert_eq!(follower.await.unwrap_err().code, ErrorCode::Cancelled);
    assert!(!one(leader.await).unwrap().cached);
}

#[tokio::test]
async fn a_guard_call_does_not_wait_for_a_training_call_that_computes_the_same() {
    let Some(judge) = JUDGE.as_ref() else { return };
    let (train, guard) = (of("urgent"), Call { lane: Lane::Guard, ..of("urgent") });
    let group = || party(&["It is urgent."]);
    let mut leader = Box::pin(judge.score(group(), &LIKELIHOOD, &train));
    assert!(poll(&mut leader).await.is_none());
    let urgent = one(judge.score(group(), &LIKELIHOOD, &guard).await).unwrap();
    assert!(!urgent.cached);
    assert_eq!(bits(&one(leader.await).unwrap()), bits(&urgent));
}

/// A judge whose lanes take one call each.
static NARROW: LazyLock<Option<Judge>> = LazyLock::new(|| {
    let engine = EngineSettings { queue_tokens: [1; 3], ..EngineSettings::default() };
    Some(open(JudgeConfig { engine, ..config(support::backbone()?) }))
});

#[tokio::test]
async fn a_full_lane_refuses_at_once_with_its_numbers_and_lets_hits_and_other_lanes_pass() {
    let Some(judge) = NARROW.as_ref() else { return };
    let call = Call::default();
    let guard = Call { lane: Lane::Guard, ..Call::default() };
    assert!(!one(judge.score(party(&["Known."]), &LIKELIHOOD, &call).await).unwrap().cached);
    let mut running = Box::pin(judge.score(party(&["Running."]), &LIKELIHOOD, &call));
    assert!(poll(&mut running).await.is_none());

    let refused = Box::pin(judge.score(party(&["Refused."]), &LIKELIHOOD, &call));
    let error = poll(&mut { refused }).await.expect("an answer at once").unwrap_err();
    assert_eq!(error.code, ErrorCode::Overloaded);
    let overload = error.overload.unwrap();
    assert_eq!((overload.lane, overload.limit, overload.pieces), (Lane::Train, 1, 1));
    assert!(overload.outstanding > 0 && overload.wanted > 0 && !overload.retry_after.is_zero());

    let mut hit = Box::pin(judge.score(party(&["Known."]), &LIKELIHOOD, &call));
    assert!(one(poll(&mut hit).await.expect("an answer at once")).unwrap().cached);
    assert!(one(judge.score(party(&["Guarded."]), &LIKELIHOOD, &guard).await).is_ok());

    // A caller that goes away leaves its room.
    drop(running);
    assert!(one(judge.score(party(&["Refused."]), &LIKELIHOOD, &call).await).is_ok());
}
