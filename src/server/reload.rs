//! Looks at the files of certificates, keys, policies and personas from time to time. What cannot be used is told, and
//! changes nothing.

use std::fmt::Display;
use std::sync::{Arc, OnceLock};
use std::time::UNIX_EPOCH;

use super::{Scorer, ServerOptions, Tls};
use crate::telemetry::catalogue;

/// Runs until it is dropped. The personas are the judge's, which may still be loading.
pub async fn watch<S: Scorer>(options: ServerOptions, judge: Arc<OnceLock<Arc<S>>>) {
    if let Some(tls) = &options.tls {
        show_expiry(tls);
    }
    loop {
        tokio::time::sleep(options.reload).await;
        let (options, judge) = (options.clone(), judge.get().cloned());
        // Files may lie on a network. A panic has been reported by the runtime.
        let _ = tokio::task::spawn_blocking(move || look(&options, judge.as_deref())).await;
    }
}

fn look(options: &ServerOptions, judge: Option<&impl Scorer>) {
    if let Some(tls) = &options.tls {
        catalogue::TLS_RELOADS.increment([told("certificates", tls.reload())]);
        show_expiry(tls);
    }
    if let Some(keys) = &options.keys {
        catalogue::AUTH_RELOADS.increment([told("API keys", keys.reload())]);
    }
    if let Some(reloaded) = judge.and_then(Scorer::reload_personas) {
        catalogue::PERSONA_RELOADS.increment([told("personas", reloaded)]);
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
