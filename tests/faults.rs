//! What the engine does when its parts fail or its callers go. Fail points, which only tests compile in, stop the model
//! thread where a test wants it or make it panic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

use fail::FailScenario;
use prism_judge::engine::{
    Answer, Cancel, Engine, EngineError, EngineSettings, Health, Lane, Pending, Prompt, Read, Stop, Work,
};
use support::tiny::{Shape, Tiny};

fn engine(chunk_tokens: usize) -> Engine {
    let settings = EngineSettings { chunk_tokens, ..EngineSettings::DEFAULT };
    Engine::start(Tiny::new(Shape::default(), 4).decoder(2), settings).unwrap()
}

fn prompt(token: u32, tokens: usize) -> Prompt {
    Prompt { ids: vec![token; tokens], read: Read::Next(vec![1]) }
}

fn submit(engine: &Engine, lane: Lane, prompts: Vec<Prompt>, cancel: &Cancel) -> Pending {
    let work: Work = prompts.into_iter().collect();
    let permit = engine.admit(lane, work.tokens()).unwrap();
    engine.submit(permit, work, cancel).unwrap()
}

fn bits(answer: &Answer) -> Vec<u64> {
    let answers = answer.as_ref().unwrap().iter();
    answers.flat_map(|answer| answer.as_ref().unwrap().log_probs.iter().map(|value| value.to_bits())).collect()
}

/// Fail points belong to the process: each test has them for itself, until all that it started has ended.
fn alone() -> FailScenario<'static> {
    FailScenario::setup()
}

/// The model thread stops before every forward pass until the test lets it go on.
struct Gate {
    reached: Receiver<()>,
    go: SyncSender<()>,
}

impl Gate {
    fn close() -> Self {
        let (report, reached) = sync_channel(0);
        let (go, may_go) = sync_channel::<()>(0);
        let may_go = Mutex::new(may_go);
        fail::cfg_callback("engine::forward", move || {
            // A gate that is gone is open.
            if report.send(()).is_ok() {
                let _ = may_go.lock().unwrap_or_else(PoisonError::into_inner).recv();
            }
        })
        .unwrap();
        Self { reached, go }
    }

    /// Waits until the model thread stands before a forward pass.
    fn reached(&self) {
        self.reached.recv().unwrap();
    }

    fn pass(&self) {
        self.go.send(()).unwrap();
    }
}

#[test]
fn guard_work_overtakes_at_the_next_chunk() {
    let _alone = alone();
    let gate = Gate::close();
    let engine = engine(16);
    let burst = submit(&engine, Lane::Train, (0..20).map(|token| prompt(token, 64)).collect(), &Cancel::default());
    gate.reached();
    // One chunk of the burst is on its way when the guard call comes; none comes between the two.
    let guard = submit(&engine, Lane::Guard, vec![prompt(90, 40)], &Cancel::default());
    for _ in 0..4 {
        gate.pass();
        gate.reached();
    }
    assert!(guard.wait_blocking().unwrap()[0].is_ok());
    let stats = engine.stats();
    assert_eq!((stats.chunks, stats.computed_tokens), (4, 16 + 40));
    drop(burst);
    drop(gate);
}

#[test]
fn the_batch_lane_gets_a_chunk_in_eight() {
    let _alone = alone();
    let gate = Gate::close();
    let engine = engine(16);
    let train = submit(&engine, Lane::Train, (0..40).map(|token| prompt(token, 16)).collect(), &Cancel::default());
    gate.reached();
    let batch = submit(&engine, Lane::Batch, vec![prompt(90, 16)], &Cancel::default());
    for _ in 0..8 {
        gate.pass();
        gate.reached();
    }
    assert!(batch.wait_blocking().unwrap()[0].is_ok());
    assert!(engine.stats().chunks <= 8);
    drop(train);
    drop(gate);
}

#[test]
fn guard_calls_that_come_in_step_take_no_turn_of_the_batch_lane() {
    let _alone = alone();
    let gate = Gate::close();
    let engine = engine(16);
    let train = submit(&engine, Lane::Train, (0..40).map(|token| prompt(token, 16)).collect(), &Cancel::default());
    gate.reached();
    let batch = submit(&engine, Lane::Batch, vec![prompt(90, 16)], &Cancel::default());
    let mut chat = Vec::new();
    // A chat that asks again as soon as it has its answer: every other chunk is its.
    for chunk in 0..16 {
        if chunk % 2 == 0 {
            chat.push(submit(&engine, Lane::Guard, vec![prompt(100 + chunk, 16)], &Cancel::default()));
        }
        gate.pass();
        gate.reached();
    }
    assert!(chat.into_iter().all(|guard| guard.wait_blocking().unwrap()[0].is_ok()));
    assert!(batch.wait_blocking().unwrap()[0].is_ok());
    assert!(engine.stats().chunks <= 16);
    drop(train);
    drop(gate);
}

#[test]
fn cancelled_work_costs_one_chunk_at_most_and_gives_its_room_back_at_once() {
    let _alone = alone();
    let gate = Gate::close();
    let chunk = 64;
    let engine = engine(chunk);
    let (gone, left): (Vec<_>, Vec<_>) = (0..2000u32)
        .map(|index| {
            let ids = vec![index % 160, index / 160, 7, 8, 9, 10, 11, 12];
            let prompt = Prompt { ids, read: Read::Next(vec![1]) };
            (index, submit(&engine, Lane::Train, vec![prompt], &Cancel::default()))
        })
        .partition(|(index, _)| index % 2 == 0);
    gate.reached();
    let before = engine.stats().outstanding[Lane::Train as usize];
    assert_eq!(before, 2000 * 8);
    drop(gone);
    assert_eq!(engine.stats().outstanding[Lane::Train as usize], before / 2, "while the model is still in its chunk");
    drop(gate);
    for (index, pending) in left {
        assert!(pending.wait_blocking().unwrap()[0].is_ok(), "{index}");
    }
    let stats = engine.stats();
    assert!(stats.wasted_tokens <= chunk as u64, "{stats:?}");
    assert!(stats.computed_tokens <= 1000 * 8 + chunk as u64, "{stats:?}");
}

