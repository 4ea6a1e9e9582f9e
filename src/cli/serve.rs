//! `prism-judge serve`: the judge over gRPC.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use super::audit_args::AuditArgs;
use super::engine_args::EngineArgs;
use super::judge_args::JudgeArgs;
use super::{CliError, Outcome};
use crate::server::{self, ServeError, ServerOptions};
use crate::service::{Judge, JudgeConfig};

const EXAMPLES: &str = "\
Examples:
  prism-judge serve
  prism-judge serve --listen 0.0.0.0:50051 --model judge-7b.gguf
  prism-judge serve --reflection &
  grpcurl -plaintext -d '{\"candidate\":{\"response\":\"Yes! Who else is in?\"},
    \"persona\":{\"description\":\"Big Five focus: Extraversion = high\"}}' \\
    127.0.0.1:50051 prism.judge.v1.JudgeService/Score

The port opens at once; until the model is loaded the health service says
NOT_SERVING and calls get UNAVAILABLE. SIGTERM or Ctrl-C finishes the calls in
flight, for 10 s at most. RUST_LOG sets how much is logged (default info).";

/// How long threads that still compute may hold up the end of the process.
const THREADS_END: Duration = Duration::from_millis(200);

/// How long the records of the last calls may take to reach the audit file.
const AUDIT_END: Duration = Duration::from_secs(5);

/// Judge over gRPC.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Address and port to listen on; port 0 takes a free one, which the log names.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:50051", value_parser = host_and_port)]
    listen: String,
    /// Also offer the reflection service, which tells any caller the messages and methods.
    #[arg(long)]
    reflection: bool,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    audit: AuditArgs,
    #[command(flatten)]
    judge: JudgeArgs,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<Outcome, CliError> {
    let (engine, cache) = (args.engine.engine()?, args.engine.cache());
    let config = JudgeConfig { engine, cache, ..args.judge.config()? };
    let failed = |what: &str, error: &dyn std::fmt::Display| CliError::Failed(format!("{what}: {error}"));
    start_log();
    let (audit, guard) = args.audit.open()?.unzip();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| failed("cannot start the server", &error))?;
    let served = runtime.block_on(async {
        let stop = stop_signal().map_err(|error| failed("cannot watch signals", &error))?;
        let listener = TcpListener::bind(&args.listen)
            .await
            .map_err(|error| failed(&format!("cannot listen on {}", args.listen), &error))?;
        let options = ServerOptions { reflection: args.reflection, ..ServerOptions::default() };
        let load = move || -> Result<Judge, CliError> {
            let judge = Judge::open(&config)?;
            Ok(match audit {
                Some(audit) => judge.recorded_by(audit),
                None => judge,
            })
        };
        server::run(listener, load, options, stop).await.map_err(|error| match error {
            ServeError::Load(error) => error,
            other => CliError::Failed(other.to_string()),
        })
    });
    runtime.shutdown_timeout(THREADS_END);
    if let Some(Err(error)) = guard.map(|guard| guard.close(AUDIT_END)) {
        tracing::error!("{error}");
    }
    served.map(|()| Outcome::Done)
}

/// Resolves at SIGTERM or Ctrl-C. The handlers are in place when this returns.
fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

fn start_log() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        // It would report them on standard error, by a panic if that is what failed.
        .log_internal_errors(false)
        .with_ansi(io::stderr().is_terminal())
        .init();
}

fn host_and_port(text: &str) -> Result<String, String> {
    let example = "it must be HOST:PORT, for example 127.0.0.1:50051 or [::1]:50051";
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(text.to_owned()),
        _ => Err(example.to_owned()),
    }
}
