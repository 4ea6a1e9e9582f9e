//! The queue in front of the model: three lanes, each bounded in tokens from admission to answer.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::{Answer, Cancel, EngineError, Lane, LaneStats, Stop, Work};

/// Bounds of the time after which a refused call may try again.
const SHORTEST_HINT: Duration = Duration::from_millis(10);
const LONGEST_HINT: Duration = Duration::from_secs(60);

/// Why work was not taken: its lane is full. Nothing was done; try again after `retry_after`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the {} lane is full: {outstanding} of {limit} tokens in {pieces} calls are waiting or running and this call has \
     {wanted}; try again in {} ms",
    lane.name(),
    retry_after.as_millis()
)]
pub struct Overloaded {
    pub lane: Lane,
    /// Tokens of the refused call.
    pub wanted: usize,
    /// Tokens that wait or run in the lane.
    pub outstanding: usize,
    /// Calls that wait or run in the lane.
    pub pieces: usize,
    /// Tokens that the lane holds at most.
    pub limit: usize,
    /// When there should be room, at the model's speed so far, for this call and those that were refused before it.
    pub retry_after: Duration,
}

/// One piece of work in the queue or in the model's tree.
pub(super) struct Job {
    pub work: Work,
    pub lane: Lane,
    pub cancel: Cancel,
    pub arrived: Instant,
    pub reply: oneshot::Sender<Answer>,
}

impl Job {
    /// Whether nobody waits for the answer any more.
    pub fn stop(&self) -> Option<Stop> {
        if self.reply.is_closed() { Some(Stop::Cancelled) } else { self.cancel.check().err() }
    }
}

/// What the lanes hold.
#[derive(Default)]
struct State {
    waiting: [BTreeMap<u64, Job>; 3],
    /// Tokens admitted and not yet answered.
    outstanding: [usize; 3],
    /// Permits that hold them.
    pieces: [usize; 3],
    /// Tokens that were told to come back and, as far as is known, have not: later refusals are sent behind them.
    sent_away: [usize; 3],
    next: u64,
    closed: bool,
}

/// Shared by callers and the model thread.
pub(super) struct Queue {
    state: Mutex<State>,
    arrived: Condvar,
    limits: [usize; 3],
}

impl Queue {
    pub fn new(limits: [usize; 3]) -> Self {
        Self { state: Mutex::default(), arrived: Condvar::new(), limits }
    }

    /// Takes room for `tokens`, or says that there is none. `rate` is the model's speed in tokens a second.
    pub fn admit(self: &Arc<Self>, lane: Lane, tokens: usize, rate: f64) -> Result<Permit, Overloaded> {
        let mut permit = Permit { queue: Arc::clone(self), lane, tokens: 0 };
        let mut state = self.lock();
        state.pieces[lane as usize] += 1;
        match self.grow(&mut state, &mut permit, tokens, rate) {
            Ok(()) => Ok(permit),
            Err(overloaded) => {
                drop(state);
                Err(overloaded)
            }
        }
    }

    /// Sends a call away whose permit is still held, as if its lane were full.
    pub fn refuse(&self, lane: Lane, tokens: usize, rate: f64) -> Overloaded {
        let mut state = self.lock();
        let others = state.outstanding[lane as usize].saturating_sub(tokens);
        self.send_away(&mut state, lane, (tokens, others, tokens.min(others)), rate)
    }

    /// Puts admitted work in its lane; the permit then holds the work's own count of tokens.
    pub fn push(
        self: &Arc<Self>,
        mut permit: Permit,
        work: Work,
        cancel: Cancel,
        rate: f64,
    ) -> Result<Pending, EngineError> {
        let tokens = work.tokens();
        let (reply, answer) = oneshot::channel();
        let mut state = self.lock();
        if state.closed {
            drop(state);
            return Err(ended());
        }
        if let Err(overloaded) = self.grow(&mut state, &mut permit, tokens, rate) {
            drop(state);
            return Err(EngineError::Overloaded(overloaded));
        }
        let (lane, id) = (permit.lane, state.next);
        state.next += 1;
        state.waiting[lane as usize].insert(id, Job { work, lane, cancel, arrived: Instant::now(), reply });
        drop(state);
        self.arrived.notify_one();
        Ok(Pending { answer, permit, id })
    }

    /// Sets what a permit holds. A lane takes one piece of work that is larger than the lane, if it is alone.
    fn grow(&self, state: &mut State, permit: &mut Permit, tokens: usize, rate: f64) -> Result<(), Overloaded> {
        let lane = permit.lane as usize;
        let others = state.outstanding[lane] - permit.tokens;
        if others > 0 && others + tokens > self.limits[lane] {
            let excess = (others + tokens - self.limits[lane]).min(others);
            return Err(self.send_away(state, permit.lane, (tokens, others, excess), rate));
        }
        // Whoever is let in may be one that was sent away; in an empty lane they all have come or gone.
        let sent_away =
            if others == 0 { 0 } else { state.sent_away[lane].saturating_sub(tokens - permit.tokens.min(tokens)) };
        state.sent_away[lane] = sent_away;
        state.outstanding[lane] = others + tokens;
        permit.tokens = tokens;
        Ok(())
    }

