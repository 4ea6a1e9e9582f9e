//! `prism-judge debug-prefill`: the prompt speed of the forward pass, for scripts that compare it with a peer.

use std::io::{self, BufRead, Write};
use std::time::Instant;

use super::{CliError, Outcome};
use crate::engine::{self, Cancel, Prompt, Read};
use crate::model::registry;
use crate::model::{Decoder, Gguf, TokenId};
use crate::numerics::Numerics;

/// For every line of standard input, run one prompt of N tokens and print how long it took.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A name that `prism-judge models list` shows, or a GGUF file.
    #[arg(long, value_name = "NAME|PATH")]
    model: String,
    /// Tokens of the prompt.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..))]
    tokens: u32,
    /// Threads that run the model.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..))]
    threads: u16,
    /// Tokens of one forward pass, at most.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..))]
    chunk: u32,
    /// Arithmetic of the model.
    #[arg(long, value_enum, value_name = "KIND", default_value = "f32")]
    numerics: Numerics,
}

pub fn run(args: &Args) -> Result<Outcome, CliError> {
    let gguf = Gguf::open(&registry::resolve(&args.model)?)?;
    let decoder = Decoder::load(&gguf, args.numerics, usize::from(args.threads))?;
    let vocabulary = decoder.config().vocabulary as u64;
    // Different tokens all along, and different ones in every round, so that nothing can be reused.
    let token = |round: u64, at: u64| ((round * 7_919 + at * 104_729) % vocabulary) as TokenId;
    let mut output = io::stdout().lock();
    for (round, line) in io::stdin().lock().lines().enumerate() {
        line.map_err(|error| CliError::Failed(format!("standard input: {error}")))?;
        let ids = (0..u64::from(args.tokens)).map(|at| token(round as u64, at)).collect();
        let prompts = [Prompt { ids, read: Read::Next(vec![0]) }];
        let start = Instant::now();
        let answers = engine::run(&decoder, &prompts, args.chunk as usize, &Cancel::default());
        let seconds = start.elapsed().as_secs_f64();
        let answer = answers.and_then(|mut answers| answers.remove(0));
        answer.map_err(|error| CliError::Failed(error.to_string()))?;
        let line = serde_json::json!({ "tokens": args.tokens, "seconds": seconds });
        writeln!(output, "{line}").and_then(|()| output.flush()).map_err(|error| CliError::write(&error))?;
    }
    Ok(Outcome::Done)
}
