//! The engine under many callers: whatever runs beside it, in whatever order, with or without the cache, a prompt gets
//! the bits that it gets alone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::collections::HashMap;
use std::sync::Arc;

use prism_judge::engine::{
    Answer, Cancel, Engine, EngineError, EngineSettings, Lane, Pending, Prompt, Read, Stop, Work, run,
};
use prism_judge::model::Decoder;
use support::tiny::{Random, Shape, Tiny};

fn decoder(threads: usize) -> Arc<Decoder> {
    Arc::new(Tiny::new(Shape::default(), 4).decoder(threads))
}

/// Bytes of keys and values of one token of the decoder: two layers, two heads of 16, four bytes.
const TOKEN: usize = 2 * 2 * 2 * 16 * 4;

fn submit(engine: &Engine, lane: Lane, prompts: &[Prompt]) -> Pending {
    submit_work(engine, lane, prompts.iter().cloned().collect())
}

fn submit_work(engine: &Engine, lane: Lane, work: Work) -> Pending {
    let permit = engine.admit(lane, work.tokens()).unwrap();
    engine.submit(permit, work, &Cancel::default()).unwrap()
}

fn bits(answer: Answer) -> Vec<Vec<u64>> {
    let bits = |value: &f64| value.to_bits();
    answer.unwrap().into_iter().map(|answer| answer.unwrap().log_probs.iter().map(bits).collect()).collect()
}

fn alone(decoder: &Decoder, prompt: &Prompt) -> Vec<u64> {
    bits(run(decoder, std::slice::from_ref(prompt), 64, &Cancel::default())).remove(0)
}

/// Dialogues that grow out of a few openings, each read in one of the two ways.
fn dialogues(random: &mut Random, count: usize) -> Vec<Prompt> {
    let mut prompts: Vec<Prompt> = Vec::new();
    while prompts.len() < count {
        let mut ids = match random.below(4) {
            0 => vec![random.below(3) as u32; 5],
            _ if prompts.is_empty() => vec![1],
            _ => {
                let earlier = &prompts[random.below(prompts.len())].ids;
                earlier[..1 + random.below(earlier.len())].to_vec()
            }
        };
        let own = 1 + random.below(30);
        ids.extend((0..own).map(|_| random.below(6) as u32));
        let read = if random.below(2) == 0 {
            Read::Next(vec![3, 150, random.below(160) as u32])
        } else {
            let start = 1 + random.below(ids.len() - 1);
            Read::Span(start..ids.len())
        };
        prompts.push(Prompt { ids, read });
    }
    prompts
}

#[test]
fn prompts_get_their_own_bits_beside_any_neighbours_with_any_budget() {
    let mut random = Random(23);
    let prompts = dialogues(&mut random, 120);
    let longest = prompts.iter().map(|prompt| prompt.ids.len()).max().unwrap();
    let expected: Vec<Vec<u64>> = prompts.iter().map(|prompt| alone(&decoder(1), prompt)).collect();
    let mut compared = 0;
    for (threads, kv_tokens) in [(1, 5 * longest), (2, 2 * longest), (2, 1 << 20), (3, 3 * longest)] {
        let settings = EngineSettings {
            chunk_tokens: 1 + random.below(60),
            max_batch_tokens: 1 + random.below(800),
            kv_bytes: kv_tokens * TOKEN,
            ..EngineSettings::DEFAULT
        };
        let engine = Engine::start(decoder(threads), settings).unwrap();
        for _ in 0..12 {
            // Six callers at once, each with work of one to eight prompts in a lane of its choice; half of it remembers.
            let rounds: Vec<Vec<(Lane, bool, Vec<usize>)>> = (0..6)
                .map(|_| {
                    let piece = |random: &mut Random| {
                        let some = (0..1 + random.below(8)).map(|_| random.below(prompts.len())).collect();
                        (Lane::ALL[random.below(3)], random.below(2) == 0, some)
                    };
                    (0..8).map(|_| piece(&mut random)).collect()
                })
                .collect();
            let (engine, prompts, expected) = (&engine, &prompts, &expected);
            std::thread::scope(|scope| {
                for pieces in &rounds {
                    scope.spawn(move || {
                        let pending: Vec<_> = pieces
                            .iter()
                            .map(|(lane, remembers, some)| {
                                let mut work: Work = some.iter().map(|index| prompts[*index].clone()).collect();
                                work.remembers = *remembers;
                                submit_work(engine, *lane, work)
                            })
                            .collect();
                        for (pending, (.., some)) in pending.into_iter().zip(pieces) {
                            for (bits, index) in bits(pending.wait_blocking()).iter().zip(some) {
                                assert_eq!(bits, &expected[*index], "prompt {index}, {settings:?}");
                            }
                        }
                    });
                }
            });
            compared += rounds.iter().flatten().map(|(.., some)| some.len()).sum::<usize>();
            let stats = engine.stats();
            assert_eq!(stats.outstanding, [0; 3]);
            assert!(stats.kv_bytes as usize <= settings.kv_bytes, "{stats:?}, {settings:?}");
        }
        let stats = engine.stats();
        assert!(stats.reused_tokens > 0, "{stats:?}");
        assert_eq!(stats.evicted_tokens > 0, kv_tokens < 1 << 20, "{stats:?}");
    }
    assert!(compared >= 10_000, "{compared}");
}

