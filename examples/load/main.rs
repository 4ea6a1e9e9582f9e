//! An open-loop load client for `prism-judge serve`.
//!
//! Calls leave at the times that the rate demands, whether or not earlier ones have come back, and latency counts from
//! those times: a server that stalls cannot hide the calls that it held up. Progress goes to standard error, the table
//! or one JSON object to standard output.

mod calls;
mod connection;
mod content;
mod memory;
mod report;
mod stream;
mod traffic;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use tonic::codegen::http::HeaderValue;

use stream::Stream;

const EXAMPLES: &str = "\
Examples:
  load rate=2                           2 calls a second, Poisson, all different
  load rate=max,connections=8,distinct=16,candidates=8
                                        closed loop over 16 calls that repeat
  load rate=1,lane=guard rate=0.1,lane=train,candidates=64,start=20
                                        a burst of training after 20 s
  load rate=50,deadline=5-200 --pid 4711 --json > result.json
  load rate=5,lane=guard --api-key KEY   a server that has --api-keys

Keys of a stream (all optional):
  name, lane=guard|train|batch, cache=use|refresh|off
  rate=N calls a second, or max: the next call when one is answered
  arrivals=poisson|fixed, connections=N, in_flight=N (of each, with rate=max)
  candidates=N a call, distinct=N different calls (0: every call differs)
  context=WORDS, reply=WORDS, evidence=label_slot|likelihood
  deadline=MS or LOW-HIGH (drawn anew for each call)
  start=S, end=S (of the run), calls=N (stop after so many)

Build it with: cargo build --release --example load";

/// Sends judgements to a server at a given rate and reports latency, rate and status codes.
#[derive(Debug, Parser)]
#[command(name = "load", after_help = EXAMPLES)]
struct Args {
    /// Streams of calls, all at the same time.
    #[arg(required = true, value_name = "KEY=VALUE,...", value_parser = stream::parse)]
    streams: Vec<Stream>,
    /// The server.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:50051")]
    address: String,
    /// Show this key, one of the server's `--api-keys`. Other users of this machine can see it: make one for the test.
    #[arg(long, value_name = "KEY", value_parser = connection::bearer)]
    api_key: Option<HeaderValue>,
    /// How long calls are sent, in seconds.
    #[arg(long, default_value_t = 30.0)]
    seconds: f64,
    /// How long to wait for answers after that, in seconds.
    #[arg(long, default_value_t = 60.0)]
    grace: f64,
    /// Sample the resident memory of this process, the server's.
    #[arg(long)]
    pid: Option<u32>,
    /// Other numbers give other texts and arrival times.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write every call to this file: stream, seconds of sending, latency, status.
    #[arg(long, value_name = "FILE")]
    calls: Option<PathBuf>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("load: {error}");
            ExitCode::FAILURE
        }
    }
}

/// One thread is enough for tens of thousands of calls a second, and leaves the other processors to the server.
#[tokio::main(flavor = "current_thread")]
async fn run(args: &Args) -> Result<(), Box<dyn std::error::Error>> {
    let length = Duration::from_secs_f64(args.seconds);
    let streams: Vec<_> = args.streams.iter().cloned().enumerate().map(|(at, stream)| stream.named(at)).collect();
    let mut tasks = tokio::task::JoinSet::new();
    let mut logs = Vec::new();
    let mut prepared = Vec::new();
    for (index, stream) in streams.iter().enumerate() {
        let connections = connection::open(&args.address, args.api_key.as_ref(), stream.connections).await?;
        let log = calls::Log::default();
        logs.push(log.clone());
        prepared.push((traffic::Traffic::new(stream.clone(), args.seed ^ (index as u64) << 32), connections, log));
    }
    // Connections are open before the first call counts.
    let start = Instant::now();
    let memory = memory::Sampler::start(args.pid, start);
    for (traffic, connections, log) in prepared {
        tasks.spawn(traffic.run(connections, log, start, length));
    }
    let progress = tokio::spawn(report::progress(streams.clone(), logs.clone(), start, length));
    let all = async { while tasks.join_next().await.is_some() {} };
    let finished = tokio::time::timeout(length + Duration::from_secs_f64(args.grace), all).await.is_ok();
    progress.abort();
    let calls: Vec<Vec<calls::Call>> = logs.iter().map(calls::Log::take).collect();
    if let Some(path) = &args.calls {
        report::write_calls(path, &streams, &calls)?;
    }
    let memory = memory.finish();
    let summary = report::summary(&streams, &calls, &memory, start.elapsed(), finished);
    if args.json {
        println!("{summary}");
    } else {
        print!("{}", report::table(&summary));
    }
    Ok(())
}
