//! The load client of `examples/load`.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// Runs the load example, which cargo builds with the tests; gives what it says of its first stream. It has no timer of
/// its own that could answer for the server.
pub fn load(address: &str, args: &[&str]) -> Value {
    let tests = std::env::current_exe().unwrap();
    let program: PathBuf = tests.parent().unwrap().parent().unwrap().join("examples/load");
    let output = Command::new(&program).args(["--address", address, "--json"]).args(args).output();
    let output = output.unwrap_or_else(|error| {
        panic!("{}: {error}; build it with `cargo build --release --example load`", program.display())
    });
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    summary["streams"][0].clone()
}
