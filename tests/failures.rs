//! No failure is ever a number (promise 3): thousands of failures are injected into a judge of a tiny model, and every
//! result is a typed error or has the bits that the same request gets in peace.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::time::{Duration, Instant};

use fail::FailScenario;
use prism_judge::prism::{Group, Verdict};
use prism_judge::service::{CacheControl, Call, Cancel, ErrorCode, Judge, JudgeError, Lane, OptionOverrides};
use support::judge::{bits, config, party};
use support::tiny::{Random, Tiny};

/// Injections of each kind.
const ROUNDS: usize = 1250;

/// What an injected panic says.
const INJECTED: &str = "an injected panic";

struct Case {
    group: Group,
    /// What each candidate gets in peace.
    expected: Vec<Vec<u64>>,
}

fn cases(judge: &Judge) -> Vec<Case> {
    let replies = ["Yes!", "No.", "Who else is in?", "I would rather read.", "Perhaps, if it is not too loud.", "Sure"];
    let group = |first: usize| party(&[replies[first], replies[(first + 1) % 6], replies[(first + 3) % 6]]);
    let peace = Call { cache: CacheControl::Off, ..Call::default() };
    (0..replies.len())
        .map(|first| {
            let group = group(first);
            let verdicts = judge.score_blocking(&group, &OptionOverrides::default(), &peace).unwrap();
            Case { expected: verdicts.iter().map(|verdict| bits(verdict.as_ref().unwrap())).collect(), group }
        })
        .collect()
}

type Scored = Result<Vec<Result<Verdict, JudgeError>>, JudgeError>;

/// Counts the errors, all of which must have one of `codes`; whatever is a number must be the right one.
fn check(case: &Case, scored: Scored, codes: &[ErrorCode]) -> usize {
    let known = |error: &JudgeError| assert!(codes.contains(&error.code), "{error:?}");
    match scored {
        Err(error) => {
            known(&error);
            case.expected.len()
        }
        Ok(results) => {
            assert_eq!(results.len(), case.expected.len());
            let mut errors = 0;
            for (result, expected) in results.iter().zip(&case.expected) {
                match result {
                    Ok(verdict) => assert_eq!(&bits(verdict), expected),
                    Err(error) => {
                        known(error);
                        errors += 1;
                    }
                }
            }
            errors
        }
    }
}

#[test]
fn five_thousand_injected_failures_give_no_number_and_leave_nothing_behind() {
    let Some(backbone) = support::backbone() else { return };
    let scenario = FailScenario::setup();
    let loud = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // Thousands of these are meant to happen.
        if !panic.to_string().contains(INJECTED) {
            loud(panic);
        }
    }));
    let file = tempfile::NamedTempFile::new().unwrap();
    Tiny::speaking_as(&backbone, 12).write(file.path());
    let judge = Judge::open(&config(file.path().to_owned())).unwrap();
    let cases = cases(&judge);
    let mut random = Random(31);
    let mut injected = [0; 4];
    for round in 0..ROUNDS {
        let case = &cases[random.below(cases.len())];
        let cache = [CacheControl::Use, CacheControl::Off, CacheControl::Refresh][random.below(3)];
        let lane = Lane::ALL[random.below(3)];
        // A tenant of its own, so that nothing is answered from before.
        let call = |cancel: Cancel| Call { cancel, cache, lane, tenant: format!("{round}"), ..Call::default() };
        let score = |cancel: Cancel| judge.score_blocking(&case.group, &OptionOverrides::default(), &call(cancel));

        fail::cfg("engine::not_finite", "1*return").unwrap();
        let errors = check(case, score(Cancel::default()), &[ErrorCode::NonFinite]);
        assert!(errors > 0, "the value that is not finite was lost");
        injected[0] += 1;
        fail::remove("engine::not_finite");

        fail::cfg("engine::forward", &format!("panic({INJECTED})")).unwrap();
        let fresh = Call { cache: CacheControl::Off, ..call(Cancel::default()) };
        let failed = judge.score_blocking(&case.group, &OptionOverrides::default(), &fresh);
        assert_eq!(check(case, failed, &[ErrorCode::Internal]), case.expected.len());
        injected[1] += 1;
        fail::remove("engine::forward");

        let deadline = Instant::now() + Duration::from_micros(random.below(1500) as u64);
        let late = score(Cancel::with_deadline(Some(deadline)));
        injected[2] += usize::from(check(case, late, &[ErrorCode::DeadlineExceeded]) > 0);

        let cancel = Cancel::default();
        let cancelled = std::thread::scope(|scope| {
            let canceller = cancel.clone();
            let spins = random.below(20_000);
            scope.spawn(move || {
                (0..spins).for_each(|_| std::hint::spin_loop());
                canceller.cancel();
            });
            score(cancel)
        });
        injected[3] += usize::from(check(case, cancelled, &[ErrorCode::Cancelled]) > 0);

        // The same request in peace: no failure was kept.
        assert_eq!(check(case, score(Cancel::default()), &[]), 0);
    }
    println!("injected: {injected:?}");
    assert_eq!(injected[..2], [ROUNDS; 2]);
    assert!(injected[2] + injected[3] > ROUNDS / 2, "{injected:?}: too few calls were late or cancelled in time");
    drop(judge);
    scenario.teardown();
}
