//! The caller's own span, from the headers of W3C Trace Context.

use http::HeaderMap;
use opentelemetry::Context;
use opentelemetry::propagation::{Extractor, TextMapPropagator as _};
use opentelemetry_sdk::propagation::TraceContextPropagator;

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(|value| value.to_str().ok())
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(http::HeaderName::as_str).collect()
    }
}

/// The context that `traceparent` and `tracestate` name; an empty one where they do not.
pub fn parent(headers: &HeaderMap) -> Context {
    TraceContextPropagator::new().extract_with_context(&Context::new(), &Headers(headers))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use opentelemetry::trace::TraceContextExt as _;

    use super::*;

    fn with(parent_header: &'static str) -> Context {
        let mut headers = HeaderMap::new();
        headers.insert("traceparent", HeaderValue::from_static(parent_header));
        headers.insert("tracestate", HeaderValue::from_static("vendor=1"));
        parent(&headers)
    }

    /// The header is the specification's own example.
    #[test]
    fn the_callers_span_is_read_from_its_headers() {
        let context = with("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
        let span = context.span();
        let span = span.span_context();
        assert_eq!(span.trace_id().to_string(), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(span.span_id().to_string(), "b7ad6b7169203331");
        assert!(span.is_sampled() && span.is_remote());
        assert_eq!(span.trace_state().get("vendor"), Some("1"));
    }

    #[test]
    fn a_header_that_is_no_trace_context_is_nobodys() {
        for wrong in ["", "00-0-0-01", "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "a persona"] {
            assert!(!with(wrong).span().span_context().is_valid(), "{wrong}");
        }
    }
}
