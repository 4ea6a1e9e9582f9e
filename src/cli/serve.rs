//! `prism-judge serve`: the judge over gRPC and HTTP.

use std::fmt::Display;
use std::io;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use super::audit_args::AuditArgs;
use super::config::{self, ConfigArgs, Settings};
use super::engine_args::EngineArgs;
use super::judge_args::JudgeArgs;
use super::persona_args::PersonaArgs;
use super::redis_args::RedisArgs;
use super::server_args::ServerArgs;
use super::telemetry_args::TelemetryArgs;
use super::{CliError, Outcome, exit, output};
use crate::persona::{Personas, Skipped};
use crate::server::{self, Ports, ServeError};
use crate::service::{Judge, JudgeConfig, JudgeError};
use crate::telemetry::{self, log, trace};

const EXAMPLES: &str = "\
Examples:
  prism-judge serve
  prism-judge serve --config prism-judge.toml
  prism-judge serve --print-config > prism-judge.toml
  prism-judge serve --listen 0.0.0.0:50051 --api-keys keys.toml \\
    --tls-cert cert.pem --tls-key key.pem
  prism-judge serve --personas personas/
  prism-judge serve --reflection &
  grpcurl -plaintext -d '{\"candidate\":{\"response\":\"Yes! Who else is in?\"},
    \"persona\":{\"description\":\"Big Five focus: Extraversion = high\"}}' \\
    127.0.0.1:50051 prism.judge.v1.JudgeService/Score
  curl 127.0.0.1:8080/v1/score -H 'content-type: application/json' \\
    -d '{\"candidate\":{\"response\":\"Yes! Who else is in?\"},
    \"persona\":{\"description\":\"Big Five focus: Extraversion = high\"}}'
  curl 127.0.0.1:50052/readyz; curl 127.0.0.1:50052/metrics

--some-key, the variable PRISM_JUDGE_SOME_KEY and some_key in the file are the
same setting; a flag goes before a variable, a variable before the file.

The ports open at once; until the model is loaded and has passed its
self-check, /readyz and the health service say so and calls get UNAVAILABLE.
SIGTERM or Ctrl-C: not ready, wait --drain-delay-s, finish the calls in flight
for --drain-timeout-s at most, exit 0. A second one ends at once.";

/// How long threads that still compute may hold up the end of the process.
const THREADS_END: Duration = Duration::from_millis(200);

/// How long spans that are still to be sent may.
const SPANS_END: Duration = Duration::from_secs(1);
/// How long the records of the last calls may take to reach the audit file.
const AUDIT_END: Duration = Duration::from_secs(5);

/// Judge over gRPC and HTTP.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    config: ConfigArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    redis: RedisArgs,
    #[command(flatten)]
    audit: AuditArgs,
    #[command(flatten)]
    personas: PersonaArgs,
    #[command(flatten)]
    judge: JudgeArgs,
    #[command(flatten)]
    telemetry: TelemetryArgs,
}

impl Args {
    /// Whether the settings go together, as far as that can be said without the model, any other file or a port.
    pub fn check(&self) -> Result<(), CliError> {
        config::all([
            self.server.check(),
            self.engine.engine().map(drop),
            self.redis.check(),
            self.audit.settings().map(drop),
            self.judge.check(),
        ])
    }
}

/// Runs the subcommand with the settings that `args` was made from.
pub fn run(args: &Args, settings: &Settings) -> Result<Outcome, CliError> {
    args.check()?;
    let level = log::by_variable().map_err(CliError::Setting)?;
    let settings = match &level {
        Some(level) => &settings.clone().overruled("log_level", level, log::VARIABLE),
        None => settings,
    };
    if args.config.print_config {
        return output::print(&settings.to_toml()).map(|()| Outcome::Done);
    }
    let (engine, cache) = (args.engine.engine()?, args.engine.cache());
    let options = args.server.options(settings.to_toml())?;
    let redis = args.redis.settings()?;
    let personas = args.personas.open()?;
    let config = JudgeConfig { engine, cache, redis, ..args.judge.config()? };
    let filter = log::filter(level.as_deref().unwrap_or(&args.telemetry.log_level)).map_err(CliError::Setting)?;
    log::init(args.telemetry.log_format, filter).map_err(|error| CliError::Failed(error.to_string()))?;
    telemetry::install().map_err(|error| CliError::Failed(error.to_string()))?;
    personas.iter().for_each(tell_personas);
    let (audit, audit_guard) = args.audit.open()?.unzip();
    raise_file_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| failed("cannot start the server", error))?;
    let served = runtime.block_on(async {
        let stop = stop_signal().map_err(|error| failed("cannot watch signals", error))?;
        let traces = args.telemetry.otlp().as_ref().map(trace::start).transpose();
        let traces = traces.map_err(|error| CliError::Setting(error.to_string()))?;
        let judge = bind(&args.server.listen).await?;
        let http = bind_if(args.server.http()).await?;
        let admin = bind_if(args.server.admin()).await?;
        let default_persona = args.server.default_persona.clone();
        let load = move || {
            let judge = Judge::open(&config).map_err(CliError::from)?;
            let judge = match personas {
                Some(personas) => judge.knowing(personas)?,
                None => judge,
            };
            judge.self_check().map_err(|error| failed("the model does not pass its self-check", error))?;
            if let Some(id) = default_persona {
                let unknown = |error: JudgeError| CliError::Setting(format!("--default-persona {id}: {error}"));
                judge.persona(&id).map_err(unknown)?;
            }
            // From here on: the self-check is nobody's call.
            Ok(match audit {
                Some(audit) => judge.recorded_by(audit),
                None => judge,
            })
        };
        let served = server::run(Ports { judge, http, admin }, load, options, stop).await;
        if let Some(traces) = traces {
            traces.finish(SPANS_END).await;
        }
        served.map_err(|error| match error {
            ServeError::Load(error) => error,
            ServeError::Setup(_) => CliError::Failed(error.to_string()),
        })
    });
    runtime.shutdown_timeout(THREADS_END);
    if let Some(Err(error)) = audit_guard.map(|guard| guard.close(AUDIT_END)) {
        tracing::error!("{error}");
    }
    served.map(|()| Outcome::Done)
}

/// Says which personas there are, and what lies beside them.
fn tell_personas(personas: &Personas) {
    let registry = personas.now();
    tracing::info!("{} personas have an id", registry.len());
    for Skipped { file, reason } in registry.skipped() {
        tracing::info!("{file} is not read as a persona: {reason}");
    }
}

fn failed(what: &str, error: impl Display) -> CliError {
    CliError::Failed(format!("{what}: {error}"))
}

async fn bind(address: &str) -> Result<TcpListener, CliError> {
    TcpListener::bind(address).await.map_err(|error| failed(&format!("cannot listen on {address}"), error))
}

async fn bind_if(address: Option<&str>) -> Result<Option<TcpListener>, CliError> {
    match address {
        Some(address) => bind(address).await.map(Some),
        None => Ok(None),
    }
}

/// A file for every connection: the limit that shells and service managers start with is 1,024, and the hard one is what
/// the administrator allows. Where it cannot be raised, connections beyond it are refused as they come.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Resolves at SIGTERM or Ctrl-C; the next one ends the process at once. The handlers are in place when this returns.
fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut either = async move || {
        tokio::select! {
            _ = terminate.recv() => exit::TERMINATED,
            _ = interrupt.recv() => exit::INTERRUPTED,
        }
    };
    Ok(async move {
        either().await;
        tokio::spawn(async move {
            let status = either().await;
            tracing::warn!("asked to stop a second time: ending at once");
            std::process::exit(status.into());
        });
    })
}
