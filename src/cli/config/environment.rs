//! Settings as variables: `PRISM_JUDGE_` and the key in capitals.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use super::Found;
use super::key::Key;
use crate::model::registry::CACHE_VARIABLE;
use crate::near;

/// Start of the name of every variable of ours.
pub const PREFIX: &str = "PRISM_JUDGE_";

/// Names the configuration file of the server.
const CONFIG: &str = "PRISM_JUDGE_CONFIG";

/// What the Python client reads: where it runs beside the server, these are no misspelt settings. Its key is not among
/// them: whoever gives that to a server means `PRISM_JUDGE_API_KEYS`.
const CLIENT: [&str; 3] = ["PRISM_JUDGE_URL", "PRISM_JUDGE_PERSONA", "PRISM_JUDGE_TIMEOUT"];

/// Our variables. An empty one is none: that is what compose files and unit files make of one that is not set.
#[derive(Clone, Debug, Default)]
pub struct Environment(BTreeMap<String, OsString>);

impl Environment {
    pub fn of_process() -> Self {
        Self::of(std::env::vars_os())
    }

    pub fn of(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let named = variables.into_iter().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        Self(named.filter(|(name, value)| name.starts_with(PREFIX) && !value.is_empty()).collect())
    }

    /// The configuration file.
    pub fn file(&self) -> Option<PathBuf> {
        self.0.get(CONFIG).map(PathBuf::from)
    }

    /// The settings among the variables; `all` if every variable of ours has to be one.
    pub(super) fn read(&self, keys: &[Key], all: bool) -> Found {
        let by_name: BTreeMap<String, &Key> = keys.iter().map(|key| (key.variable(), key)).collect();
        let mut found = Found::default();
        for (name, value) in &self.0 {
            if let Some(key) = by_name.get(name) {
                match key.check(value) {
                    Ok(()) => _ = found.values.insert(key.word().to_owned(), value.clone()),
                    Err(reason) => found.problems.push(format!("{name}={}: {reason}", key.shown_short(value))),
                }
            } else if all
                && ![CONFIG, CACHE_VARIABLE].contains(&name.as_str())
                && !CLIENT.contains(&name.as_str())
                && !is_service_link(name, value)
            {
                let meant = near::meant(name, by_name.keys().map(String::as_str));
                found.problems.push(format!("{name} is no variable of the server; nearest: {meant}"));
            }
        }
        found
    }
}

/// Kubernetes tells every container of the Services around it by variables. Those of a Service that is called
/// `prism-judge`, or `prism-judge-` and more, begin as ours do.
fn is_service_link(name: &str, value: &OsStr) -> bool {
    let words: Vec<&str> = name.split('_').collect();
    let port = |word: &str| word.parse::<u16>().is_ok();
    (2..words.len()).any(|start| match &words[start..] {
        ["SERVICE", "HOST"] | ["SERVICE", "PORT", ..] => true,
        ["PORT"] => value.to_string_lossy().contains("://"),
        ["PORT", number, "TCP" | "UDP" | "SCTP"] => port(number),
        ["PORT", number, "TCP" | "UDP" | "SCTP", "PROTO" | "PORT" | "ADDR"] => port(number),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kubernetes_says_of_services_is_not_taken_for_a_setting() {
        for (name, value) in [
            ("PRISM_JUDGE_SERVICE_HOST", "10.0.0.1"),
            ("PRISM_JUDGE_SERVICE_PORT", "50051"),
            ("PRISM_JUDGE_SERVICE_PORT_GRPC", "50051"),
            ("PRISM_JUDGE_PORT", "tcp://10.0.0.1:50051"),
            ("PRISM_JUDGE_PORT_50051_TCP", "tcp://10.0.0.1:50051"),
            ("PRISM_JUDGE_PORT_50051_TCP_PROTO", "tcp"),
            ("PRISM_JUDGE_PORT_50051_TCP_PORT", "50051"),
            ("PRISM_JUDGE_PORT_50051_TCP_ADDR", "10.0.0.1"),
            ("PRISM_JUDGE_ADMIN_SERVICE_HOST", "10.0.0.1"),
            ("PRISM_JUDGE_ADMIN_PORT", "tcp://10.0.0.1:9090"),
            ("PRISM_JUDGE_ADMIN_PORT_9090_TCP_ADDR", "10.0.0.1"),
        ] {
            assert!(is_service_link(name, value.as_ref()), "{name}");
        }
        for (name, value) in [
            ("PRISM_JUDGE_PORT", "50051"),
            ("PRISM_JUDGE_ADMIN_PORT", "9090"),
            ("PRISM_JUDGE_LISTEN", "tcp://10.0.0.1:50051"),
            ("PRISM_JUDGE_PORT_GRPC_TCP", "tcp"),
        ] {
            assert!(!is_service_link(name, value.as_ref()), "{name}");
        }
    }
}
