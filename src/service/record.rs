//! Whoever keeps a record of calls: told of each one after it was judged, and before its verdicts are handed out.

use std::pin::Pin;
use std::sync::Arc;

use super::{CacheControl, JudgeError, Lane, OptionOverrides, Scored};
use crate::prism::{Group, Options, Provenance, Shaping};

/// Resolves when a recorder lets the verdicts of a call go, or refuses to.
pub type Recording<'a> = Pin<Box<dyn Future<Output = Result<(), JudgeError>> + Send + 'a>>;

/// Keeps a record of calls.
pub trait Recorder: Send + Sync {
    /// Takes one call. Ready at once where the call has no verdict: errors wait for nobody.
    ///
    /// # Errors
    /// The verdicts may not be handed out: the caller gets this error in their place.
    fn record(&self, finished: Finished) -> Recording<'_>;

    /// Copies what it has counted to the metrics.
    fn observe(&self);
}

/// A call that came to its end: what was asked, and what is answered.
#[derive(Clone, Debug)]
pub struct Finished {
    pub request_id: String,
    pub tenant: String,
    pub method: &'static str,
    pub lane: Lane,
    pub cache: CacheControl,
    pub group: Arc<Group>,
    /// In a dialogue, for each candidate how many turns of the group's context come before it.
    pub after: Option<Arc<[usize]>>,
    /// The options as the caller gave them, and as they were in force.
    pub overrides: OptionOverrides,
    pub options: Options,
    pub judge: Provenance,
    /// The spelling of the three letters at the answer slot.
    pub answer_slot: [&'static str; 3],
    /// How rewards are made of the verdicts.
    pub shaping: Option<Shaping>,
    pub scored: Scored,
}

impl Finished {
    /// Whether any candidate has a verdict.
    pub fn has_verdict(&self) -> bool {
        self.scored.as_ref().is_ok_and(|results| results.iter().any(Result::is_ok))
    }
}
