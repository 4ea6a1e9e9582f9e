//! `prism-judge debug-passes`: full passes over given prompts with nothing shared, for scripts that show what sharing
//! saves. The published script runs each prompt once a label: three passes.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::time::Instant;

use serde::Deserialize;
use serde_json::json;

use super::{CliError, Outcome};
use crate::engine::{self, Cancel, Prompt, Read};
use crate::model::registry;
use crate::model::{Decoder, Gguf, TokenId};
use crate::numerics::Numerics;

/// For every line of standard input, run the prompts of the next candidate of FILE, each on its own, and print how long
/// it took.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What `debug-prompts` printed, for the label slot.
    file: PathBuf,
    /// A name that `prism-judge models list` shows, or a GGUF file.
    #[arg(long, value_name = "NAME|PATH")]
    model: String,
    /// Passes over each prompt.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    passes: u32,
    /// Threads that run the model.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..))]
    threads: u16,
    /// Tokens of one forward pass, at most.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..))]
    chunk: u32,
}

/// A line of `debug-prompts`.
#[derive(Deserialize)]
struct Line {
    group: String,
    candidate: String,
    ids: Vec<TokenId>,
    next: Vec<TokenId>,
}

pub fn run(args: &Args) -> Result<Outcome, CliError> {
    let candidates = candidates(&args.file)?;
    let gguf = Gguf::open(&registry::resolve(&args.model)?)?;
    let decoder = Decoder::load(&gguf, Numerics::F32, usize::from(args.threads))?;
    let mut output = io::stdout().lock();
    for (line, prompts) in io::stdin().lock().lines().zip(candidates) {
        line.map_err(|error| CliError::Failed(format!("standard input: {error}")))?;
        let start = Instant::now();
        let mut tokens = 0;
        for prompt in &prompts {
            for _ in 0..args.passes {
                let alone = std::slice::from_ref(prompt);
                let answers = engine::run(&decoder, alone, args.chunk as usize, &Cancel::default());
                let answer = answers.and_then(|mut answers| answers.remove(0));
                answer.map_err(|error| CliError::Failed(error.to_string()))?;
                tokens += prompt.ids.len();
            }
        }
        let line = json!({ "judgements": 1, "tokens": tokens, "seconds": start.elapsed().as_secs_f64() });
        writeln!(output, "{line}").and_then(|()| output.flush()).map_err(|error| CliError::write(&error))?;
    }
    Ok(Outcome::Done)
}

/// The prompts of each candidate, in the order of the file.
fn candidates(path: &PathBuf) -> Result<Vec<Vec<Prompt>>, CliError> {
    let file = File::open(path).map_err(|error| CliError::file(path, &error))?;
    let mut candidates: Vec<((String, String), Vec<Prompt>)> = Vec::new();
    for (number, text) in BufReader::new(file).lines().enumerate() {
        let text = text.map_err(|error| CliError::file(path, &error))?;
        let wrong = |error| CliError::Setting(format!("{}, line {}: {error}", path.display(), number + 1));
        let Line { group, candidate, ids, next } = serde_json::from_str(&text).map_err(wrong)?;
        let prompt = Prompt { ids, read: Read::Next(next) };
        match candidates.last_mut() {
            Some((key, prompts)) if (&key.0, &key.1) == (&group, &candidate) => prompts.push(prompt),
            _ => candidates.push(((group, candidate), vec![prompt])),
        }
    }
    Ok(candidates.into_iter().map(|(_, prompts)| prompts).collect())
}
