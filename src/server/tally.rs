//! What a call adds to the metrics when it ends, however it ends.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use http::HeaderMap;
use tonic::{Code, Status};

use super::pb::judge_service_server::SERVICE_NAME;
use crate::service::Lane;
use crate::telemetry::{Held, catalogue};

/// One call, counted when it is dropped.
pub struct Tally {
    method: &'static str,
    started: Instant,
    lane: LaneSeen,
    /// Until there is an answer: the caller went away.
    code: Code,
    _in_flight: Held,
}

/// Where the method says in which lane its call is: the front cannot read messages.
#[derive(Clone, Default)]
pub struct LaneSeen(Arc<OnceLock<Lane>>);

impl LaneSeen {
    pub fn set(&self, lane: Lane) {
        // A call has one lane.
        let _ = self.0.set(lane);
    }
}

impl Tally {
    /// A call of the method at `path`, whose headers have just come.
    pub fn start(path: &str) -> Self {
        Self {
            method: method(path),
            started: Instant::now(),
            lane: LaneSeen::default(),
            code: Code::Cancelled,
            _in_flight: catalogue::REQUESTS_IN_FLIGHT.hold([]),
        }
    }

    pub fn lane(&self) -> LaneSeen {
        self.lane.clone()
    }

    /// The answer's headers; those of a failure have its status.
    pub fn answered(&mut self, headers: &HeaderMap) {
        self.code = Status::from_header_map(headers).map_or(Code::Ok, |status| status.code());
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        let lane = self.lane.0.get().map_or("none", |lane| lane.name());
        catalogue::REQUESTS.increment([self.method, name(self.code)]);
        catalogue::REQUEST_SECONDS.record([self.method, lane], self.started.elapsed().as_secs_f64());
    }
}

/// The method of our service, or what stands for all others: callers may ask for anything.
fn method(path: &str) -> &'static str {
    let method = path.strip_prefix('/').and_then(|path| path.strip_prefix(SERVICE_NAME)?.strip_prefix('/'));
    match method {
        Some("Score") => "Score",
        Some("ScoreGroup") => "ScoreGroup",
        Some("GetJudgeInfo") => "GetJudgeInfo",
        _ => "other",
    }
}

/// The code as gRPC spells it.
fn name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
