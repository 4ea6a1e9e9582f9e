//! The flags of log lines and spans, for the server.

use clap::Args;

use crate::telemetry::log::{self, LogFormat};
use crate::telemetry::trace::OtlpSettings;

/// What the server tells of itself, besides its metrics.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Logs and traces")]
pub struct TelemetryArgs {
    /// How log lines look on standard error: for people, or one JSON object each; auto is json unless it is a terminal.
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "auto")]
    pub log_format: LogFormat,
    /// What is logged: error, warn, info, debug, trace or off, or a list of target=level. RUST_LOG goes before it.
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = level)]
    pub log_level: String,
    /// Send spans to the OpenTelemetry collector at this address, by OTLP over gRPC.
    #[arg(long, value_name = "URL", value_parser = endpoint)]
    otlp_endpoint: Option<String>,
    /// Share of the calls that are traced, from 0 to 1, where the caller's traceparent has not decided.
    #[arg(long, value_name = "SHARE", default_value = "1", value_parser = share)]
    otlp_sample_ratio: f64,
}

impl TelemetryArgs {
    /// Where spans go; None: nowhere.
    pub fn otlp(&self) -> Option<OtlpSettings> {
        let endpoint = self.otlp_endpoint.clone()?;
        Some(OtlpSettings { endpoint, sample_ratio: self.otlp_sample_ratio })
    }
}

fn level(text: &str) -> Result<String, String> {
    log::filter(text).map(|_| text.to_owned())
}

fn endpoint(text: &str) -> Result<String, String> {
    let authority = text.strip_prefix("http://").map(|rest| rest.trim_end_matches('/'));
    match authority.and_then(|authority| authority.rsplit_once(':')) {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(text.to_owned()),
        _ => Err(
            "it must be http://HOST:PORT, for example http://127.0.0.1:4317; TLS is the work of a collector beside \
                  the server"
                .to_owned(),
        ),
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("it must be a number from 0 to 1".to_owned()),
    }
}
