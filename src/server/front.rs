//! What every call passes before its method: who calls, until when, and whether the server still has time for it.
//!
//! tonic's own timer answers CANCELLED, and only methods would be asked for a key by an interceptor: this stands before
//! all of them, unknown ones and reflection included.

use std::convert::Infallible;
use std::sync::Arc;

use http::{Request, Response};
use hyper::body::Incoming;
use tonic::service::Routes;
use tower::ServiceExt as _;

use super::answer::{Allowed, Answer};
use super::calls::Calls;
use super::deadline::{self, Deadline};
use super::life::Life;
use super::upload::Upload;
use super::{Caller, Keys, status};
use crate::telemetry::{Served, catalogue};

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
                request.extensions_mut().insert(deadline);
                // For calls that go on after their first answer.
                request.extensions_mut().insert(self.life);
                request.extensions_mut().insert(caller);
                let upload = Upload::default();
                tokio::select! {
                    biased;
                    answered = self.routes.oneshot(request.map(|body| upload.of(body))) => match answered {
                        Ok(response) => upload.answered(response),
                        Err(never) => match never {},
                    },
                    status = allowed.clone().over(served.record().clone()) => status.into_http(),
                }
            }
        };
        Ok(Answer::of(response, served, allowed, call))
    }
}
