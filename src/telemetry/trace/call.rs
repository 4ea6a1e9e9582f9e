//! The span of one call.

use opentelemetry::trace::{SpanContext, SpanKind, Status, TraceContextExt as _, Tracer as _};
use opentelemetry::{Context, KeyValue};

use crate::telemetry::CallRecord;
use crate::telemetry::record::Sizes;
use crate::telemetry::served::SERVICE;

/// A call's span, or nothing where there is no tracing or the call is not sampled.
#[derive(Debug, Default)]
pub struct CallSpan(Option<Context>);

impl CallSpan {
    /// Begins the span of a call of `method` under the caller's `parent`; `route` is the way it took over HTTP.
    pub fn begin(method: &'static str, route: Option<&'static str>, parent: &Context) -> Self {
        let Some(tracer) = super::tracer() else { return Self(None) };
        let transport = match route {
            Some(route) => KeyValue::new("http.route", route),
            None => KeyValue::new("rpc.system", "grpc"),
        };
        let span = tracer
            .span_builder(method)
            .with_kind(SpanKind::Server)
            .with_attributes([transport, KeyValue::new("rpc.service", SERVICE), KeyValue::new("rpc.method", method)])
            .start_with_context(tracer, parent);
        let context = Context::new().with_span(span);
        let sampled = context.span().span_context().is_sampled();
        Self(sampled.then_some(context))
    }

    pub fn is_sampled(&self) -> bool {
        self.0.is_some()
    }

    /// The trace's id in hexadecimal; empty where the call is not traced.
    pub fn trace_id(&self) -> String {
        self.0.as_ref().map(|context| context.span().span_context().trace_id().to_string()).unwrap_or_default()
    }

    /// Links the call to a forward pass that it takes part in.
    pub(super) fn link(&self, batch: &SpanContext) {
        if let Some(context) = &self.0 {
            context.span().add_link(batch.clone(), Vec::new());
        }
    }

    pub(super) fn context(&self) -> Option<SpanContext> {
        self.0.as_ref().map(|context| context.span().span_context().clone())
    }

    /// Ends the span with what is known of the call.
    pub fn end(&self, code: &'static str, record: &CallRecord) {
        let Some(context) = &self.0 else { return };
        let span = context.span();
        let Sizes { candidates, cached, prompt_tokens, computed_tokens } = record.sizes();
        let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        span.set_attributes([
            KeyValue::new("rpc.grpc.status", code),
            KeyValue::new("prism.lane", record.lane()),
            KeyValue::new("prism.stage", record.stage().name()),
            KeyValue::new("prism.candidates", count(candidates)),
            KeyValue::new("prism.candidates.cached", count(cached)),
            KeyValue::new("prism.tokens.prompt", count(prompt_tokens)),
            KeyValue::new("prism.tokens.computed", count(computed_tokens)),
        ]);
        if code != "OK" {
            span.set_status(Status::error(code));
        }
        span.end();
    }
}
