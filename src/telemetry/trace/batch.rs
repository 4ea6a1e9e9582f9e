//! The span of one forward pass, which many calls share.

use opentelemetry::trace::{Link, Span as _, SpanKind, Tracer as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::Span;

use super::CallSpan;

pub(super) const NAME: &str = "batch";

/// Calls that a batch names, at most; thousands of them would be one large span.
const LINKS: usize = 128;

/// A forward pass under way; the span ends when it is dropped.
pub struct BatchSpan(Option<Span>);

impl BatchSpan {
    /// Begins the span of a pass of `tokens` tokens for these calls, and links each of them to it. Nothing where none of
    /// them is traced.
    pub fn begin<'a>(tokens: usize, calls: impl Iterator<Item = &'a CallSpan>) -> Self {
        let Some(tracer) = super::tracer() else { return Self(None) };
        let calls: Vec<&CallSpan> = calls.filter(|call| call.is_sampled()).collect();
        if calls.is_empty() {
            return Self(None);
        }
        let links =
            calls.iter().filter_map(|call| call.context()).take(LINKS).map(|call| Link::new(call, Vec::new(), 0));
        let span = tracer
            .span_builder(NAME)
            .with_kind(SpanKind::Internal)
            .with_links(links.collect())
            .with_attributes([
                KeyValue::new("prism.tokens", i64::try_from(tokens).unwrap_or(i64::MAX)),
                KeyValue::new("prism.calls.traced", i64::try_from(calls.len()).unwrap_or(i64::MAX)),
            ])
            .start_with_context(tracer, &Context::new());
        calls.iter().for_each(|call| call.link(span.span_context()));
        Self(Some(span))
    }
}

impl Drop for BatchSpan {
    fn drop(&mut self) {
        if let Some(span) = &mut self.0 {
            span.end();
        }
    }
}