/// What one prompt after the other must compute where all is kept: tokens that are new, and those after which the last
/// prompt read another token.
#[derive(Default)]
struct Kept(HashMap<Vec<u32>, Option<u32>>);

impl Kept {
    fn computes(&mut self, prompt: &Prompt) -> usize {
        let Read::Span(span) = &prompt.read else { unreachable!("all prompts read a span") };
        let mut computed = 0;
        for at in 0..span.end - 1 {
            let read = (at + 1 >= span.start).then(|| prompt.ids[at + 1]);
            match self.0.get_mut(&prompt.ids[..=at]) {
                Some(last) if read.is_none() || *last == read => {}
                Some(last) => {
                    *last = read;
                    computed += 1;
                }
                None => {
                    self.0.insert(prompt.ids[..=at].to_vec(), read);
                    computed += 1;
                }
            }
        }
        computed
    }
}

#[test]
fn what_was_read_before_is_not_computed_again_by_work_that_remembers() {
    let mut random = Random(41);
    for chunk_tokens in [3, 16, 256] {
        let engine = Engine::start(decoder(2), EngineSettings { chunk_tokens, ..EngineSettings::DEFAULT }).unwrap();
        let judge = |prompt: &Prompt, remembers: bool| {
            let mut work: Work = [prompt.clone()].into_iter().collect();
            work.remembers = remembers;
            let answer = submit_work(&engine, Lane::Train, work).wait_blocking();
            let computed = answer.as_ref().unwrap()[0].as_ref().unwrap().computed;
            assert_eq!(bits(answer)[0], alone(&decoder(1), prompt), "{prompt:?}");
            computed
        };
        // A reply after a trunk, closed by a token that is read and never run, sentence by sentence.
        let trunk: Vec<u32> = (0..40).map(|at| if at == 0 { 9 } else { random.below(160) as u32 }).collect();
        let reply: Vec<u32> = (0..60).map(|_| random.below(159) as u32).collect();
        let closed = |end: usize| {
            let ids = [&trunk[..], &reply[..end], &[159]].concat();
            Prompt { read: Read::Span(40..ids.len()), ids }
        };
        let whole: usize = [9, 30, 31, 60].map(|end| judge(&closed(end), true)).iter().sum();
        assert_eq!(whole, 100 + 3, "each token once, and the end of each sentence that was not the last once more");
        assert_eq!(judge(&closed(60), true), 0);
        assert_eq!(judge(&closed(60), false), 61, "all that is read, from the last token of the trunk on");
        // Replies that grow and branch, with each other's first words.
        let mut kept = Kept::default();
        let mut prompts: Vec<Prompt> = Vec::new();
        for _ in 0..150 {
            let mut ids = match random.below(5) {
                0 => vec![150 + random.below(3) as u32; 6],
                _ if prompts.is_empty() => vec![150; 4],
                _ => {
                    let earlier = &prompts[random.below(prompts.len())].ids;
                    earlier[..1 + random.below(earlier.len())].to_vec()
                }
            };
            ids.extend((0..1 + random.below(12)).map(|_| random.below(4) as u32));
            let start = 1 + random.below(ids.len() - 1);
            let prompt = Prompt { read: Read::Span(start..start + 1 + random.below(ids.len() - start)), ids };
            assert_eq!(judge(&prompt, true), kept.computes(&prompt), "{prompt:?}");
            prompts.push(prompt);
        }
    }
}

