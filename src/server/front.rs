//! What every call passes before its method: who calls, until when, and whether the server still has time for it.
//!
//! tonic's own timer answers CANCELLED, and only methods would be asked for a key by an interceptor: this stands before
//! all of them, unknown ones and reflection included.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use http::{Request, Response};
use hyper::body::Incoming;
use tonic::service::Routes;
use tower::ServiceExt as _;

use super::calls::{Answer, Calls};
use super::deadline::{self, Deadline};
use super::life::{Life, Phase};
use super::upload::Upload;
use super::{Caller, Keys, status};
use crate::telemetry::{Served, catalogue};

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
    pub async fn answer(self, mut request: Request<Incoming>, calls: Calls) -> Result<Response<Answer>, Infallible> {
        let call = calls.enter();
        let served = Served::begin(request.uri().path(), request.headers());
        let deadline = deadline::of(request.headers());
        let caller = match &self.keys {
            Some(keys) => keys.caller(request.headers()),
            None => Ok(Caller::default()),
        };
        let response = match caller {
            Err(refusal) => {
                catalogue::AUTH_FAILURES.increment([refusal.name()]);
                status::unauthenticated(refusal).into_http()
            }
            Ok(caller) => {
                request.extensions_mut().insert(served.record().clone());
                request.extensions_mut().insert(Deadline(deadline));
                request.extensions_mut().insert(caller);
                let upload = Upload::default();
                tokio::select! {
                    biased;
                    answered = self.routes.oneshot(request.map(|body| upload.of(body))) => match answered {
                        Ok(response) => upload.answered(response),
                        Err(never) => match never {},
                    },
                    () = until(deadline) => status::late().into_http(),
                    () = self.life.reached(Phase::Over) => {
                        catalogue::SHED.increment([served.record().lane(), "draining"]);
                        status::stopping().into_http()
                    }
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

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}
