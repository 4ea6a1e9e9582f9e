//! gRPC front end: a thin translation to `service`.