#[test]
fn a_dialogue_that_grows_pays_for_its_new_turns_only() {
    let engine = Engine::start(decoder(2), EngineSettings::DEFAULT).unwrap();
    let mut random = Random(3);
    let mut ids = vec![9; 50];
    let judge = |ids: &[u32]| {
        let prompt = Prompt { ids: ids.to_vec(), read: Read::Next(vec![1]) };
        let answer = engine.run(vec![prompt.clone()], &Cancel::default());
        let computed = answer.as_ref().unwrap()[0].as_ref().unwrap().computed;
        assert_eq!(bits(answer)[0], alone(&decoder(1), &prompt));
        computed
    };
    assert_eq!(judge(&ids), 50);
    for _ in 0..12 {
        let turn: Vec<u32> = (0..1 + random.below(20)).map(|_| random.below(160) as u32).collect();
        // A reply that is judged and then replaced by another leaves what comes before it in the cache.
        let rejected = [&ids[..], &[157, 158, 159]].concat();
        assert_eq!(judge(&rejected), 3);
        ids.extend(&turn);
        assert_eq!(judge(&ids), turn.len());
        assert_eq!(judge(&ids), 1, "the last token is read, so it is run again");
    }
}

#[test]
fn a_prompt_that_the_budget_cannot_hold_is_refused_with_the_numbers_and_its_neighbours_are_not() {
    let settings = EngineSettings { kv_bytes: 64 * TOKEN, ..EngineSettings::DEFAULT };
    let engine = Engine::start(decoder(2), settings).unwrap();
    let prompt = |tokens: usize| Prompt { ids: vec![5; tokens], read: Read::Next(vec![1]) };
    let answers = engine.run(vec![prompt(30), prompt(80), prompt(12)], &Cancel::default()).unwrap();
    assert!(answers[0].is_ok() && answers[2].is_ok());
    let error = answers[1].clone().unwrap_err();
    assert!(matches!(error, EngineError::KvBudget { tokens: 80, budget: 32_768, .. }), "{error:?}");
    assert!(error.to_string().contains("80 tokens") && error.to_string().contains("32768 bytes"), "{error}");
}

#[test]
fn a_prompt_fits_the_budget_however_many_pieces_its_path_was_cut_into() {
    let settings = EngineSettings { kv_bytes: 100 * TOKEN, ..EngineSettings::DEFAULT };
    let engine = Engine::start(decoder(2), settings).unwrap();
    // A reply that is judged after every token of it.
    for tokens in 1..=80 {
        let prompt = Prompt { ids: vec![5; tokens], read: Read::Next(vec![1]) };
        let answer = engine.run(vec![prompt.clone()], &Cancel::default());
        assert_eq!(bits(answer)[0], alone(&decoder(1), &prompt), "{tokens} tokens");
    }
    assert!(engine.stats().kv_bytes as usize <= settings.kv_bytes);
}

