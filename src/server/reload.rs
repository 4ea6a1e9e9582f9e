//! Looks at the files of certificates, keys and policies from time to time. What cannot be used is told, and changes nothing.

use std::fmt::Display;
use std::time::UNIX_EPOCH;

use super::{ServerOptions, Tls};
use crate::telemetry::catalogue;

/// Runs until it is dropped.
pub async fn watch(options: ServerOptions) {
    if let Some(tls) = &options.tls {
        show_expiry(tls);
    }
    loop {
        tokio::time::sleep(options.reload).await;
        let options = options.clone();
        // Files may lie on a network. A panic has been reported by the runtime.
        let _ = tokio::task::spawn_blocking(move || look(&options)).await;
    }
}

fn look(options: &ServerOptions) {
    if let Some(tls) = &options.tls {
        catalogue::TLS_RELOADS.increment([told("certificates", tls.reload())]);
        show_expiry(tls);
    }
    if let Some(keys) = &options.keys {
        catalogue::AUTH_RELOADS.increment([told("API keys", keys.reload())]);
    }
    if let Some(policies) = &options.policies {
        catalogue::POLICY_RELOADS.increment([told("policies", policies.reload())]);
    }
}

fn told(what: &str, reloaded: Result<bool, impl Display>) -> &'static str {
    match reloaded {
        Ok(false) => "unchanged",
        Ok(true) => {
            tracing::info!("new {what} are in use");
            "loaded"
        }
        Err(error) => {
            tracing::error!("new {what} cannot be used, the old ones stay: {error}");
            "failed"
        }
    }
}

fn show_expiry(tls: &Tls) {
    let expires = tls.expires().duration_since(UNIX_EPOCH).unwrap_or_default();
    catalogue::TLS_EXPIRY.set([], expires.as_secs_f64());
}
