//! The accept loop of a port for callers and the life of one connection.

use std::fmt::Display;
use std::pin::pin;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::calls::Calls;
use super::door::Door;
use super::front::Front;
use super::handshake::{Greeting, HTTP2_WORDS};
use super::life::{Life, Phase};
use super::{ServerOptions, Tls, tls};
use crate::telemetry::catalogue;

/// Cancelled calls that may wait on one connection. h2 closes the connection above 20, which a client that cancels a
/// batch reaches in normal work.
pub const RESETS: usize = 1024;

/// How often a connection without traffic is asked whether it lives, and how long it may take to say so.
pub const KEEP_ALIVE: Duration = Duration::from_secs(60);
pub const KEEP_ALIVE_ANSWER: Duration = Duration::from_secs(20);

/// How long a connection without calls may stay after the goodbye, for calls that crossed it on the wire.
const GOODBYE: Duration = Duration::from_millis(500);

/// What a port speaks.
pub trait Protocol: Clone + Send + Sync + 'static {
    /// What the log calls the port.
    const PORT: &'static str;

    /// The server's side of TLS, which offers this protocol.
    fn acceptor(tls: &Tls) -> TlsAcceptor;

    /// Answers the calls of one connection until its client leaves.
    fn converse(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        calls: Calls,
        options: &ServerOptions,
    ) -> impl GracefulConnection<Error: Display + Send> + Send;
}

/// Takes connections until the drain begins and ends when the last of them does. Dropped, it cuts them off.
pub async fn accept<P: Protocol>(listener: TcpListener, protocol: P, options: ServerOptions, life: Life) {
    let mut door = Door::new(listener, P::PORT, options.max_connections);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = life.reached(Phase::Draining) => break,
            Some(_) = connections.join_next() => {}
            (stream, place) = door.next() => {
                catalogue::CONNECTIONS_ACCEPTED.increment([]);
                let connection =
                    Connection { protocol: protocol.clone(), options: options.clone(), life: life.clone() };
                connections.spawn(async move {
                    let _open = (place, catalogue::CONNECTIONS.hold([]));
                    connection.open(stream).await;
                });
            }
        }
    }
    drop(door);
    while connections.join_next().await.is_some() {}
}

/// What a connection needs.
struct Connection<P> {
    protocol: P,
    options: ServerOptions,
    life: Life,
}

impl<P: Protocol> Connection<P> {
    async fn open(self, stream: TcpStream) {
        // Without TCP_NODELAY a small answer can wait 40 ms for an acknowledgement. A connection that has gone by now
        // says so when it is read.
        let _ = stream.set_nodelay(true);
        let Some(tls) = self.options.tls.clone() else { return self.serve(stream).await };
        if let Some(stream) = self.encrypt(&tls, stream).await {
            self.serve(stream).await;
        }
    }

    async fn encrypt(&self, tls: &Tls, stream: TcpStream) -> Option<TlsStream<TcpStream>> {
        let shaken = tokio::time::timeout(self.options.handshake_timeout, P::acceptor(tls).accept(stream));
        let reason = tokio::select! {
            () = self.life.reached(Phase::Draining) => return None,
            shaken = shaken => match shaken {
                Ok(Ok(stream)) => return Some(stream),
                Ok(Err(error)) => {
                    tracing::debug!("a TLS handshake failed: {error}");
                    tls::reason(&error)
                }
                Err(_) => "timeout",
            },
        };
        catalogue::TLS_FAILURES.increment([reason]);
        catalogue::CONNECTIONS_REFUSED.increment(["tls"]);
        None
    }

    /// Until the client leaves, or until the server drains and the calls in flight are done.
    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let Self { protocol, options, life } = self;
        let calls = Calls::new();
        let mut connection = pin!(protocol.converse(stream, calls.clone(), &options));
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = life.reached(Phase::Draining) => {
                connection.as_mut().graceful_shutdown();
                tokio::select! {
                    ended = connection.as_mut() => ended,
                    // Dropped: a client that does not answer the goodbye must not hold up the stop.
                    () = calls.idle_for(GOODBYE) => Ok(()),
                }
            }
        };
        if let Err(error) = ended {
            tracing::debug!("a connection ended: {error}");
        }
    }
}

/// gRPC: HTTP/2 alone.
impl Protocol for Front {
    const PORT: &'static str = "the gRPC port";

    fn acceptor(tls: &Tls) -> TlsAcceptor {
        tls.grpc()
    }

    fn converse(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        calls: Calls,
        options: &ServerOptions,
    ) -> impl GracefulConnection<Error: Display + Send> + Send {
        let service = service_fn(move |request: Request<Incoming>| self.clone().answer(request, calls.clone()));
        http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(options.max_streams)
            .max_pending_accept_reset_streams(RESETS)
            // A call that is refused before its message is read counts as one: a proxy's connection must not end because
            // one of its clients has a wrong key. What such calls can cost is bounded by streams and lanes.
            .max_local_error_reset_streams(None)
            .keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE_ANSWER)
            .serve_connection(TokioIo::new(Greeting::new(stream, HTTP2_WORDS, options.handshake_timeout)), service)
    }
}