#[test]
fn a_group_over_the_budget_is_run_in_parts_without_changing_a_bit() {
    let mut random = Random(5);
    let trunk: Vec<u32> = (0..60).map(|_| random.below(160) as u32).collect();
    let group: Vec<Prompt> = (0..160)
        .map(|first| {
            let own: Vec<u32> = (0..20).map(|_| random.below(160) as u32).collect();
            let ids = [&trunk[..], &[first], &own].concat();
            Prompt { read: Read::Span(60..ids.len()), ids }
        })
        .collect();
    let settings = EngineSettings { kv_bytes: 400 * TOKEN, ..EngineSettings::DEFAULT };
    let engine = Engine::start(decoder(2), settings).unwrap();
    let whole = run(&decoder(1), &group, 512, &Cancel::default());
    assert_eq!(bits(engine.run(group, &Cancel::default())), bits(whole));
    let stats = engine.stats();
    assert!(stats.kv_bytes as usize <= settings.kv_bytes, "{stats:?}");
    assert_eq!(stats.computed_tokens, 60 + 160 * 20, "the trunk stays: nothing is computed twice");
}

#[test]
fn prompts_of_one_piece_of_work_that_repeat_each_other_get_the_same_answer_and_are_paid_once() {
    let engine = Engine::start(decoder(2), EngineSettings::DEFAULT).unwrap();
    let prompt = |first: u32, read: Read| Prompt { ids: [vec![first], vec![5; 30]].concat(), read };
    let some = [
        prompt(1, Read::Span(11..31)),
        prompt(2, Read::Span(11..31)),
        prompt(1, Read::Next(vec![1, 2, 3])),
        prompt(1, Read::Next(vec![3, 2, 1])),
        Prompt { ids: vec![7; 5000], read: Read::Next(vec![1]) },
    ];
    let group: Vec<Prompt> = (0..40).map(|at| some[at * at % 5].clone()).collect();
    let answers = engine.run(group.clone(), &Cancel::default()).unwrap();
    assert_eq!(answers.len(), group.len());
    for (at, (prompt, answer)) in group.iter().zip(&answers).enumerate() {
        let first = group.iter().position(|other| other == prompt).unwrap();
        match (answer, &answers[first]) {
            (Ok(answer), Ok(before)) => {
                assert_eq!(bits(Ok(vec![Ok(answer.clone())]))[0], alone(&decoder(1), prompt));
                assert_eq!(answer.computed, if at == first { before.computed } else { 0 });
            }
            (Err(answer), Err(before)) => assert_eq!(answer, before),
            _ => panic!("prompt {at} and its repeat {first} have different answers"),
        }
    }
    let computed: usize = answers.iter().flatten().map(|answer| answer.computed).sum();
    assert_eq!(computed as u64, engine.stats().computed_tokens);
}

#[test]
fn a_chunk_gives_way_however_many_prompts_read_the_same_tokens() {
    let engine = Engine::start(decoder(2), EngineSettings::DEFAULT).unwrap();
    // Replies that differ in the token that is read last and never run.
    let reply =
        |last: usize| Prompt { ids: [vec![5; 100], vec![last as u32 % 160]].concat(), read: Read::Span(1..101) };
    let group: Vec<Prompt> = (0..4000).map(reply).collect();
    let answers = bits(engine.run(group.clone(), &Cancel::default()));
    for at in [0, 1, 159, 160, 3999] {
        assert_eq!(answers[at], alone(&decoder(1), &group[at]));
    }
    let stats = engine.stats();
    assert_eq!(stats.computed_tokens, 100);
    assert!(stats.chunks >= 6, "400,000 readings in {} chunks", stats.chunks);
}