    /// Tells a call of so many tokens, beside so many of others, to come back when `excess` tokens are done. Its permit is
    /// still counted.
    fn send_away(
        &self,
        state: &mut State,
        lane: Lane,
        (wanted, outstanding, excess): (usize, usize, usize),
        rate: f64,
    ) -> Overloaded {
        let index = lane as usize;
        let wait = Duration::from_secs_f64((excess + state.sent_away[index]) as f64 / rate.max(1.0));
        if wait < LONGEST_HINT {
            state.sent_away[index] += wanted;
        }
        Overloaded {
            lane,
            wanted,
            outstanding,
            pieces: state.pieces[index].saturating_sub(1),
            limit: self.limits[index],
            retry_after: wait.clamp(SHORTEST_HINT, LONGEST_HINT),
        }
    }

    /// What the model takes next, guard work first: dead jobs, which are only to be answered, and of each lane as much as
    /// fits beside its `active` tokens into `full`. Guard work always fits, and anything does where nothing of its lane
    /// is active. Blocks while nothing is active and nothing waits. None when the queue is closed.
    pub fn take(&self, mut active: [usize; 3], full: usize, delay: Duration) -> Option<Vec<Job>> {
        let mut state = self.lock();
        if active == [0; 3] {
            while state.is_empty() && !state.closed {
                state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            state = self.linger(state, delay, full);
        }
        if state.closed {
            return None;
        }
        let mut jobs = Vec::new();
        for lane in Lane::ALL {
            let active = &mut active[lane as usize];
            let waiting = &mut state.waiting[lane as usize];
            while let Some(first) = waiting.first_entry() {
                let tokens = first.get().work.tokens();
                let dead = first.get().stop().is_some();
                if !dead && lane != Lane::Guard && *active > 0 && *active + tokens > full {
                    break;
                }
                *active += if dead { 0 } else { tokens };
                jobs.push(first.remove());
            }
        }
        Some(jobs)
    }

    /// Waits for company until `delay` after the first arrival, unless guard work or a full batch is here.
    fn linger<'a>(&self, mut state: MutexGuard<'a, State>, delay: Duration, full: usize) -> MutexGuard<'a, State> {
        loop {
            let first = state.waiting.iter().filter_map(|lane| lane.values().next()).map(|job| job.arrived).min();
            let left = first.map_or(Duration::ZERO, |first| delay.saturating_sub(first.elapsed()));
            let tokens: usize = state.waiting.iter().flat_map(BTreeMap::values).map(|job| job.work.tokens()).sum();
            if left.is_zero() || state.closed || tokens >= full || !state.waiting[Lane::Guard as usize].is_empty() {
                return state;
            }
            state = self.arrived.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends the model thread's wait and fails what waits for it.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        self.arrived.notify_all();
        drop(waiting);
    }

    /// Tokens outstanding by lane.
    pub fn outstanding(&self) -> [usize; 3] {
        self.lock().outstanding
    }

    /// What the lanes hold now.
    pub fn lanes(&self) -> [LaneStats; 3] {
        let state = self.lock();
        Lane::ALL.map(|lane| {
            let lane = lane as usize;
            let oldest = state.waiting[lane].first_key_value().map(|(_, job)| job.arrived.elapsed());
            LaneStats {
                tokens: state.outstanding[lane],
                pieces: state.pieces[lane],
                limit: self.limits[lane],
                oldest: oldest.unwrap_or_default(),
            }
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_empty(&self) -> bool {
        self.waiting.iter().all(BTreeMap::is_empty)
    }
}

/// Room in a lane, given back when dropped.
pub struct Permit {
    queue: Arc<Queue>,
    lane: Lane,
    tokens: usize,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        state.outstanding[self.lane as usize] -= self.tokens;
        state.pieces[self.lane as usize] -= 1;
    }
}

/// An answer to come. Dropping it takes the work out of the queue, or stops it at the next chunk.
pub struct Pending {
    answer: oneshot::Receiver<Answer>,
    permit: Permit,
    id: u64,
}

impl Pending {
    /// The answer; an error if the model thread ended before it.
    pub async fn wait(mut self) -> Answer {
        (&mut self.answer).await.unwrap_or_else(|_| Err(ended()))
    }

    /// The same, for callers outside an async runtime.
    pub fn wait_blocking(mut self) -> Answer {
        let (_, gone) = oneshot::channel();
        std::mem::replace(&mut self.answer, gone).blocking_recv().unwrap_or_else(|_| Err(ended()))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let job = self.permit.queue.lock().waiting[self.permit.lane as usize].remove(&self.id);
        drop(job);
    }
}

fn ended() -> EngineError {
    EngineError::Failed("it ended before it answered".to_owned())
}

/// A piece of work outside of any queue, and what it is answered.
pub(super) fn job(work: Work, cancel: &Cancel) -> (Job, impl FnOnce() -> Answer) {
    let (reply, mut answer) = oneshot::channel();
    let job = Job { work, lane: Lane::Batch, cancel: cancel.clone(), arrived: Instant::now(), reply };
    (job, move || answer.try_recv().unwrap_or_else(|_| Err(ended())))
}