#[test]
fn work_is_stopped_between_the_chunks_of_a_prompt() {
    let _alone = alone();
    let gate = Gate::close();
    let engine = engine(16);
    let cancel = Cancel::default();
    let long = submit(&engine, Lane::Train, vec![prompt(3, 160)], &cancel);
    let other = submit(&engine, Lane::Train, vec![prompt(4, 8)], &Cancel::default());
    gate.reached();
    cancel.cancel();
    drop(gate);
    assert_eq!(long.wait_blocking(), Err(EngineError::Stopped(Stop::Cancelled)));
    assert!(other.wait_blocking().unwrap()[0].is_ok());
    let stats = engine.stats();
    assert!(stats.computed_tokens <= 16 + 8 && stats.wasted_tokens <= 16, "{stats:?}");
}

#[test]
fn of_a_chunk_that_panics_only_the_bad_prompt_fails() {
    let _alone = alone();
    let engine = engine(256);
    // No tokenizer gives an id outside its vocabulary.
    let bad = Prompt { ids: vec![1, 2, 1_000_000], read: Read::Next(vec![1]) };
    let expected: Vec<_> = (0..12).map(|token| bits(&engine.run(vec![prompt(token, 9)], &Cancel::default()))).collect();
    for at in [0, 5, 11] {
        // Held until all of it waits, so that it meets in one chunk.
        let gate = Gate::close();
        let first = submit(&engine, Lane::Train, vec![prompt(100, 3)], &Cancel::default());
        gate.reached();
        let mut group: Vec<Prompt> = (0..12).map(|token| prompt(token, 9)).collect();
        group[at] = bad.clone();
        let group = submit(&engine, Lane::Train, group, &Cancel::default());
        let neighbour = submit(&engine, Lane::Train, vec![prompt(11, 9)], &Cancel::default());
        drop(gate);
        assert!(first.wait_blocking().is_ok());
        assert_eq!(bits(&neighbour.wait_blocking()), expected[11]);
        for (index, answer) in group.wait_blocking().unwrap().into_iter().enumerate() {
            if index == at {
                assert!(matches!(answer, Err(EngineError::Failed(_))), "{answer:?}");
            } else {
                assert_eq!(bits(&Ok(vec![answer])), expected[index], "{index} beside {at}");
            }
        }
    }
    assert_eq!(*engine.health().borrow(), Health::Ready, "the thread was never in danger");
}

#[test]
fn a_forward_pass_that_fails_once_leaves_no_trace() {
    let _alone = alone();
    let engine = engine(256);
    let group = || (0..6).map(|token| prompt(token, 12)).collect::<Vec<_>>();
    fail::cfg("engine::forward", "1*panic(a stray fault)").unwrap();
    let answers = engine.run(group(), &Cancel::default());
    fail::remove("engine::forward");
    // Every prompt was tried again, in halves.
    assert_eq!(bits(&answers), bits(&engine.run(group(), &Cancel::default())));
    assert_eq!(engine.stats().outstanding, [0; 3]);
}

#[test]
fn the_thread_restarts_once_and_says_so_and_what_waits_goes_on() {
    let _alone = alone();
    let gate = Gate::close();
    // Work of 40 tokens fills a batch: what comes after it stays in its lane.
    let settings = EngineSettings { chunk_tokens: 16, max_batch_tokens: 40, ..EngineSettings::DEFAULT };
    let engine = Engine::start(Tiny::new(Shape::default(), 4).decoder(2), settings).unwrap();
    let mut health = engine.health();
    let expected = {
        let answer = submit(&engine, Lane::Train, vec![prompt(2, 8)], &Cancel::default());
        gate.reached();
        gate.pass();
        bits(&answer.wait_blocking())
    };
    for state in [Health::Ready, Health::Dead] {
        let in_hand = submit(&engine, Lane::Train, vec![prompt(3, 40)], &Cancel::default());
        gate.reached();
        let waiting = submit(&engine, Lane::Train, vec![prompt(2, 8)], &Cancel::default());
        health.mark_unchanged();
        fail::cfg("engine::step", "1*panic(a fault of the scheduler)").unwrap();
        gate.pass();
        assert!(matches!(in_hand.wait_blocking(), Err(EngineError::Failed(_))));
        if state == Health::Ready {
            gate.reached();
            gate.pass();
            assert_eq!(bits(&waiting.wait_blocking()), expected);
            assert!(health.has_changed().unwrap(), "it was not ready in between");
        } else {
            assert!(matches!(waiting.wait_blocking(), Err(EngineError::Failed(_))));
        }
        assert_eq!(*health.borrow(), state);
        assert_eq!(engine.stats().outstanding, [0; 3]);
    }
    let work = Work::from_iter([prompt(1, 2)]);
    let permit = engine.admit(Lane::Train, 2).unwrap();
    assert!(matches!(engine.submit(permit, work, &Cancel::default()).map(drop), Err(EngineError::Failed(_))));
}
