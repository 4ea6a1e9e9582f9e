//! What every judging call does: find its persona, say how it is served, judge without ending the process.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::Instant;

use tonic::Extensions;

use super::{Refused, Scorer};
use crate::server::convert::{Asked, Who};
use crate::server::deadline::Deadline;
use crate::server::{Caller, pb};
use crate::service::{Call, Cancel, ErrorCode, JudgeError, Scored};
use crate::telemetry::{CallRecord, catalogue};

/// Whose persona the request means.
pub fn who<S: Scorer>(judge: &S, persona: Option<pb::Persona>, id: &str) -> Result<Who, Refused> {
    if id.is_empty() {
        return Ok(Who::Inline(persona));
    }
    if persona.is_some() {
        return Err(JudgeError::invalid("persona_id", "it is given beside `persona`; send one of the two").into());
    }
    Ok(Who::Named(judge.persona(id)?))
}

/// What the front found out about a call.
#[derive(Clone, Default)]
pub struct Found {
    pub caller: Caller,
    pub record: CallRecord,
    pub deadline: Option<Instant>,
}

impl Found {
    pub fn of(extensions: &Extensions) -> Self {
        Self {
            caller: extensions.get().cloned().unwrap_or_default(),
            record: extensions.get().cloned().unwrap_or_default(),
            deadline: Deadline::of(extensions).0,
        }
    }

    /// How a request of the call is served.
    pub fn call(self, method: &'static str, asked: &Asked, request_id: &str) -> Result<Call, Refused> {
        let Self { caller, record, deadline } = self;
        record.set_lane(asked.lane.name());
        record.set_request_id(request_id);
        caller.enter(asked.lane).map_err(|lanes| {
            catalogue::AUTH_FAILURES.increment(["lane"]);
            Refused::Lane(asked.lane, lanes)
        })?;
        Ok(Call {
            lane: asked.lane,
            cache: asked.cache,
            tenant: caller.tenant.to_string(),
            quota: caller.quota,
            request_id: request_id.to_owned(),
            method,
            cancel: Cancel::with_deadline(deadline),
            shaping: None,
            record,
        })
    }
}

/// How the call is served: what it asks for, and what the front found out about its caller.
pub fn call(method: &'static str, asked: &Asked, request_id: &str, extensions: &Extensions) -> Result<Call, Refused> {
    Found::of(extensions).call(method, asked, request_id)
}

/// Judges.
pub async fn scored<S: Scorer>(judge: &S, asked: Asked, call: &Call) -> Scored {
    let candidates = asked.group.candidates.len();
    let scored = caught(judge.score(asked.group, &asked.overrides, call)).await??;
    if scored.len() == candidates {
        return Ok(scored);
    }
    let message = "the judge gave another number of results than there are candidates";
    Err(JudgeError::new(ErrorCode::Internal, message))
}

/// Does work of one call. A panic is an error of this call alone.
pub async fn caught<T>(work: impl Future<Output = T>) -> Result<T, JudgeError> {
    let mut work = pin!(work);
    std::future::poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
        Ok(poll) => poll.map(Ok),
        Err(_) => {
            tracing::error!("a judgement panicked");
            Poll::Ready(Err(JudgeError::new(ErrorCode::Internal, "the judge failed on this request")))
        }
    })
    .await
}
