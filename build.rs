//! Compiles the protobuf contract with `protox`, so that no system `protoc` is needed.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use protox::prost::Message as _;

const PROTO: &str = "proto/prism/judge/v1/judge.proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile([PROTO], ["proto"])?;
    // Kept beside the generated code: the reflection service sends it.
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let bytes = descriptors.encode_to_vec();
    fs::write(out.join("descriptors.bin"), &bytes)?;
    tonic_prost_build::configure().compile_fds(descriptors)?;
    // The JSON mapping of the messages, for the HTTP port. Every field is written, so that a 0 is seen; unknown ones are
    // refused, so that a misspelt field is.
    pbjson_build::Builder::new()
        .register_descriptors(&bytes)?
        .preserve_proto_field_names()
        .emit_fields()
        .build(&[".prism.judge.v1"])?;
    Ok(())
}
