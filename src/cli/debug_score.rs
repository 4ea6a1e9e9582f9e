//! `prism-judge debug-score`: the speed of whole judgements, for scripts that compare it with a peer.

use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::time::Instant;

use serde_json::json;

use super::debug_prompts::groups;
use super::input::Source;
use super::judge_args::JudgeArgs;
use super::{CliError, Outcome};
use crate::service::{CacheControl, Call, OptionOverrides};

/// For every line of standard input, judge the next group of FILE and print how long it took, and its verdicts.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Rows or groups, as `score` reads them. After the last one comes the end, not the first one again.
    file: PathBuf,
    #[command(flatten)]
    judge: JudgeArgs,
}

pub fn run(args: &Args) -> Result<Outcome, CliError> {
    let groups = groups(&Source::new(&args.file))?;
    let judge = args.judge.open()?;
    // The model really runs.
    let call = Call { cache: CacheControl::Off, ..Call::default() };
    let mut output = io::stdout().lock();
    for (line, (key, group)) in io::stdin().lock().lines().zip(groups) {
        line.map_err(|error| CliError::Failed(format!("standard input: {error}")))?;
        let start = Instant::now();
        let results = judge.score_blocking(&group, &OptionOverrides::default(), &call)?;
        let seconds = start.elapsed().as_secs_f64();
        let verdicts = results.into_iter().collect::<Result<Vec<_>, _>>()?;
        let line = json!({
            "group": key,
            "seconds": seconds,
            "judgements": verdicts.len(),
            "prompt_tokens": verdicts.iter().map(|verdict| verdict.tokens.prompt).sum::<u64>(),
            "computed_tokens": verdicts.iter().map(|verdict| verdict.tokens.computed).sum::<u64>(),
            "verdicts": verdicts,
        });
        writeln!(output, "{line}").and_then(|()| output.flush()).map_err(|error| CliError::write(&error))?;
    }
    Ok(Outcome::Done)
}
