//! What one tenant sends, no other can find out (CVE-2025-46570). Time follows the tokens that go through the model, and
//! `tokens.computed` tells them: both must be what they would be if nobody else had ever called. Every probe has its
//! control, the same question within a tenant, which does see what was there. `make load-tenants` measures the times.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::LazyLock;

use prism_judge::engine::{Cancel, Engine, EngineSettings, Lane, Prompt, Read, Realm, Work};
use prism_judge::prism::{Group, Verdict};
use prism_judge::service::{CacheControl, Call, Judge, OptionOverrides};
use support::judge::{LABEL_SLOT, LIKELIHOOD, bits, config, extravert, group};
use support::tiny::{Random, Shape, Tiny};

const PROBES: usize = 250;

/// A judge of a tiny model that tokenises as the real one.
static JUDGE: LazyLock<Option<Judge>> = LazyLock::new(|| {
    let file = tempfile::NamedTempFile::new().unwrap();
    Tiny::speaking_as(&support::backbone()?, 21).write(file.path());
    Some(Judge::open(&config(file.path().to_owned())).unwrap())
});

const WORDS: [&str; 12] =
    ["amber", "quiet", "seven", "harbour", "never", "lantern", "salt", "garden", "copper", "early", "window", "river"];

fn words(random: &mut Random, count: usize) -> String {
    (0..count).map(|_| WORDS[random.below(WORDS.len())]).collect::<Vec<_>>().join(" ")
}

fn ask(judge: &Judge, tenant: &str, group: &Group, overrides: &OptionOverrides, cache: CacheControl) -> Verdict {
    let call = Call { tenant: tenant.to_owned(), cache, ..Call::default() };
    judge.score_blocking(group, overrides, &call).unwrap().remove(0).unwrap()
}

#[test]
fn what_another_tenant_sent_costs_what_it_costs_when_nobody_sent_it() {
    let Some(judge) = JUDGE.as_ref() else { return };
    let mut random = Random(77);
    for probe in 0..PROBES {
        let overrides = [LIKELIHOOD, LABEL_SLOT][probe % 2];
        let (secret, reply) = (words(&mut random, 30), words(&mut random, 6));
        let asked = |reply: &str| group(extravert(), &secret, &[reply]);
        let sent = ask(judge, &format!("victim {probe}"), &asked(&reply), &overrides, CacheControl::Use);
        assert!(!sent.cached);

        // The very same request, and one that only shares the persona and the context.
        let other = words(&mut random, 6);
        for (name, reply) in [("same", &reply), ("prefix", &other)] {
            let spy = ask(judge, &format!("spy {name} {probe}"), &asked(reply), &overrides, CacheControl::Use);
            let nobody = ask(judge, &format!("nobody {name} {probe}"), &asked(reply), &overrides, CacheControl::Use);
            let victim = ask(judge, &format!("victim {probe}"), &asked(reply), &overrides, CacheControl::Use);
            assert_eq!((spy.cached, spy.tokens), (false, nobody.tokens), "{name} {probe}");
            assert!(victim.tokens.computed < spy.tokens.computed, "the probe would not see anything: {name} {probe}");
            assert_eq!(victim.cached, name == "same");
            assert_eq!(bits(&spy), bits(&victim), "tenants share no numbers and get the same ones");
        }
    }
}

#[test]
fn a_spy_that_has_a_tenant_of_its_own_sees_its_own_calls_alone() {
    let Some(judge) = JUDGE.as_ref() else { return };
    let mut random = Random(78);
    let (secret, reply) = (words(&mut random, 40), words(&mut random, 8));
    let asked = group(extravert(), &secret, &[&reply]);
    let computed = |tenant: &str| ask(judge, tenant, &asked, &LIKELIHOOD, CacheControl::Off).tokens.computed;
    let first = computed("spy");
    // Whatever others do in between, and however often.
    assert_eq!([computed("someone"), computed("someone else")], [first, first]);
    assert!(computed("someone") < first);
    let again = computed("spy");
    assert!(again < first, "{again} of {first}");
    assert_eq!(computed("spy"), again);
    assert_eq!(computed("spy who comes late"), first);
}

#[test]
fn realms_share_neither_keys_and_values_nor_a_chunks_work_and_get_the_same_bits() {
    let engine = Engine::start(Tiny::new(Shape::default(), 4).decoder(2), EngineSettings::DEFAULT).unwrap();
    let ids: Vec<u32> = (0..90).map(|at| at * 7 % 160).collect();
    let run = |tenant: &str| {
        let mut work = Work::of(Realm::of(tenant));
        work.push(Prompt { ids: ids.clone(), read: Read::Next(vec![1, 2, 3]) });
        let permit = engine.admit(Lane::Train, work.tokens()).unwrap();
        engine.submit(permit, work, &Cancel::default()).unwrap()
    };
    // All at once, so that they meet in a chunk.
    let waiting: Vec<_> = ["a", "b", "", "a"].map(run).into();
    let readings: Vec<_> = waiting.into_iter().map(|pending| pending.wait_blocking().unwrap().remove(0)).collect();
    let readings: Vec<_> = readings.into_iter().map(Result::unwrap).collect();
    let computed: Vec<usize> = readings.iter().map(|reading| reading.computed).collect();
    assert_eq!(computed[..3], [90, 90, 90]);
    assert!(computed[3] <= 1, "its own realm had it: {computed:?}");
    for reading in &readings {
        assert_eq!(reading.log_probs, readings[0].log_probs);
    }
}

#[test]
fn the_budget_is_everybodys_and_what_is_given_up_leaves_nothing_behind() {
    const TOKEN: usize = 512;
    let settings = EngineSettings { kv_bytes: 200 * TOKEN, ..EngineSettings::DEFAULT };
    let engine = Engine::start(Tiny::new(Shape::default(), 4).decoder(2), settings).unwrap();
    for tenant in 0..50 {
        let mut work = Work::of(Realm::of(&tenant.to_string()));
        work.push(Prompt { ids: vec![5; 90], read: Read::Next(vec![1]) });
        let permit = engine.admit(Lane::Train, work.tokens()).unwrap();
        let answer = engine.submit(permit, work, &Cancel::default()).unwrap().wait_blocking().unwrap().remove(0);
        assert_eq!(answer.unwrap().computed, 90);
    }
    let stats = engine.stats();
    assert!(stats.kv_bytes as usize <= settings.kv_bytes && stats.evicted_tokens >= 47 * 90, "{stats:?}");
}
