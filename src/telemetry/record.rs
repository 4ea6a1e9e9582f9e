//! What is known of one call while it is served. The transport makes the record, the rooms below write into it.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::catalogue::STAGE_SECONDS;
use super::trace::CallSpan;

/// Where a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Stage {
    /// Read and checked; nothing was begun.
    Arrival,
    /// Prompts and tokens are made, or wait to be.
    Prepare,
    /// Waits for the model.
    Queue,
    /// In the model.
    Model,
    /// Waits for a call that computes the same.
    Follow,
    /// Anything after.
    Other,
}

impl Stage {
    const ALL: [Self; 6] = [Self::Arrival, Self::Prepare, Self::Queue, Self::Model, Self::Follow, Self::Other];

    pub fn name(self) -> &'static str {
        match self {
            Self::Arrival => "arrival",
            Self::Prepare => "prepare",
            Self::Queue => "queue",
            Self::Model => "model",
            Self::Follow => "follow",
            Self::Other => "other",
        }
    }
}

/// A handle to what is known of a call; clones share it. The default one is nobody's.
#[derive(Clone, Debug, Default)]
pub struct CallRecord(Arc<Facts>);

#[derive(Debug, Default)]
struct Facts {
    stage: AtomicU8,
    lane: OnceLock<&'static str>,
    shaping: OnceLock<&'static str>,
    request: OnceLock<String>,
    candidates: AtomicU64,
    cached: AtomicU64,
    prompt_tokens: AtomicU64,
    computed_tokens: AtomicU64,
    /// Nanoseconds in stages that have a name.
    spent: AtomicU64,
    span: CallSpan,
    /// The call that this is a part of.
    whole: Option<CallRecord>,
}

/// Sizes of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    pub candidates: u64,
    /// Candidates that nothing was computed for.
    pub cached: u64,
    pub prompt_tokens: u64,
    pub computed_tokens: u64,
}

impl CallRecord {
    pub(super) fn of(span: CallSpan) -> Self {
        Self(Arc::new(Facts { span, ..Facts::default() }))
    }

    /// The record of a part of this call that is judged by itself, in a lane and with times of its own. Where it is and
    /// what it takes counts for the call too.
    pub fn part(&self) -> Self {
        Self(Arc::new(Facts { whole: Some(self.clone()), ..Facts::default() }))
    }

    pub fn enter(&self, stage: Stage) {
        self.0.stage.store(stage as u8, Ordering::Relaxed);
        if let Some(whole) = &self.0.whole {
            whole.enter(stage);
        }
    }

    pub fn stage(&self) -> Stage {
        Stage::ALL.get(usize::from(self.0.stage.load(Ordering::Relaxed))).copied().unwrap_or(Stage::Other)
    }

    /// Says in which lane the call is; the first time counts, and of several parts the first one.
    pub fn set_lane(&self, lane: &'static str) {
        let _ = self.0.lane.set(lane);
        if let Some(whole) = &self.0.whole {
            whole.set_lane(lane);
        }
    }

    pub fn lane(&self) -> &'static str {
        self.0.lane.get().copied().unwrap_or("none")
    }

    /// Says how rewards are made, in a word from a fixed list; as [`CallRecord::set_lane`].
    pub fn set_shaping(&self, name: &'static str) {
        let _ = self.0.shaping.set(name);
        if let Some(whole) = &self.0.whole {
            whole.set_shaping(name);
        }
    }

    /// Empty where there is no reward.
    pub fn shaping(&self) -> &'static str {
        self.0.shaping.get().copied().unwrap_or_default()
    }

    /// Remembers the digest of the client's own id of the call, by which the client finds it in the log; never the id.
    pub fn set_request_id(&self, id: &str) {
        use sha2::{Digest as _, Sha256};
        if !id.is_empty() {
            let digest = Sha256::digest(id.as_bytes());
            let _ = self.0.request.set(digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect());
        }
    }

    /// The first 16 hexadecimal digits of the id's SHA-256; empty without an id.
    pub fn request(&self) -> &str {
        self.0.request.get().map_or("", String::as_str)
    }

    /// Files time that the call spent in a stage, one of the label `stage`.
    pub fn spent(&self, stage: &'static str, time: Duration) {
        STAGE_SECONDS.record([stage, self.lane()], time.as_secs_f64());
        self.0.spent.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Files what is left of the time of a whole call, or of a part. One that spent none in any stage was not computed.
    pub fn spent_outside(&self, whole: Duration) {
        let inside = Duration::from_nanos(self.0.spent.load(Ordering::Relaxed));
        if !inside.is_zero() {
            STAGE_SECONDS.record(["outside", self.lane()], whole.saturating_sub(inside).as_secs_f64());
        }
    }

    pub fn add(&self, sizes: Sizes) {
        let add = |count: &AtomicU64, more| count.fetch_add(more, Ordering::Relaxed);
        add(&self.0.candidates, sizes.candidates);
        add(&self.0.cached, sizes.cached);
        add(&self.0.prompt_tokens, sizes.prompt_tokens);
        add(&self.0.computed_tokens, sizes.computed_tokens);
        if let Some(whole) = &self.0.whole {
            whole.add(sizes);
        }
    }

    pub fn sizes(&self) -> Sizes {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Sizes {
            candidates: read(&self.0.candidates),
            cached: read(&self.0.cached),
            prompt_tokens: read(&self.0.prompt_tokens),
            computed_tokens: read(&self.0.computed_tokens),
        }
    }

    /// The call's span; an empty one where it is not traced.
    pub fn span(&self) -> &CallSpan {
        self.0.whole.as_ref().map_or(&self.0.span, CallRecord::span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::labels::END_STAGE;

    #[test]
    fn every_stage_is_a_value_of_its_label() {
        let names: Vec<&str> = Stage::ALL.iter().map(|stage| stage.name()).collect();
        assert_eq!(names, END_STAGE.values);
        for (number, stage) in Stage::ALL.into_iter().enumerate() {
            assert_eq!(stage as usize, number);
        }
    }

    #[test]
    fn the_parts_of_a_call_add_up_to_it_and_have_lanes_of_their_own() {
        let call = CallRecord::default();
        let sizes = |count| Sizes { candidates: count, cached: 0, prompt_tokens: 10 * count, computed_tokens: count };
        let parts = [("guard", 1), ("batch", 2)].map(|(lane, count)| {
            let part = call.part();
            part.set_lane(lane);
            part.enter(Stage::Queue);
            part.add(sizes(count));
            (part.lane(), part.sizes())
        });
        assert_eq!(parts, [("guard", sizes(1)), ("batch", sizes(2))]);
        assert_eq!((call.lane(), call.stage(), call.sizes()), ("guard", Stage::Queue, sizes(3)));
        assert_eq!((call.shaping(), call.request()), ("", ""));
    }

    #[test]
    fn an_id_is_remembered_by_its_digest_alone() {
        let record = CallRecord::default();
        record.set_request_id("abc");
        // The first bytes of SHA-256("abc"), FIPS 180-4.
        assert_eq!(record.request(), "ba7816bf8f01cfea");
        assert!(!format!("{record:?}").contains("abc"));
    }
}
