//! Who gets the threads, in which order.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Barrier;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;

const LIMIT: usize = 100;

/// Two threads, of which the one for all lanes is held until the barrier is met.
async fn held(pool: &Pool, lane: Lane) -> Arc<Barrier> {
    let barrier = Arc::new(Barrier::new(2));
    let (started, wait) = oneshot::channel();
    let theirs = Arc::clone(&barrier);
    let task: Task = Box::pin(async move {
        started.send(()).unwrap();
        theirs.wait();
    });
    // The place is kept: dropping it takes the job out.
    std::mem::forget(pool.queue.push(lane, task).unwrap());
    wait.await.unwrap();
    barrier
}

/// A job of so many slices, each of which is told.
async fn slices(name: &'static str, count: usize, ran: Sender<(&'static str, usize)>) {
    for slice in 0..count {
        if slice > 0 {
            pass().await;
        }
        ran.send((name, slice)).unwrap();
    }
}

fn order(ran: &Receiver<(&'static str, usize)>) -> Vec<String> {
    ran.try_iter().map(|(name, slice)| format!("{name}{slice}")).collect()
}

/// Polls once: what is polled waits in the queue from then on.
async fn queue<F: Future + Unpin>(future: &mut F) {
    let mut future = Pin::new(future);
    let pending = std::future::poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_pending())).await;
    assert!(pending);
}

#[tokio::test]
async fn a_guard_job_runs_while_a_long_one_of_another_lane_holds_the_other_thread() {
    let pool = Pool::start(2, LIMIT).unwrap();
    let held = held(&pool, Lane::Train).await;
    assert_eq!(pool.run(Lane::Guard, async { 7 }).await, Ok(7));
    held.wait();
}

#[tokio::test]
async fn jobs_of_a_lane_take_turns_and_a_more_urgent_lane_goes_before_them() {
    let pool = Pool::start(2, LIMIT).unwrap();
    let held = held(&pool, Lane::Train).await;
    let (ran, told) = channel();
    let mut batch = Box::pin(pool.run(Lane::Batch, slices("batch", 2, ran.clone())));
    let mut huge = Box::pin(pool.run(Lane::Train, slices("huge", 4, ran.clone())));
    let mut small = Box::pin(pool.run(Lane::Train, slices("small", 1, ran.clone())));
    let mut middle = Box::pin(pool.run(Lane::Train, slices("middle", 2, ran.clone())));
    for job in [&mut batch, &mut huge, &mut small, &mut middle] {
        queue(job).await;
    }
    held.wait();
    for job in [batch, huge, small, middle] {
        assert_eq!(job.await, Ok(()));
    }
    let expected = ["huge0", "small0", "middle0", "huge1", "middle1", "huge2", "huge3", "batch0", "batch1"];
    assert_eq!(order(&told), expected);
}

#[tokio::test]
async fn a_job_that_comes_while_a_huge_one_runs_has_its_turn_after_one_slice() {
    let pool = Pool::start(2, LIMIT).unwrap();
    let (ran, told) = channel();
    let (reached, wait) = oneshot::channel();
    let (go, may_go) = channel::<()>();
    let huge = {
        let ran = ran.clone();
        async move {
            reached.send(()).unwrap();
            may_go.recv().unwrap();
            pass().await;
            slices("huge", 1000, ran).await;
        }
    };
    let mut huge = Box::pin(pool.run(Lane::Train, huge));
    queue(&mut huge).await;
    wait.await.unwrap();
    let mut late = Box::pin(pool.run(Lane::Train, slices("late", 1, ran.clone())));
    queue(&mut late).await;
    go.send(()).unwrap();
    assert_eq!((late.await, huge.await), (Ok(()), Ok(())));
    assert_eq!(order(&told)[..2], ["late0", "huge0"]);
}

#[tokio::test]
async fn a_job_that_nobody_waits_for_never_starts_and_one_that_runs_ends_after_its_slice() {
    let pool = Pool::start(2, LIMIT).unwrap();
    let thread = held(&pool, Lane::Train).await;
    let (ran, told) = channel();
    let mut waiting = Box::pin(pool.run(Lane::Train, slices("waiting", 1, ran.clone())));
    queue(&mut waiting).await;
    drop(waiting);
    thread.wait();

    let (reached, wait) = oneshot::channel();
    let (go, may_go) = channel::<()>();
    let mut running = Box::pin(pool.run(Lane::Train, {
        let ran = ran.clone();
        async move {
            reached.send(()).unwrap();
            may_go.recv().unwrap();
            pass().await;
            ran.send(("running", 1)).unwrap();
        }
    }));
    queue(&mut running).await;
    wait.await.unwrap();
    drop(running);
    go.send(()).unwrap();
    drop(ran);
    // The channel ends when no job is left that could send.
    assert!(told.recv().is_err());
    assert_eq!(pool.run(Lane::Train, async { 7 }).await, Ok(7));
}

#[tokio::test]
async fn a_lane_that_is_full_refuses_at_once_and_the_others_do_not() {
    let pool = Pool::start(2, 1).unwrap();
    let held = held(&pool, Lane::Train).await;
    let mut first = Box::pin(pool.run(Lane::Train, async { 1 }));
    queue(&mut first).await;
    assert_eq!(pool.run(Lane::Train, async { 2 }).await, Err(PoolError::Full(1)));
    assert_eq!(pool.run(Lane::Guard, async { 3 }).await, Ok(3));
    held.wait();
    assert_eq!(first.await, Ok(1));
    assert_eq!(pool.run(Lane::Train, async { 4 }).await, Ok(4));
}

#[tokio::test]
async fn a_panic_is_an_error_of_its_own_call_and_the_thread_goes_on() {
    let pool = Pool::start(2, LIMIT).unwrap();
    async fn fail() -> u8 {
        pass().await;
        panic!("as asked")
    }
    for _ in 0..4 {
        assert_eq!(pool.run(Lane::Train, fail()).await, Err(PoolError::Panicked));
    }
    assert_eq!(pool.run(Lane::Train, async { 7 }).await, Ok(7));
}
