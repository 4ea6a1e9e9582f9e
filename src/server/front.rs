//! What every call passes before its method: who calls, until when, and whether the server still has time for it.
//!
//! tonic's own timer answers CANCELLED, and only methods would be asked for a key by an interceptor: this stands before
//! all of them, unknown ones and reflection included.

use std::convert::Infallible;
use std::sync::Arc;

use http::{HeaderMap, Request, Response};
use hyper::body::Incoming;
use tonic::Status;
use tonic::service::Routes;
use tower::ServiceExt as _;

use super::answer::{Allowed, Answer};
use super::calls::Calls;
use super::deadline::{self, Deadline};
use super::life::Life;
use super::upload::Upload;
use super::{Caller, Keys, status};
use crate::telemetry::{CallRecord, Served, catalogue};

/// The way into the services.
#[derive(Clone)]
pub struct Front {
    routes: Routes,
    /// None: everybody may call.
    keys: Option<Arc<Keys>>,
    life: Life,
}

impl Front {
    pub fn new(routes: Routes, keys: Option<Arc<Keys>>, life: Life) -> Self {
        Self { routes, keys, life }
    }

    /// Answers one call of a connection.
    pub async fn answer(self, mut request: Request<Incoming>, calls: Calls) -> Result<Response<Answer>, Infallible> {
        let call = calls.enter();
        let served = Served::begin(request.uri().path(), request.headers());
        let deadline = Deadline(deadline::of(request.headers()));
        let allowed = Allowed { deadline, life: self.life.clone() };
        let response = match caller(self.keys.as_deref(), request.headers()) {
            Err(refused) => refused.into_http(),
            Ok(caller) => {
                request.extensions_mut().insert(served.record().clone());
                request.extensions_mut().insert(deadline);
                // For calls that go on after their first answer.
                request.extensions_mut().insert(self.life);
                request.extensions_mut().insert(caller);
                let upload = Upload::default();
                let answered = self.routes.oneshot(request.map(|body| upload.of(body)));
                match in_time(answered, &allowed, served.record()).await {
                    Ok(Ok(response)) => upload.answered(response),
                    Ok(Err(never)) => match never {},
                    Err(status) => status.into_http(),
                }
            }
        };
        Ok(Answer::of(response, served, allowed, call))
    }
}

/// Who calls, where keys are asked for.
///
/// # Errors
/// UNAUTHENTICATED.
pub fn caller(keys: Option<&Keys>, headers: &HeaderMap) -> Result<Caller, Status> {
    let Some(keys) = keys else { return Ok(Caller::default()) };
    keys.caller(headers).map_err(|refusal| {
        catalogue::AUTH_FAILURES.increment([refusal.name()]);
        status::unauthenticated(refusal)
    })
}

/// What `work` gives, if it is done before the call must end.
///
/// # Errors
/// DEADLINE_EXCEEDED, or UNAVAILABLE at the server's end; the work is dropped.
pub async fn in_time<T>(work: impl Future<Output = T>, allowed: &Allowed, record: &CallRecord) -> Result<T, Status> {
    tokio::select! {
        biased;
        done = work => Ok(done),
        status = allowed.clone().over(record.clone()) => Err(status),
    }
}
