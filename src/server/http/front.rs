//! What every request to the HTTP port passes before its route: who calls, until when, and whether the server still has
//! time for it; and what is counted of it.

use std::convert::Infallible;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::Poll;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, Request};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulConnection;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

use super::error::{Failure, Outcome};
use super::route::Route;
use super::router;
use crate::server::accept::{KEEP_ALIVE, KEEP_ALIVE_ANSWER, Protocol, RESETS};
use crate::server::answer::Allowed;
use crate::server::calls::{Calls, Carried};
use crate::server::deadline::{self, Deadline, TIMEOUT_MS};
use crate::server::front::{caller, in_time};
use crate::server::grpc::Scorer;
use crate::server::handshake::{Greeting, HTTP1_WORDS};
use crate::server::life::Life;
use crate::server::{Caller, Keys, ServerOptions, Tls, readiness};
use crate::telemetry::{CallRecord, Served, catalogue};

/// The way into the routes.
#[derive(Clone)]
pub struct HttpFront {
    router: Router,
    /// None: everybody may call.
    keys: Option<Arc<Keys>>,
    life: Life,
}

impl HttpFront {
    pub fn new<S: Scorer>(
        judge: Arc<OnceLock<Arc<S>>>,
        options: &ServerOptions,
        state: watch::Receiver<readiness::State>,
        life: Life,
    ) -> Self {
        Self { router: router(judge, options, state), keys: options.keys.clone(), life }
    }

    /// Answers one request of a connection.
    async fn answer(self, request: Request<Incoming>, calls: Calls) -> Result<Response<Carried<Body>>, Infallible> {
        let call = calls.enter();
        let route = Route::of(request.uri().path());
        let counted = Counted::begin(route);
        let response = match route.and_then(|route| Some((route, route.method()?))) {
            Some((route, method)) => {
                let served = Served::by_route(route.path(), method, request.headers());
                let response = self.judged(request, served.record().clone()).await;
                let outcome = response.extensions().get::<Outcome>();
                served.end(outcome.map_or("OK", |outcome| outcome.0));
                response
            }
            None => self.plain(request, route.is_some_and(Route::is_open)).await,
        };
        counted.end(&response);
        Ok(response.map(|body| Carried::new(body, call)))
    }

    /// A request that asks the judge.
    async fn judged(self, mut request: Request<Incoming>, record: CallRecord) -> Response {
        let caller = match self.caller(request.headers()) {
            Ok(caller) => caller,
            Err(failure) => return failure.into_response(),
        };
        let deadline = match deadline::of_http(request.headers()) {
            Ok(deadline) => Deadline(deadline),
            Err(said) => {
                let wrong = format!("it is {said:?}; it must be a whole number of milliseconds");
                return Failure::invalid(TIMEOUT_MS, wrong).into_response();
            }
        };
        request.extensions_mut().insert(record.clone());
        request.extensions_mut().insert(deadline);
        request.extensions_mut().insert(caller);
        let allowed = Allowed { deadline, life: self.life };
        let answered = in_time(routed(self.router, request), &allowed, &record).await;
        answered.unwrap_or_else(|status| Failure::from(status).into_response())
    }

    /// A request that asks it nothing.
    async fn plain(self, request: Request<Incoming>, open: bool) -> Response {
        if !open && let Err(failure) = self.caller(request.headers()) {
            return failure.into_response();
        }
        routed(self.router, request).await
    }

    fn caller(&self, headers: &HeaderMap) -> Result<Caller, Failure> {
        caller(self.keys.as_deref(), headers).map_err(Failure::from)
    }
}

/// A panic is an error of its request alone.
async fn routed(router: Router, request: Request<Incoming>) -> Response {
    let mut work = pin!(router.oneshot(request));
    let answered = std::future::poll_fn(|context| {
        catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))).unwrap_or_else(|_| {
            tracing::error!("a route panicked");
            Poll::Ready(Ok(Failure::internal("the server failed on this request").into_response()))
        })
    });
    match answered.await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// A request under way. Dropped without an answer its client went away.
struct Counted {
    route: &'static str,
    class: &'static str,
}

impl Counted {
    fn begin(route: Option<Route>) -> Self {
        Self { route: route.map_or("other", Route::label), class: "none" }
    }

    fn end<B>(mut self, response: &Response<B>) {
        self.class = match response.status().as_u16() {
            ..400 => "2xx",
            400..500 => "4xx",
            500.. => "5xx",
        };
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        catalogue::HTTP_REQUESTS.increment([self.route, self.class]);
    }
}

/// HTTP/1.1 and HTTP/2, whichever the client begins with.
impl Protocol for HttpFront {
    const PORT: &'static str = "the HTTP port";

    fn acceptor(tls: &Tls) -> TlsAcceptor {
        tls.http()
    }

    fn converse(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        calls: Calls,
        options: &ServerOptions,
    ) -> impl GracefulConnection<Error: Display + Send> + Send {
        let service = service_fn(move |request: Request<Incoming>| self.clone().answer(request, calls.clone()));
        let mut builder = auto::Builder::new(TokioExecutor::new());
        // The head of a request may take as long as a connection may rest between two: hyper has one clock for both.
        builder.http1().timer(TokioTimer::new()).header_read_timeout(KEEP_ALIVE);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(options.max_streams)
            .max_pending_accept_reset_streams(RESETS)
            .max_local_error_reset_streams(None)
            .keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE_ANSWER);
        let stream = Greeting::new(stream, HTTP1_WORDS, options.handshake_timeout);
        builder.serve_connection(TokioIo::new(stream), service).into_owned()
    }
}
