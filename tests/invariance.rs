//! The bits of a reward depend on nothing but what is judged (promise 1), on the default backbone: alone, in any group, in
//! any order, beside other callers, in any lane, from the cache or not, with one thread or two.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use prism_judge::persona::{Persona, Polarity, Trait, TraitTarget};
use prism_judge::prism::{Candidate, Group, Turn};
use prism_judge::service::{CacheControl, Call, Judge, JudgeConfig, Lane, OptionOverrides};
use support::judge::{JUDGE, bits, config};
use support::tiny::Random;

const REPLIES: [&str; 6] = [
    "Yes! Who else is in?",
    "I would rather stay in with a book, if that is all right.",
    "Fine.",
    "Only if we leave early; there is a report to finish, and I promised to call my sister before nine.",
    "What a wonderful idea! I will bring games, music and three friends.",
    "ok",
];

/// Two personas, each with a short and a longer dialogue.
fn groups() -> Vec<Group> {
    let turn = |speaker: &str, text: &str| Turn { speaker: speaker.to_owned(), text: text.to_owned() };
    let short = vec![turn("User", "Coming tonight?")];
    let long = vec![
        turn("User", "Coming tonight?"),
        turn("Agent", "To what, exactly?"),
        turn("User", "Ann's party. There is a band, and a garden with lights in the trees."),
    ];
    let candidate = |(index, text): (usize, &&str)| Candidate { id: index.to_string(), response: (*text).to_owned() };
    let candidates: Vec<Candidate> = REPLIES.iter().enumerate().map(candidate).collect();
    let traits = [(Trait::Extraversion, Polarity::High), (Trait::Neuroticism, Polarity::Low)];
    traits
        .into_iter()
        .flat_map(|(trait_, polarity)| {
            let persona = Persona { traits: vec![TraitTarget::new(trait_, polarity)], ..Persona::default() };
            let candidates = &candidates;
            [short.clone(), long.clone()].map(move |context| Group {
                persona: persona.clone(),
                context,
                candidates: candidates.clone(),
            })
        })
        .collect()
}

fn scored(judge: &Judge, group: &Group, lane: Lane, cache: CacheControl) -> Vec<Vec<u64>> {
    let call = Call { lane, cache, ..Call::default() };
    let results = judge.score_blocking(group, &OptionOverrides::default(), &call).unwrap();
    results.iter().map(|result| bits(result.as_ref().unwrap())).collect()
}

/// The group with some of its candidates, in the order given.
fn some(group: &Group, picked: &[usize]) -> Group {
    let candidates = picked.iter().map(|index| group.candidates[*index].clone()).collect();
    Group { candidates, ..group.clone() }
}

#[test]
fn a_reward_has_the_same_bits_whatever_runs_beside_it() {
    let Some(judge) = JUDGE.as_ref() else { return };
    let groups = groups();
    let all: Vec<usize> = (0..REPLIES.len()).collect();
    let alone = |group: &Group, index: usize| scored(judge, &some(group, &[index]), Lane::Train, CacheControl::Off);
    let expected: Vec<Vec<Vec<u64>>> =
        groups.iter().map(|group| all.iter().flat_map(|index| alone(group, *index)).collect()).collect();
    let mut compared = 0;
    let mut same = |group: usize, picked: &[usize], found: &[Vec<u64>], how: &str| {
        for (index, found) in picked.iter().zip(found) {
            assert_eq!(found, &expected[group][*index], "group {group}, reply {index}, {how}");
            compared += found.len();
        }
    };
    let reversed: Vec<usize> = all.iter().rev().copied().collect();
    for (index, group) in groups.iter().enumerate() {
        same(index, &reversed, &scored(judge, &some(group, &reversed), Lane::Train, CacheControl::Off), "reversed");
        same(index, &all, &scored(judge, group, Lane::Train, CacheControl::Use), "as a group");
        same(index, &all, &scored(judge, group, Lane::Guard, CacheControl::Use), "from the cache");
    }
    // Callers at once, with parts of all groups in all lanes.
    let mut random = Random(5);
    let calls: Vec<(usize, Vec<usize>, Lane)> = (0..24)
        .map(|_| {
            let picked = (0..1 + random.below(4)).map(|_| random.below(REPLIES.len())).collect();
            (random.below(groups.len()), picked, Lane::ALL[random.below(3)])
        })
        .collect();
    let found: Vec<_> = std::thread::scope(|scope| {
        let judged: Vec<_> = calls
            .iter()
            .map(|(group, picked, lane)| {
                let group = some(&groups[*group], picked);
                scope.spawn(move || scored(judge, &group, *lane, CacheControl::Off))
            })
            .collect();
        judged.into_iter().map(|judged| judged.join().unwrap()).collect()
    });
    for ((group, picked, lane), found) in calls.iter().zip(&found) {
        same(*group, picked, found, lane.name());
    }
    // Another process of other settings: one thread, odd chunks, a budget that hardly holds one prompt.
    let mut settings = config(support::backbone().unwrap());
    settings.threads = Some(1);
    settings.engine.chunk_tokens = 37;
    settings.engine.kv_bytes = 32 << 20;
    let other = Judge::open(&JudgeConfig { ..settings }).unwrap();
    for (index, group) in groups.iter().enumerate() {
        same(index, &all, &scored(&other, group, Lane::Batch, CacheControl::Off), "with other settings");
    }
    assert!(compared >= 1_500, "{compared}");
}
