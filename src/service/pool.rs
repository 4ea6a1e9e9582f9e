//! The threads that make prompts and token ids, so that the next batch is ready while the model runs: not the async
//! runtime's, which must stay free to answer, and in the same order of lanes as the model.

use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use tokio::sync::oneshot;

use super::{ErrorCode, JudgeError, Lane};

type Task = Box<dyn FnOnce() + Send>;

/// A few threads and their queue. The threads end when it is dropped.
pub(super) struct Pool {
    queue: Arc<Queue>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    waiting: [BTreeMap<u64, Task>; 3],
    next: u64,
    closed: bool,
}

impl Pool {
    /// Starts `threads` threads, at least two: the first takes guard work only.
    pub fn start(threads: usize) -> io::Result<Self> {
        let mut pool = Self { queue: Arc::default(), threads: Vec::new() };
        for index in 0..threads.max(2) {
            let queue = Arc::clone(&pool.queue);
            let lanes = if index == 0 { &Lane::ALL[..1] } else { &Lane::ALL[..] };
            let thread = Builder::new().name(format!("prepare-{index}")).spawn(move || {
                while let Some(task) = queue.take(lanes) {
                    task();
                }
            })?;
            pool.threads.push(thread);
        }
        Ok(pool)
    }

    /// Runs `job` on one of the threads, more urgent lanes first. When the future is dropped, a job that has not started
    /// never does, and one that has can tell by its argument that nobody waits for it any more.
    ///
    /// # Errors
    /// [`ErrorCode::Internal`] when the job panicked.
    pub async fn run<T: Send + 'static>(
        &self,
        lane: Lane,
        job: impl FnOnce(&dyn Fn() -> bool) -> T + Send + 'static,
    ) -> Result<T, JudgeError> {
        let (reply, answer) = oneshot::channel();
        let task = move || {
            let wanted = || !reply.is_closed();
            if let Ok(done) = catch_unwind(AssertUnwindSafe(|| job(&wanted))) {
                // Whoever waited may just have gone away.
                let _ = reply.send(done);
            }
        };
        let _place = self.queue.push(lane, Box::new(task));
        answer.await.map_err(|_| {
            tracing::error!("a request could not be prepared: its job panicked");
            JudgeError::new(ErrorCode::Internal, "the judge failed on this request")
        })
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.queue.lock().closed = true;
        self.queue.arrived.notify_all();
        for thread in self.threads.drain(..) {
            // Its jobs' panics were reported to those who waited.
            let _ = thread.join();
        }
    }
}

impl Queue {
    fn push(&self, lane: Lane, task: Task) -> Place<'_> {
        let mut state = self.lock();
        let id = state.next;
        state.next += 1;
        state.waiting[lane as usize].insert(id, task);
        drop(state);
        // All: the one that a single call would wake may not take this lane.
        self.arrived.notify_all();
        Place { queue: self, lane, id }
    }

    /// The next task of `lanes`; None when the pool ends.
    fn take(&self, lanes: &[Lane]) -> Option<Task> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some((_, task)) = lanes.iter().find_map(|lane| state.waiting[*lane as usize].pop_first()) {
                return Some(task);
            }
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in the queue, left when dropped.
struct Place<'a> {
    queue: &'a Queue,
    lane: Lane,
    id: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let task = self.queue.lock().waiting[self.lane as usize].remove(&self.id);
        // Outside the lock: it may hold a large request.
        drop(task);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use std::sync::Barrier;
    use std::sync::mpsc;

    use super::*;

    /// Two threads, of which the one for all lanes is held until the barrier is met.
    async fn held(pool: &Pool, lane: Lane) -> Arc<Barrier> {
        let barrier = Arc::new(Barrier::new(2));
        let (started, wait) = oneshot::channel();
        let queue = Arc::clone(&pool.queue);
        let theirs = Arc::clone(&barrier);
        let task: Task = Box::new(move || {
            started.send(()).unwrap();
            theirs.wait();
        });
        // The place is kept: dropping it takes the task out.
        std::mem::forget(queue.push(lane, task));
        wait.await.unwrap();
        barrier
    }

    #[tokio::test]
    async fn a_guard_job_runs_while_a_long_one_of_another_lane_holds_the_other_thread() {
        let pool = Pool::start(2).unwrap();
        let held = held(&pool, Lane::Train).await;
        assert_eq!(pool.run(Lane::Guard, |_| 7).await.unwrap(), 7);
        held.wait();
    }

    #[tokio::test]
    async fn waiting_jobs_run_by_lane_and_one_that_nobody_waits_for_never_starts() {
        let pool = Pool::start(2).unwrap();
        let held = held(&pool, Lane::Train).await;
        let (ran, order) = mpsc::channel();
        let job = |name: &'static str| {
            let ran = ran.clone();
            move |_: &dyn Fn() -> bool| ran.send(name).unwrap()
        };
        let mut batch = Box::pin(pool.run(Lane::Batch, job("batch")));
        let mut dropped = Box::pin(pool.run(Lane::Train, job("dropped")));
        let mut train = Box::pin(pool.run(Lane::Train, job("train")));
        for future in [&mut batch, &mut dropped, &mut train] {
            assert!(futures_poll(future).await.is_none());
        }
        drop(dropped);
        held.wait();
        batch.await.unwrap();
        train.await.unwrap();
        assert_eq!(order.try_iter().collect::<Vec<_>>(), ["train", "batch"]);
    }

    #[tokio::test]
    async fn a_job_learns_that_nobody_waits_for_it() {
        let pool = Pool::start(2).unwrap();
        let (started, wait) = oneshot::channel();
        let (leave, left) = mpsc::channel();
        let (told, tell) = mpsc::channel();
        let mut job = Box::pin(pool.run(Lane::Guard, move |wanted| {
            assert!(wanted());
            started.send(()).unwrap();
            left.recv().unwrap();
            told.send(wanted()).unwrap();
        }));
        assert!(futures_poll(&mut job).await.is_none());
        wait.await.unwrap();
        drop(job);
        leave.send(()).unwrap();
        assert!(!tokio::task::spawn_blocking(move || tell.recv().unwrap()).await.unwrap());
    }

    #[tokio::test]
    async fn a_panic_is_an_error_of_its_own_call_and_the_thread_goes_on() {
        let pool = Pool::start(2).unwrap();
        for _ in 0..4 {
            let error = pool.run(Lane::Train, |_| -> u8 { panic!("as asked") }).await.unwrap_err();
            assert_eq!(error.code, ErrorCode::Internal);
        }
        assert_eq!(pool.run(Lane::Train, |_| 7).await.unwrap(), 7);
    }

    /// Polls once.
    async fn futures_poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        let mut future = std::pin::Pin::new(future);
        std::future::poll_fn(|context| match future.as_mut().poll(context) {
            std::task::Poll::Ready(output) => std::task::Poll::Ready(Some(output)),
            std::task::Poll::Pending => std::task::Poll::Ready(None),
        })
        .await
    }
}
