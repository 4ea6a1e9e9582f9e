//! From the end of a span to the collector: a bounded queue and one task. A collector that is slow or away costs spans,
//! which are counted, and nothing else.

use std::time::Duration;

use opentelemetry::Context;
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanExporter as _, SpanProcessor};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use crate::telemetry::catalogue::TRACE_SPANS;

/// Spans of one message to the collector, at most.
const BATCH: usize = 512;

/// How long the first span of a message waits for company.
const DELAY: Duration = Duration::from_secs(1);

/// How long the collector may take over one message.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// What the task is told.
#[derive(Debug)]
pub enum Message {
    Span(Box<SpanData>),
    /// Send everything before this, then answer.
    Flush(oneshot::Sender<()>),
}

/// Takes spans where they end.
#[derive(Debug)]
pub struct Processor {
    messages: mpsc::Sender<Message>,
}

impl Processor {
    pub fn new(messages: mpsc::Sender<Message>) -> Self {
        Self { messages }
    }
}

impl SpanProcessor for Processor {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        if span.span_context.is_sampled() && self.messages.try_send(Message::Span(Box::new(span))).is_err() {
            TRACE_SPANS.increment(["dropped"]);
        }
    }

    /// The guard flushes, which has to wait.
    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// Sends spans for as long as there is somebody who makes them.
pub async fn run(mut inbox: mpsc::Receiver<Message>, exporter: SpanExporter) {
    let mut reachable = true;
    while let Some(first) = inbox.recv().await {
        let due = Instant::now() + DELAY;
        let (mut spans, mut flush) = (Vec::new(), None);
        let mut next = Some(first);
        while let Some(message) = next.take() {
            match message {
                Message::Span(span) => spans.push(*span),
                Message::Flush(done) => flush = Some(done),
            }
            if flush.is_none() && spans.len() < BATCH {
                next = timeout_at(due, inbox.recv()).await.ok().flatten();
            }
        }
        if !spans.is_empty() {
            reachable = send(&exporter, spans, reachable).await;
        }
        if let Some(done) = flush {
            // Whoever asked may have lost patience.
            let _ = done.send(());
        }
    }
}

/// Whether the collector took the spans. What changes is logged, not every message.
async fn send(exporter: &SpanExporter, spans: Vec<SpanData>, reachable: bool) -> bool {
    let count = spans.len() as u64;
    let sent = match timeout(PATIENCE, exporter.export(spans)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer within {} s", PATIENCE.as_secs())),
    };
    TRACE_SPANS.add([if sent.is_ok() { "exported" } else { "failed" }], count);
    match &sent {
        Err(error) if reachable => tracing::warn!("the trace collector does not take spans: {error}"),
        Ok(()) if !reachable => tracing::info!("the trace collector takes spans again"),
        _ => {}
    }
    sent.is_ok()
}
