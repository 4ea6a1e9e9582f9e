//! Spans to an OpenTelemetry collector, by OTLP over gRPC. A call has one span; each forward pass that it took part in
//! has one of its own, to which the call's span is linked. They hold sizes, codes and names from closed sets.

mod batch;
mod call;
mod export;
mod parent;
mod sampling;

use std::sync::OnceLock;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, SpanExporter as _};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

pub use batch::BatchSpan;
pub use call::CallSpan;
pub(super) use parent::parent;

use export::{Message, Processor};
use sampling::Sampling;

/// Spans that may wait for the collector; beyond that they are dropped and counted.
const QUEUE: usize = 4096;

static TRACER: OnceLock<SdkTracer> = OnceLock::new();

/// Where spans go.
#[derive(Clone, Debug, PartialEq)]
pub struct OtlpSettings {
    /// The collector's address, `http://HOST:PORT`.
    pub endpoint: String,
    /// Share of the calls that are traced where the caller has not decided, from 0 to 1.
    pub sample_ratio: f64,
}

/// Why there are no spans.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    #[error("traces cannot be sent to {endpoint}: {reason}")]
    Exporter { endpoint: String, reason: ExporterBuildError },
    #[error("traces are set up already")]
    Twice,
}

/// Sends what is left when the process ends.
#[must_use]
pub struct TraceGuard {
    messages: mpsc::Sender<Message>,
    task: JoinHandle<()>,
}

/// Starts to trace. Needs a tokio runtime, on which spans are sent. The collector need not be there.
pub fn start(settings: &OtlpSettings) -> Result<TraceGuard, TraceError> {
    let OtlpSettings { endpoint, sample_ratio } = settings;
    let service = std::env::var("OTEL_SERVICE_NAME").unwrap_or_else(|_| "prism-judge".to_owned());
    let resource = Resource::builder()
        .with_service_name(service)
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build();
    let exporter = SpanExporter::builder().with_tonic().with_endpoint(endpoint).with_timeout(export::PATIENCE).build();
    let mut exporter = exporter.map_err(|reason| TraceError::Exporter { endpoint: endpoint.clone(), reason })?;
    exporter.set_resource(&resource);
    let (messages, inbox) = mpsc::channel(QUEUE);
    let provider = SdkTracerProvider::builder()
        .with_span_processor(Processor::new(messages.clone()))
        .with_sampler(Sampling::new(*sample_ratio))
        .with_resource(resource)
        .build();
    TRACER.set(provider.tracer("prism-judge")).map_err(|_| TraceError::Twice)?;
    Ok(TraceGuard { messages, task: tokio::spawn(export::run(inbox, exporter)) })
}

impl TraceGuard {
    /// Sends the spans so far, for `patience` at most, and ends.
    pub async fn finish(self, patience: Duration) {
        let (flushed, done) = oneshot::channel();
        let flush = async {
            if self.messages.send(Message::Flush(flushed)).await.is_ok() {
                // One that is gone has nothing left to send.
                let _ = done.await;
            }
        };
        if tokio::time::timeout(patience, flush).await.is_err() {
            tracing::warn!("spans were still unsent after {} ms; they are given up", patience.as_millis());
        }
        self.task.abort();
    }
}

fn tracer() -> Option<&'static SdkTracer> {
    TRACER.get()
}
