//! The flags of the ports: addresses, TLS, keys, connections, drain.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;

use super::values::whole;
use super::{CliError, config};
use crate::server::{HttpOptions, Keys, PolicyFile, ServerOptions, Switches, Tls, TlsFiles};

/// Addresses, and who may call.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Server")]
pub struct ServerArgs {
    /// Address and port of the gRPC service; port 0 takes a free one, which the log names.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:50051", value_parser = host_and_port)]
    pub listen: String,
    /// Address and port of the HTTP routes of trainers and guardrails, and our own; "off": none.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080", value_parser = host_and_port_or_off)]
    pub http_listen: String,
    /// Address and port of probes and metrics (HTTP, without TLS and keys); "off": none.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:50052", value_parser = host_and_port_or_off)]
    pub admin_listen: String,
    /// Listen on an address that other machines reach although anybody there could read along or call.
    #[arg(long)]
    allow_insecure: bool,
    /// Also offer the reflection service, which tells callers the messages and methods.
    #[arg(long)]
    reflection: bool,
    /// Certificate chain of the server (PEM); turns TLS on.
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate (PEM).
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Certificates of the authority whose clients may connect (PEM); turns mutual TLS on.
    #[arg(long, value_name = "FILE")]
    tls_client_ca: Option<PathBuf>,
    /// API keys, made by `prism-judge keys new` (TOML); every call must show one.
    #[arg(long, value_name = "FILE")]
    api_keys: Option<PathBuf>,
    /// Policies that checks may name (TOML, a table `[policies.NAME]` each).
    #[arg(long, value_name = "FILE")]
    policies: Option<PathBuf>,
    /// How often the files of certificates, keys, policies and personas are looked at, in seconds.
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = whole(1, 86_400))]
    reload_s: usize,
    /// The id of the persona that is meant where a request to the HTTP port names none.
    #[arg(long, value_name = "ID")]
    pub default_persona: Option<String>,
    /// What is taken off the replies that trainers send to the HTTP port: "none", or some of prompt, markers, end, think.
    #[arg(long, value_name = "LIST", default_value = "prompt,markers,end,think", value_parser = strip)]
    http_strip: String,
    /// Connections at a time to each port; one more is closed at once.
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = whole(1, 1_000_000))]
    max_connections: usize,
    /// Calls of one connection at a time; more wait in the client.
    #[arg(long, value_name = "N", default_value_t = 2048, value_parser = whole(1, 1_000_000))]
    max_streams: usize,
    /// How long a new connection may take for TLS, and again for its first words, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 3000, value_parser = whole(1, 600_000))]
    handshake_timeout_ms: usize,
    /// How long calls are still taken after SIGTERM, in seconds, while load balancers learn of it.
    #[arg(long, value_name = "S", default_value_t = 0, value_parser = whole(0, 3600))]
    drain_delay_s: usize,
    /// How long calls in flight may take after that, in seconds; then they get UNAVAILABLE.
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = whole(0, 86_400))]
    drain_timeout_s: usize,
}

impl ServerArgs {
    /// Whether the settings go together, without reading a file.
    pub fn check(&self) -> Result<(), CliError> {
        config::all([self.tls_files().map(drop), self.check_exposure(), self.check_ports()])
    }

    /// The server's options, with certificates, keys and policies read.
    pub fn options(&self, configz: String) -> Result<ServerOptions, CliError> {
        let setting = |error: &dyn std::fmt::Display| CliError::Setting(error.to_string());
        let tls = self.tls_files()?.map(Tls::open).transpose().map_err(|error| setting(&error))?;
        let keys = self.api_keys.as_deref().map(Keys::open).transpose().map_err(|error| setting(&error))?;
        let policies = self.policies.as_deref().map(PolicyFile::open).transpose().map_err(|error| setting(&error))?;
        Ok(ServerOptions {
            reflection: self.reflection,
            http: HttpOptions { default_persona: self.default_persona.clone(), strip: self.strip()? },
            max_connections: self.max_connections,
            max_streams: u32::try_from(self.max_streams).unwrap_or(u32::MAX),
            handshake_timeout: Duration::from_millis(self.handshake_timeout_ms as u64),
            drain_delay: Duration::from_secs(self.drain_delay_s as u64),
            drain_timeout: Duration::from_secs(self.drain_timeout_s as u64),
            tls: tls.map(Arc::new),
            keys: keys.map(Arc::new),
            policies: policies.map(Arc::new),
            reload: Duration::from_secs(self.reload_s as u64),
            configz,
        })
    }

