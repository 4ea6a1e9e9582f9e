//! The life of the server: listen, load, serve, drain.

use std::fmt::Display;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio_stream::StreamExt as _;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic_health::ServingStatus;
use tonic_health::server::{HealthReporter, health_reporter};

use super::grpc::{Grpc, Scorer};
use super::handshake::Greeting;
use super::pb::judge_service_server::{JudgeServiceServer, SERVICE_NAME};
use super::{MESSAGE_LIMIT, deadline, pb};
use crate::service::Health;

/// The default bound of the drain.
const DRAIN: Duration = Duration::from_secs(10);

/// The default patience with a new connection: clients speak at once, and one that is silent holds up the stop.
const GREETING: Duration = Duration::from_secs(3);

/// Calls of one connection at a time; tonic's own default has no limit.
const STREAMS: u32 = 2048;

/// Cancelled calls that may wait on one connection. h2 closes the connection above 20, which a client that cancels a
/// batch reaches in normal work.
const RESETS: usize = 1024;

/// How the server behaves.
#[derive(Clone, Copy, Debug)]
pub struct ServerOptions {
    /// Whether the reflection service is offered.
    pub reflection: bool,
    /// How long calls in flight may take after the stop.
    pub drain: Duration,
    /// How long a new connection may say nothing.
    pub greeting: Duration,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self { reflection: false, drain: DRAIN, greeting: GREETING }
    }
}

/// Why the server ended otherwise than by its shutdown signal.
#[derive(Debug, thiserror::Error)]
pub enum ServeError<E> {
    /// The judge could not be loaded; the reason.
    #[error("{0}")]
    Load(E),
    #[error("the server failed: {0}")]
    Transport(#[from] tonic::transport::Error),
    #[error("the server failed: {0}")]
    Setup(String),
}

/// Serves on `listener` until `shutdown`, then finishes the calls in flight, for `options.drain` at
/// most.
///
/// The port answers from the start. `load` runs on a blocking thread; until it is done the health service says
/// NOT_SERVING and the judge's methods answer UNAVAILABLE; from then on it says whether the model answers. If loading
/// fails, so does the server.
pub async fn run<S, E>(
    listener: TcpListener,
    load: impl FnOnce() -> Result<S, E> + Send + 'static,
    options: ServerOptions,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError<E>>
where
    S: Scorer,
    E: Send + 'static,
{
    let address = listener.local_addr().map_err(|error| ServeError::Setup(error.to_string()))?;
    let judge = Arc::new(OnceLock::new());
    let (mut reporter, health) = health_reporter();
    // tonic-health starts as SERVING.
    report(&reporter, ServingStatus::NotServing).await;

    let (stop, stopped) = oneshot::channel::<()>();
    let service = JudgeServiceServer::new(Grpc::new(Arc::clone(&judge)))
        .max_decoding_message_size(MESSAGE_LIMIT)
        .max_encoding_message_size(MESSAGE_LIMIT);
    let setup = |error: &dyn Display| ServeError::Setup(error.to_string());
    let descriptors = || {
        // With the health service and the error details, so that tools can call and print those too.
        let sets = [pb::DESCRIPTORS, tonic_health::pb::FILE_DESCRIPTOR_SET, tonic_types::pb::FILE_DESCRIPTOR_SET];
        let builder = tonic_reflection::server::Builder::configure();
        sets.into_iter().fold(builder, |builder, set| builder.register_encoded_file_descriptor_set(set))
    };
    let reflection = options.reflection.then(|| descriptors().build_v1()).transpose().map_err(|e| setup(&e))?;
    // grpcurl before 1.9 asks for the older version.
    let alpha = options.reflection.then(|| descriptors().build_v1alpha()).transpose().map_err(|e| setup(&e))?;
    let router = Server::builder()
        .max_concurrent_streams(STREAMS)
        .http2_max_pending_accept_reset_streams(Some(RESETS))
        .add_service(InterceptedService::new(service, deadline::stamp))
        .add_service(health)
        .add_optional_service(reflection)
        .add_optional_service(alpha);
    // Without TCP_NODELAY a small answer can wait 40 ms for an acknowledgement.
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let incoming = incoming.map(move |stream| stream.map(|stream| Greeting::new(stream, options.greeting)));
    let mut server = tokio::spawn(router.serve_with_incoming_shutdown(incoming, async {
        // A sender that is gone means the same as a signal.
        let _ = stopped.await;
    }));
    tracing::info!("listening on {address}, loading the model");

    let mut shutdown = pin!(shutdown);
    let mut loading = tokio::task::spawn_blocking(load);
    let mut model: Option<watch::Receiver<Health>> = None;
    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            ended = &mut server => return flatten(ended),
            health = changed(&mut model) => {
                tracing::info!("the model is {health:?}");
                report(&reporter, serving(health)).await;
            }
            done = &mut loading, if model.is_none() => match done {
                Ok(Ok(loaded)) => {
                    let health = loaded.health();
                    let now = *health.borrow();
                    // Set once: this is the only writer.
                    let _ = judge.set(Arc::new(loaded));
                    report(&reporter, serving(now)).await;
                    model = Some(health);
                    tracing::info!("the model is loaded, serving");
                }
                Ok(Err(reason)) => {
                    server.abort();
                    return Err(ServeError::Load(reason));
                }
                Err(error) => {
                    server.abort();
                    return Err(ServeError::Setup(error.to_string()));
                }
            },
        }
    }

    tracing::info!("stopping: no new calls, up to {} s for those in flight", options.drain.as_secs());
    report(&reporter, ServingStatus::NotServing).await;
    for name in ["", SERVICE_NAME] {
        // Ends the streams of health watchers, which would hold the drain otherwise.
        reporter.clear_service_status(name).await;
    }
    let _ = stop.send(());
    match tokio::time::timeout(options.drain, &mut server).await {
        Ok(ended) => flatten(ended),
        Err(_) => {
            tracing::warn!("calls were still in flight after {} s; they are cut off", options.drain.as_secs());
            server.abort();
            Ok(())
        }
    }
}

/// The model's health when it changes; for ever pending without a model, or when it can change no more.
async fn changed(model: &mut Option<watch::Receiver<Health>>) -> Health {
    if let Some(health) = model
        && health.changed().await.is_ok()
    {
        return *health.borrow_and_update();
    }
    std::future::pending().await
}

fn serving(health: Health) -> ServingStatus {
    match health {
        Health::Ready => ServingStatus::Serving,
        Health::Restarting | Health::Dead => ServingStatus::NotServing,
    }
}

async fn report(reporter: &HealthReporter, status: ServingStatus) {
    for name in ["", SERVICE_NAME] {
        reporter.set_service_status(name, status).await;
    }
}

fn flatten<E>(ended: Result<Result<(), tonic::transport::Error>, tokio::task::JoinError>) -> Result<(), ServeError<E>> {
    match ended {
        Ok(served) => Ok(served?),
        Err(error) => Err(ServeError::Setup(error.to_string())),
    }
}
