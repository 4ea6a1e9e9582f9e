//! Which spans are kept.

use opentelemetry::trace::{Link, SpanKind, TraceId};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::{Sampler, SamplingResult, ShouldSample};

use super::batch;

/// A call's span if its caller says so, else by chance; a batch's always, since it is only begun for calls that are kept.
#[derive(Clone, Debug)]
pub struct Sampling(Sampler);

impl Sampling {
    pub fn new(ratio: f64) -> Self {
        Self(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(ratio))))
    }
}

impl ShouldSample for Sampling {
    fn should_sample(
        &self,
        parent: Option<&Context>,
        trace: TraceId,
        name: &str,
        kind: &SpanKind,
        attributes: &[KeyValue],
        links: &[Link],
    ) -> SamplingResult {
        let sampler = if name == batch::NAME { &Sampler::AlwaysOn } else { &self.0 };
        sampler.should_sample(parent, trace, name, kind, attributes, links)
    }
}
