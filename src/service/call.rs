//! How one call is served: who waits for it, what it wants of the cache, when it must stop.

use std::sync::Arc;

use super::{CacheControl, Cancel, Lane, Quota};
use crate::prism::Shaping;
use crate::telemetry::CallRecord;

/// What a call says besides what is judged and how. None of it changes a bit of the verdict.
#[derive(Clone, Debug, Default)]
pub struct Call {
    pub lane: Lane,
    pub cache: CacheControl,
    /// Whose verdicts are shared; calls of different tenants never see what the other one caused. Empty: nobody's.
    pub tenant: String,
    /// What the tenant may compute; None: as much as there is room for. Verdicts from the cache are free.
    pub quota: Option<Arc<Quota>>,
    /// What the caller calls this call, for those who look for it later.
    pub request_id: String,
    /// The front end's name of what was called, for example `ScoreGroup`.
    pub method: &'static str,
    pub cancel: Cancel,
    /// How the caller makes rewards of the verdicts ([`Shaping::rewards`]); noted in the log and in the record of the call.
    pub shaping: Option<Shaping>,
    /// What the transport knows of the call and is told of it.
    pub record: CallRecord,
}
