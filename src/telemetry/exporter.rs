//! Metrics in Prometheus' text format.

use std::sync::OnceLock;
use std::time::Duration;

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

use super::{CATALOGUE, Kind, catalogue, process};

/// The type of what [`render`] gives.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// How often samples are filed. Without it they pile up until somebody scrapes.
const PAUSE: Duration = Duration::from_secs(2);

static EXPORTER: OnceLock<Exporter> = OnceLock::new();

struct Exporter {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
}

/// Why there are no metrics.
#[derive(Debug, thiserror::Error)]
#[error("metrics cannot be set up: {0}")]
pub struct InstallError(#[from] BuildError);

/// Starts to record: creates every series of the catalogue. A second call does nothing.
pub fn install() -> Result<(), InstallError> {
    let mut builder = PrometheusBuilder::new();
    for description in CATALOGUE.iter().map(|metric| metric.description()) {
        if let Kind::Histogram(buckets) = description.kind {
            builder = builder.set_buckets_for_metric(Matcher::Full(description.name.to_owned()), buckets)?;
        }
    }
    EXPORTER.get_or_init(|| {
        let recorder = builder.build_recorder();
        CATALOGUE.iter().for_each(|metric| metric.register(&recorder));
        Exporter { handle: recorder.handle(), recorder }
    });
    catalogue::BUILD_INFO.set([env!("CARGO_PKG_VERSION")]);
    Ok(())
}

pub(super) fn recorder() -> Option<&'static PrometheusRecorder> {
    EXPORTER.get().map(|exporter| &exporter.recorder)
}

/// Files samples every few seconds, for as long as it is polled, so that a process that nobody scrapes does not grow.
pub async fn upkeep() {
    loop {
        if let Some(exporter) = EXPORTER.get() {
            exporter.handle.run_upkeep();
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Everything in Prometheus' text format; empty before [`install`]. What a judge holds is as it was last observed.
pub fn render() -> String {
    let Some(exporter) = EXPORTER.get() else { return String::new() };
    process::observe();
    exporter.handle.render()
}
