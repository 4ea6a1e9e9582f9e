//! How one call is served: who waits for it, what it wants of the cache, when it must stop.

use super::{CacheControl, Cancel, Lane};

/// What a call says besides what is judged and how. None of it changes a bit of the verdict.
#[derive(Clone, Debug, Default)]
pub struct Call {
    pub lane: Lane,
    pub cache: CacheControl,
    /// Whose verdicts are shared; calls of different tenants never see what the other one caused. Empty: nobody's.
    pub tenant: String,
    /// What the caller calls this call, for those who look for it later.
    pub request_id: String,
    /// The front end's name of what was called, for example `ScoreGroup`.
    pub method: &'static str,
    pub cancel: Cancel,
}
