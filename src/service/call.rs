//! How one call is served: who waits for it, what it wants of the cache, when it must stop.

use super::{CacheControl, Cancel, Lane};
use crate::telemetry::CallRecord;

/// What a call says besides what is judged and how. None of it changes a bit of the verdict.
#[derive(Clone, Debug, Default)]
pub struct Call {
    pub lane: Lane,
    pub cache: CacheControl,
    /// Whose verdicts are shared; calls of different tenants never see what the other one caused. Empty: nobody's.
    pub tenant: String,
    pub cancel: Cancel,
    /// What the transport knows of the call and is told of it.
    pub record: CallRecord,
}
