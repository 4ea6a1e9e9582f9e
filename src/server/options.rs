//! How the server behaves.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;

use super::{HttpOptions, Keys, PolicyFile, Tls};

/// The ports, already open, so that whoever opens them knows their numbers.
pub struct Ports {
    /// gRPC.
    pub judge: TcpListener,
    /// The HTTP routes of trainers and guardrails, and our own.
    pub http: Option<TcpListener>,
    /// HTTP and gRPC health for probes and Prometheus; never encrypted, asks for no key.
    pub admin: Option<TcpListener>,
}

/// How the server behaves.
#[derive(Clone)]
pub struct ServerOptions {
    /// Whether the reflection service is offered.
    pub reflection: bool,
    /// What the HTTP port does where a request does not say.
    pub http: HttpOptions,
    /// Connections at a time to each port; one more is closed at once.
    pub max_connections: usize,
    /// Calls of one connection at a time.
    pub max_streams: u32,
    /// How long a new connection may take for TLS, and again for its first words.
    pub handshake_timeout: Duration,
    /// How long calls are still taken after the stop, while load balancers learn of it.
    pub drain_delay: Duration,
    /// How long calls in flight may take after that.
    pub drain_timeout: Duration,
    /// None: plain text.
    pub tls: Option<Arc<Tls>>,
    /// None: everybody may call.
    pub keys: Option<Arc<Keys>>,
    /// None: checks bring their own policy.
    pub policies: Option<Arc<PolicyFile>>,
    /// How often the files of certificates, keys, policies and personas are looked at.
    pub reload: Duration,
    /// What `/configz` shows.
    pub configz: String,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            reflection: false,
            http: HttpOptions::default(),
            max_connections: 4096,
            // As many as one-item calls of a training step come through one channel of a Python client.
            max_streams: 2048,
            // Clients speak at once, and one that is silent holds up the stop.
            handshake_timeout: Duration::from_secs(3),
            drain_delay: Duration::ZERO,
            drain_timeout: Duration::from_secs(10),
            tls: None,
            keys: None,
            policies: None,
            reload: Duration::from_secs(10),
            configz: String::new(),
        }
    }
}
