//! gRPC and HTTP front ends: a thin translation to `service`, and what a server needs around it: connections, TLS, keys,
//! probes, drain. It checks what only a wire message can get wrong and adds no rule of judging.
//!
//! A call: `accept` (connection) -> `front` (who calls, until when) -> `grpc` (messages) -> `service`; and out by `answer`.
//! A call of the HTTP port takes its own front and then the same methods of `grpc`.

mod accept;
mod admin;
mod answer;
mod calls;
#[doc(hidden)] // Public for fuzz/ only.
pub mod convert;
mod deadline;
mod door;
mod front;
mod grpc;
mod handshake;
mod http;
mod keys;
mod life;
mod options;
mod policies;
mod readiness;
mod reload;
mod reward;
mod run;
mod status;
mod tls;
mod upload;

#[cfg(test)]
mod tests;

/// Messages, client and server generated from `proto/prism/judge/v1/judge.proto`.
pub mod pb {
    #![allow(clippy::all, clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    tonic::include_proto!("prism.judge.v1");
    include!(concat!(env!("OUT_DIR"), "/prism.judge.v1.serde.rs"));

    /// The compiled contract, for reflection.
    pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
}

pub use self::http::{HttpOptions, Switches};
pub use grpc::Scorer;
pub use keys::{Caller, Keys, KeysError, Refusal};
pub use options::{Ports, ServerOptions};
pub use policies::{PolicyError, PolicyFile};
pub use run::{ServeError, run};
pub use tls::{Tls, TlsError, TlsFiles};

/// Largest message in bytes, in both directions.
pub const MESSAGE_LIMIT: usize = 16 << 20;
