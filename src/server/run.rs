//! The life of the server: load, serve, drain.

use std::fmt::Display;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tonic::service::Routes;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::{Health as HealthService, HealthServer};
use tonic_health::server::{HealthReporter, health_reporter};

use super::accept::accept;
use super::admin::{self, Admin};
use super::door::warn_of_few_files;
use super::front::Front;
use super::grpc::{Grpc, Scorer};
use super::http::HttpFront;
use super::life::{Leader, Phase};
use super::pb::judge_service_server::{JudgeServiceServer, SERVICE_NAME};
use super::readiness::{Model, Readiness, State};
use super::{MESSAGE_LIMIT, Ports, ServerOptions, pb, reload};
use crate::service::Health;

/// How long the answers of calls that are cut off may take to leave.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// Why the server ended otherwise than by its shutdown signal.
#[derive(Debug, thiserror::Error)]
pub enum ServeError<E> {
    /// The judge could not be loaded; the reason.
    #[error("{0}")]
    Load(E),
    #[error("the server failed: {0}")]
    Setup(String),
}

impl<E> ServeError<E> {
    fn setup(error: impl Display) -> Self {
        Self::Setup(error.to_string())
    }
}

/// Serves on `ports` until `shutdown`, then drains as `options` say.
///
/// The ports answer from the start. `load` runs on a blocking thread; until it is done the server is not ready and the
/// judge's methods answer UNAVAILABLE; from then on it is ready while the model answers. If loading fails, so does the
/// server.
pub async fn run<S, E>(
    ports: Ports,
    load: impl FnOnce() -> Result<S, E> + Send + 'static,
    options: ServerOptions,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError<E>>
where
    S: Scorer,
    E: Send + 'static,
{
    let judge = Arc::new(OnceLock::new());
    let readiness = Readiness::new();
    let (mut reporter, health) = health_reporter();
    // tonic-health starts as SERVING.
    report(&reporter, &readiness.model(Model::Loading)).await;
    let leader = Leader::new();
    let grpc = Grpc::new(Arc::clone(&judge)).guided_by(options.policies.clone());
    let routes = routes(grpc, health.clone(), options.reflection).map_err(ServeError::setup)?;
    let front = Front::new(routes, options.keys.clone(), leader.life());
    tracing::info!("listening on {}, loading the model", ports.judge.local_addr().map_err(ServeError::setup)?);
    // Ends with this function, whichever way it ends.
    let mut aside = JoinSet::new();
    if let Some(listener) = &ports.http {
        tracing::info!("http on {}", listener.local_addr().map_err(ServeError::setup)?);
    }
    if let Some(listener) = ports.admin {
        tracing::info!("admin on {}", listener.local_addr().map_err(ServeError::setup)?);
        let admin = Admin { state: readiness.watch(), judge: Arc::clone(&judge), configz: options.configz.clone() };
        aside.spawn(admin::serve(listener, admin, health));
    }
    warn_of_few_files(options.max_connections);
    aside.spawn(reload::watch(options.clone(), Arc::clone(&judge)));
    aside.spawn(crate::telemetry::upkeep());
    let http = ports.http.map(|listener| {
        let front = HttpFront::new(judge.clone(), &options, readiness.watch(), leader.life());
        accept(listener, front, options.clone(), leader.life())
    });
    let grpc = accept(ports.judge, front, options.clone(), leader.life());
    let mut served = pin!(async {
        match http {
            Some(http) => _ = tokio::join!(grpc, http),
            None => grpc.await,
        }
    });

    let mut shutdown = pin!(shutdown);
    let mut loading = tokio::task::spawn_blocking(load);
    let mut model: Option<watch::Receiver<Health>> = None;
    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            health = changed(&mut model) => {
                tracing::info!("the model is {health:?}");
                report(&reporter, &readiness.model(health.into())).await;
            }
            done = &mut loading, if model.is_none() => {
                let loaded = done.map_err(ServeError::setup)?.map_err(ServeError::Load)?;
                let health = loaded.health();
                let now = *health.borrow();
                // Set once: this is the only writer.
                let _ = judge.set(Arc::new(loaded));
                model = Some(health);
                tracing::info!("the model is loaded, serving");
                report(&reporter, &readiness.model(now.into())).await;
            }
            // Before the drain it does not end.
            () = &mut served => {}
        }
    }

    report(&reporter, &readiness.stopping()).await;
    leader.enter(Phase::Announced);
    if !options.drain_delay.is_zero() {
        tracing::info!("stopping: not ready, calls are taken for {} s more", options.drain_delay.as_secs_f64());
        tokio::select! {
            () = tokio::time::sleep(options.drain_delay) => {}
            () = &mut served => {}
        }
    }
    tracing::info!("stopping: no new calls, up to {} s for those in flight", options.drain_timeout.as_secs_f64());
    for name in ["", SERVICE_NAME] {
        // Ends the streams of health watchers, which would hold the drain otherwise.
        reporter.clear_service_status(name).await;
    }
    leader.enter(Phase::Draining);
    if tokio::time::timeout(options.drain_timeout, &mut served).await.is_err() {
        tracing::warn!("calls were still in flight after {} s; they are cut off", options.drain_timeout.as_secs_f64());
        leader.enter(Phase::Over);
        // Whoever does not read its answer by then never will.
        let _ = tokio::time::timeout(LAST_WORDS, served).await;
    }
    Ok(())
}

/// The services of the gRPC port.
fn routes<S: Scorer>(
    grpc: Grpc<S>,
    health: HealthServer<impl HealthService>,
    reflection: bool,
) -> Result<Routes, tonic_reflection::server::Error> {
    let service =
        JudgeServiceServer::new(grpc).max_decoding_message_size(MESSAGE_LIMIT).max_encoding_message_size(MESSAGE_LIMIT);
    let mut routes = Routes::new(service).add_service(health);
    if reflection {
        let descriptors = || {
            // With the health service and the error details, so that tools can call and print those too.
            let sets = [pb::DESCRIPTORS, tonic_health::pb::FILE_DESCRIPTOR_SET, tonic_types::pb::FILE_DESCRIPTOR_SET];
            let builder = tonic_reflection::server::Builder::configure();
            sets.into_iter().fold(builder, |builder, set| builder.register_encoded_file_descriptor_set(set))
        };
        // grpcurl before 1.9 asks for the older version.
        routes = routes.add_service(descriptors().build_v1()?).add_service(descriptors().build_v1alpha()?);
    }
    Ok(routes.prepare())
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

async fn report(reporter: &HealthReporter, state: &State) {
    let status = if state.is_ready() { ServingStatus::Serving } else { ServingStatus::NotServing };
    for name in ["", SERVICE_NAME] {
        reporter.set_service_status(name, status).await;
    }
}
