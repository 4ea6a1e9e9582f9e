//! The admin port: plain HTTP for probes, Prometheus and people, and gRPC health for probes that speak it. It asks for no
//! key and shows no text of any request.

use std::convert::Infallible;
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::State;
use axum::http::{Request, StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tonic::server::NamedService;
use tower::Service;

use super::Scorer;
use super::readiness;
use crate::telemetry;

const ROUTES: &str = "\
/livez        200 while the process can serve again without a restart
/readyz       200 while calls are served
/metrics      Prometheus
/configz      the settings, secrets left out
/debug/queue  what waits and what is held
and the service grpc.health.v1.Health
";

/// What the pages show.
pub struct Admin<S> {
    pub state: watch::Receiver<readiness::State>,
    pub judge: Arc<OnceLock<Arc<S>>>,
    pub configz: String,
}

/// Serves until it is dropped.
pub async fn serve<S: Scorer, H>(listener: TcpListener, admin: Admin<S>, health: H) -> std::io::Result<()>
where
    H: Service<Request<axum::body::Body>, Error = Infallible> + NamedService + Clone + Send + Sync + 'static,
    H::Response: IntoResponse,
    H::Future: Send + 'static,
{
    let router = Router::new()
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .route("/configz", get(configz))
        .route("/debug/queue", get(queue))
        .route_service(&format!("/{}/{{method}}", H::NAME), health)
        .fallback(async || (StatusCode::NOT_FOUND, ROUTES))
        .with_state(Arc::new(admin));
    let listener = listener.tap_io(|stream| {
        // A connection that has gone by now says so when it is read.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, router).await
}

async fn livez<S: Scorer>(State(admin): State<Arc<Admin<S>>>) -> Response {
    let state = *admin.state.borrow();
    (status(state.is_alive()), state.lines()).into_response()
}

async fn readyz<S: Scorer>(State(admin): State<Arc<Admin<S>>>) -> Response {
    let state = *admin.state.borrow();
    (status(state.is_ready()), state.lines()).into_response()
}

fn status(well: bool) -> StatusCode {
    if well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}

async fn metrics<S: Scorer>(State(admin): State<Arc<Admin<S>>>) -> Response {
    if let Some(judge) = admin.judge.get() {
        judge.observe();
    }
    ([(header::CONTENT_TYPE, telemetry::CONTENT_TYPE)], telemetry::render()).into_response()
}

async fn configz<S: Scorer>(State(admin): State<Arc<Admin<S>>>) -> String {
    admin.configz.clone()
}

async fn queue<S: Scorer>(State(admin): State<Arc<Admin<S>>>) -> Response {
    match admin.judge.get() {
        Some(judge) => Json(judge.load()).into_response(),
        None => (StatusCode::SERVICE_UNAVAILABLE, "the model is loading\n").into_response(),
    }
}
