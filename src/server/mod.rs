//! gRPC front end: a thin translation to `service`. It checks what only a wire message can get wrong (an unknown
//! enumeration value, a message that is too large) and adds no rule of judging.

#[doc(hidden)] // Public for fuzz/ only.
pub mod convert;
mod deadline;
mod grpc;
mod handshake;
mod run;
mod status;

#[cfg(test)]
mod tests;

/// Messages, client and server generated from `proto/prism/judge/v1/judge.proto`.
pub mod pb {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::large_enum_variant)]
    tonic::include_proto!("prism.judge.v1");

    /// The compiled contract, for reflection.
    pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
}

pub use grpc::Scorer;
pub use run::{ServeError, ServerOptions, run};

/// Largest message in bytes, in both directions.
pub const MESSAGE_LIMIT: usize = 16 << 20;
