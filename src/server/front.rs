//! What every call passes before its method: who calls, until when, and whether the server still has time for it.
//!
//! tonic's own timer answers CANCELLED, and only methods would be asked for a key by an interceptor: this stands before
//! all of them, unknown ones and reflection included.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use http::{HeaderMap, Request, Response};
use hyper::body::Incoming;
use tonic::Status;
use tonic::body::Body;
use tonic::service::Routes;
use tower::ServiceExt as _;

use super::calls::{Answer, Calls};
use super::deadline::{self, Deadline};
use super::life::{Life, Phase};
use super::{Caller, Keys, status};
use crate::telemetry::{CallRecord, Served, catalogue};

/// `Code::OutOfRange` as it travels.
const OUT_OF_RANGE: &str = "11";

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
    pub async fn answer(
        self,
        mut request: Request<Incoming>,
        calls: Calls,
    ) -> Result<Response<Answer<Body>>, Infallible> {
        let call = calls.enter();
        let served = Served::begin(request.uri().path(), request.headers());
        let deadline = deadline::of(request.headers());
        let response = match caller(self.keys.as_deref(), request.headers()) {
            Err(refused) => refused.into_http(),
            Ok(caller) => {
                request.extensions_mut().insert(served.record().clone());
                request.extensions_mut().insert(Deadline(deadline));
                request.extensions_mut().insert(caller);
                match in_time(self.routes.oneshot(request), deadline, &self.life, served.record()).await {
                    Ok(Ok(response)) => response,
                    Ok(Err(never)) => match never {},
                    Err(status) => status.into_http(),
                }
            }
        };
        // tonic refuses a message that is too large before we see it, and has no other use for this code.
        if response.headers().get("grpc-status").is_some_and(|code| code == OUT_OF_RANGE) {
            catalogue::LIMIT_REFUSALS.increment(["message_bytes"]);
        }
        served.answered(response.headers());
        Ok(response.map(|body| Answer::new(body, call)))
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

/// What `work` gives, if it is done before the deadline and before the server's end.
///
/// # Errors
/// DEADLINE_EXCEEDED, or UNAVAILABLE at the end; the work is dropped.
pub async fn in_time<T>(
    work: impl Future<Output = T>,
    deadline: Option<Instant>,
    life: &Life,
    record: &CallRecord,
) -> Result<T, Status> {
    tokio::select! {
        biased;
        done = work => Ok(done),
        () = until(deadline) => Err(status::late()),
        () = life.reached(Phase::Over) => {
            catalogue::SHED.increment([record.lane(), "draining"]);
            Err(status::stopping())
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}