    /// Where the HTTP port listens, if there is one.
    pub fn http(&self) -> Option<&str> {
        Some(self.http_listen.as_str()).filter(|listen| *listen != OFF)
    }

    /// Where the admin port listens, if there is one.
    pub fn admin(&self) -> Option<&str> {
        Some(self.admin_listen.as_str()).filter(|listen| *listen != OFF)
    }

    fn strip(&self) -> Result<Switches, CliError> {
        Switches::parse(&self.http_strip).map_err(|reason| CliError::Setting(format!("--http-strip: {reason}")))
    }

    fn tls_files(&self) -> Result<Option<TlsFiles>, CliError> {
        let wrong = |message: &str| Err(CliError::Setting(message.to_owned()));
        match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => Ok(Some(TlsFiles {
                certificate: certificate.clone(),
                key: key.clone(),
                client_ca: self.tls_client_ca.clone(),
            })),
            (Some(_), None) => wrong("--tls-cert needs --tls-key, the private key of the certificate"),
            (None, Some(_)) => wrong("--tls-key needs --tls-cert, the certificate of the key"),
            (None, None) if self.tls_client_ca.is_some() => {
                wrong("--tls-client-ca needs --tls-cert and --tls-key: without TLS no client can show a certificate")
            }
            (None, None) => Ok(None),
        }
    }

    /// The ports by their flags, without those that are off.
    fn ports(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let ports =
            [("--listen", &self.listen), ("--http-listen", &self.http_listen), ("--admin-listen", &self.admin_listen)];
        ports.into_iter().map(|(flag, address)| (flag, address.as_str())).filter(|(_, address)| *address != OFF)
    }

    fn check_ports(&self) -> Result<(), CliError> {
        let ports: Vec<_> = self.ports().filter(|(_, address)| !address.ends_with(":0")).collect();
        for (at, (flag, address)) in ports.iter().enumerate() {
            if let Some((before, _)) = ports[..at].iter().find(|(_, taken)| taken == address) {
                return Err(CliError::Setting(format!("{before} and {flag} are both {address}: give each a port")));
            }
        }
        Ok(())
    }

    /// A port that others reach must be a decision.
    fn check_exposure(&self) -> Result<(), CliError> {
        if self.tls_cert.is_some() || self.api_keys.is_some() || self.allow_insecure {
            return Ok(());
        }
        let mut callers = self.ports().filter(|(flag, _)| *flag != "--admin-listen");
        match callers.find(|(_, address)| !is_loopback(address)) {
            None => Ok(()),
            Some((flag, address)) => Err(CliError::Setting(format!(
                "{flag} {address} can be reached by other machines, and anybody there could call: give --api-keys or \
                 --tls-cert and --tls-key, or say --allow-insecure if the network takes care of that"
            ))),
        }
    }
}

/// The value that turns a port off.
const OFF: &str = "off";

fn host_and_port_or_off(text: &str) -> Result<String, String> {
    if text == OFF {
        return Ok(text.to_owned());
    }
    host_and_port(text).map_err(|reason| format!("{reason}, or \"{OFF}\""))
}

fn host_and_port(text: &str) -> Result<String, String> {
    let example = "it must be HOST:PORT, for example 127.0.0.1:50051 or [::1]:50051";
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(text.to_owned()),
        _ => Err(example.to_owned()),
    }
}

fn strip(text: &str) -> Result<String, String> {
    Switches::parse(text).map(|_| text.to_owned())
}

/// Whether only this machine reaches the address.
fn is_loopback(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_loopback() {
        for address in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1"] {
            assert!(is_loopback(address), "{address}");
        }
        for address in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "judge:1", "127.0.0.1.example:1"] {
            assert!(!is_loopback(address), "{address}");
        }
    }
}
