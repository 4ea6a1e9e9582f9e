//! What the log says of a server that may not open as many files as there are connections.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::io::Read as _;
use std::net::TcpStream;
use std::process::Command;

use support::cli::binary;
use support::server::{Server, tiny_model};

/// `serve` that may open so many files.
fn with_files(files: u32, args: &[&str]) -> Command {
    let serve = binary(
        &[&["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"], args]
            .concat(),
    );
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n \"$0\" && exec \"$@\"", &files.to_string()]);
    command.arg(serve.get_program()).args(serve.get_args());
    for (name, _) in serve.get_envs() {
        command.env_remove(name);
    }
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn too_few_files_are_told_at_the_start_and_a_flood_of_failures_is_a_line_in_a_while() {
    let folder = tempfile::tempdir().unwrap();
    let Some(model) = tiny_model(folder.path()) else { return };
    // Silent connections go after a second: until then there is no file for the others.
    let flags = ["--model", model.to_str().unwrap(), "--max-connections", "500", "--handshake-timeout-ms", "1000"];
    let server = Server::of(&mut with_files(64, &flags));
    let told = server.logged("this process may open 64 files, and ");
    assert!(told.starts_with("--max-connections 500 may need 820: "), "{told}");
    let server = server.ready().await;
    let mut streams: Vec<TcpStream> = (0..150).map(|_| TcpStream::connect(&server.address).unwrap()).collect();
    server.logged("a connection to the gRPC port cannot be taken: ");
    // The first ones are closed, which makes room; more failures have come by then.
    streams[0].read_to_end(&mut Vec::new()).unwrap();
    drop(streams);
    let (_, metrics) = server.get("/metrics");
    let failures = "prism_judge_connections_refused_total{reason=\"accept_error\"} ";
    let failures: usize = metrics.lines().find_map(|line| line.strip_prefix(failures)).unwrap().parse().unwrap();
    server.signal("TERM");
    let lines = 1 + server.log.iter().filter(|line| line.contains("cannot be taken: ")).count();
    assert!(lines < failures, "{lines} lines of {failures} failures");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_are_enough_are_not_mentioned() {
    let folder = tempfile::tempdir().unwrap();
    let Some(model) = tiny_model(folder.path()) else { return };
    let flags = ["--model", model.to_str().unwrap(), "--max-connections", "10"];
    let server = Server::of(&mut with_files(330, &flags)).ready().await;
    server.signal("TERM");
    let lines: Vec<String> = server.log.iter().collect();
    assert!(!lines.iter().any(|line| line.contains("this process may open")), "{lines:?}");
}
