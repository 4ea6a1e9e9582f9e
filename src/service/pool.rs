//! The threads that make prompts and token ids, so that the next batch is ready while the model runs: not the async
//! runtime's, which must stay free to answer, and in the same order of lanes as the model.
//!
//! A job is a future that gives its thread up at every [`pass`]: the next slice goes to the most urgent lane, and in a
//! lane to each job in turn, so that a group of ten thousand does not hold up the one that comes after it.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::{Builder, JoinHandle};

use tokio::sync::oneshot;

use super::Lane;
use crate::telemetry::catalogue::PREPARE_WAITING;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A few threads and their queue. The threads end when it is dropped.
pub(super) struct Pool {
    queue: Arc<Queue>,
    threads: Vec<JoinHandle<()>>,
}

/// Why a job was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PoolError {
    /// So many jobs wait in the lane already; nothing was done.
    Full(usize),
    Panicked,
}

struct Queue {
    state: Mutex<State>,
    arrived: Condvar,
    /// Jobs that may wait in a lane.
    limit: usize,
}

#[derive(Default)]
struct State {
    /// By number, which is the order of service in a lane.
    waiting: [BTreeMap<u64, Job>; 3],
    /// The number under which each job that somebody waits for waits, or waited before its slice.
    numbers: HashMap<u64, u64>,
    next: u64,
    closed: bool,
}

/// What is left of a job between its slices.
struct Job {
    id: u64,
    lane: Lane,
    task: Task,
}

/// Gives the thread up to others; to be called wherever a job may be interrupted. A job waits for nothing else.
pub(super) async fn pass() {
    let mut passed = false;
    std::future::poll_fn(|_| if std::mem::replace(&mut passed, true) { Poll::Ready(()) } else { Poll::Pending }).await;
}

impl Pool {
    /// Starts `threads` threads, at least two: the first takes guard work only. `limit` jobs may wait in a lane.
    pub fn start(threads: usize, limit: usize) -> io::Result<Self> {
        let queue = Arc::new(Queue { state: Mutex::default(), arrived: Condvar::new(), limit });
        let mut pool = Self { queue, threads: Vec::new() };
        for index in 0..threads.max(2) {
            let queue = Arc::clone(&pool.queue);
            let lanes = if index == 0 { &Lane::ALL[..1] } else { &Lane::ALL[..] };
            let thread = Builder::new().name(format!("prepare-{index}")).spawn(move || {
                let mut unfinished = None;
                while let Some(job) = queue.take(lanes, unfinished) {
                    unfinished = slice(job);
                }
            })?;
            pool.threads.push(thread);
        }
        Ok(pool)
    }

    /// Runs `job` on the threads, more urgent lanes first. When the future is dropped, so is the job: at once if it
    /// waits, else after the slice that it is in.
    pub async fn run<T: Send + 'static>(
        &self,
        lane: Lane,
        job: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, PoolError> {
        let (reply, answer) = oneshot::channel();
        let task = async move {
            let done = job.await;
            // Whoever waited may just have gone away.
            let _ = reply.send(done);
        };
        let _place = self.queue.push(lane, Box::pin(task))?;
        answer.await.map_err(|_| PoolError::Panicked)
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

/// Runs a job up to its next [`pass`]; gives it back if it is not done.
fn slice(mut job: Job) -> Option<Job> {
    let poll = || job.task.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    match catch_unwind(AssertUnwindSafe(poll)) {
        Ok(Poll::Pending) => Some(job),
        // Dropping the job after a panic tells whoever waits for it.
        Ok(Poll::Ready(())) | Err(_) => None,
    }
}

impl Queue {
    fn push(&self, lane: Lane, task: Task) -> Result<Place<'_>, PoolError> {
        let mut state = self.lock();
        let waiting = state.waiting[lane as usize].len();
        if waiting >= self.limit {
            drop(state);
            return Err(PoolError::Full(waiting));
        }
        let id = state.next;
        state.insert(Job { id, lane, task });
        drop(state);
        // All: the one that a single call would wake may not take this lane.
        self.arrived.notify_all();
        Ok(Place { queue: self, lane, id })
    }

    /// The next job of `lanes`, after `unfinished` took its place behind those that wait; None when the pool ends.
    fn take(&self, lanes: &[Lane], unfinished: Option<Job>) -> Option<Job> {
        let mut state = self.lock();
        let mut dropped = None;
        if let Some(job) = unfinished {
            if state.numbers.contains_key(&job.id) {
                state.insert(job);
            } else {
                dropped = Some(job);
            }
        }
        if dropped.is_some() {
            drop(state);
            // Outside the lock: it may hold a large request.
            drop(dropped);
            state = self.lock();
        }
        loop {
            if state.closed {
                return None;
            }
            if let Some((_, job)) = lanes.iter().find_map(|lane| state.waiting[*lane as usize].pop_first()) {
                state.report(job.lane);
                return Some(job);
            }
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Puts a job at the end of its lane.
    fn insert(&mut self, job: Job) {
        let number = self.next;
        self.next += 1;
        let lane = job.lane;
        self.numbers.insert(job.id, number);
        self.waiting[lane as usize].insert(number, job);
        self.report(lane);
    }

    fn report(&self, lane: Lane) {
        PREPARE_WAITING.set([lane.name()], self.waiting[lane as usize].len() as f64);
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
        let mut state = self.queue.lock();
        let number = state.numbers.remove(&self.id);
        let job = number.and_then(|number| state.waiting[self.lane as usize].remove(&number));
        state.report(self.lane);
        drop(state);
        // Outside the lock: it may hold a large request.
        drop(job);
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