#[test]
fn a_full_lane_refuses_at_once_with_its_numbers_and_has_room_again_when_work_is_done_or_dropped() {
    let settings = EngineSettings { queue_tokens: [100, 50, 20], ..EngineSettings::DEFAULT };
    let engine = Engine::start(decoder(1), settings).unwrap();
    let first = engine.admit(Lane::Train, 30).unwrap();
    let second = engine.admit(Lane::Train, 20).unwrap();
    let refused = engine.admit(Lane::Train, 1).map(drop).unwrap_err();
    assert_eq!(
        (refused.lane, refused.wanted, refused.outstanding, refused.pieces, refused.limit),
        (Lane::Train, 1, 50, 2, 50)
    );
    assert!(!refused.retry_after.is_zero());
    let text = refused.to_string();
    assert!(text.contains("the train lane is full: 50 of 50 tokens in 2 calls"), "{text}");
    // Other lanes are not concerned.
    assert!(engine.admit(Lane::Guard, 100).is_ok());
    drop(second);
    assert!(engine.admit(Lane::Train, 20).is_ok());
    // Work turns out larger than it looked.
    let work = |tokens: usize| Work::from_iter([Prompt { ids: vec![3; tokens], read: Read::Next(vec![1]) }]);
    let small = engine.admit(Lane::Train, 10).unwrap();
    let late = engine.submit(small, work(21), &Cancel::default()).map(drop).unwrap_err();
    assert!(matches!(late, EngineError::Overloaded(_)), "{late:?}");
    drop(first);
    // A piece of work that is larger than its lane is taken when it is alone.
    let large = engine.admit(Lane::Batch, 300).unwrap();
    assert!(engine.admit(Lane::Batch, 1).is_err());
    assert!(engine.submit(large, work(300), &Cancel::default()).unwrap().wait_blocking().unwrap()[0].is_ok());
    assert_eq!(engine.stats().outstanding, [0; 3]);
}

#[test]
fn calls_that_are_refused_are_sent_back_one_after_the_other() {
    let settings = EngineSettings { queue_tokens: [1, 1000, 1], ..EngineSettings::DEFAULT };
    let engine = Engine::start(decoder(1), settings).unwrap();
    let first = engine.admit(Lane::Train, 1000).unwrap();
    let hint = || engine.admit(Lane::Train, 500).map(drop).unwrap_err().retry_after;
    let hints: Vec<_> = (0..100).map(|_| hint()).collect();
    // Nothing has run yet: the first rate is 500 tokens a second.
    assert_eq!(hints[..3].iter().map(|hint| hint.as_secs()).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(hints.iter().all(|hint| hint.as_secs() <= 60) && hints[99].as_secs() == 60);
    drop(first);
    let second = engine.admit(Lane::Train, 1000).unwrap();
    assert_eq!(hint().as_secs(), 1, "the lane was empty: nobody is on the way back");
    drop(second);
}

#[test]
fn what_is_over_before_it_starts_costs_nothing() {
    let engine = Engine::start(decoder(1), EngineSettings::DEFAULT).unwrap();
    let cancel = Cancel::default();
    cancel.cancel();
    let prompt = Prompt { ids: vec![3; 40], read: Read::Next(vec![1]) };
    assert_eq!(engine.run(vec![prompt.clone()], &cancel), Err(EngineError::Stopped(Stop::Cancelled)));
    assert_eq!(engine.stats().computed_tokens, 0);
    assert!(engine.run(vec![prompt], &Cancel::default()).unwrap()[0].is_ok());
}

#[test]
fn an_idle_engine_waits_for_company_only_as_long_as_it_is_told() {
    // An hour: the test would hang if a full batch or guard work did not end the wait.
    let delay = std::time::Duration::from_secs(3600);
    let settings = EngineSettings { batch_delay: delay, max_batch_tokens: 60, ..EngineSettings::DEFAULT };
    let engine = Engine::start(decoder(1), settings).unwrap();
    let prompt = |token: u32| Prompt { ids: vec![token; 30], read: Read::Next(vec![1]) };
    let pending: Vec<_> = (0..2).map(|token| submit(&engine, Lane::Train, &[prompt(token)])).collect();
    assert!(pending.into_iter().all(|pending| pending.wait_blocking().is_ok()));
    let train = submit(&engine, Lane::Train, &[prompt(5)]);
    let guard = submit(&engine, Lane::Guard, &[prompt(6)]);
    assert!(guard.wait_blocking().is_ok() && train.wait_blocking().is_ok());
    assert_eq!(engine.stats().chunks, 3, "two pieces of work ran together, guard work by itself, then the rest");
}
