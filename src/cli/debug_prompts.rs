//! `prism-judge debug-prompts`: the token ids that the model is given, for scripts that run them elsewhere.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::input::{Event, Source};
use super::interrupt::Interrupt;
use super::judge_args::JudgeArgs;
use super::{CliError, Outcome, output};
use crate::engine::Read;
use crate::eval::Item;
use crate::prism::Group;
use crate::service::{OptionOverrides, TokenPrompt};

/// Print every prompt of a JSONL file as one JSON line: group, candidate, dimension, ids, and `span` or `next`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Rows or groups, as `score` reads them.
    file: PathBuf,
    #[command(flatten)]
    judge: JudgeArgs,
}

pub fn run(args: &Args) -> Result<Outcome, CliError> {
    let groups = groups(&Source::new(&args.file))?;
    let judge = args.judge.open()?;
    let mut writer = output::writer(None)?;
    for (key, group) in groups {
        for prompt in judge.prompts(&group, &OptionOverrides::default())? {
            output::line(&mut *writer, &line(&key, &group, &prompt)).map_err(|error| CliError::write(&error))?;
        }
    }
    writer.flush().map_err(|error| CliError::write(&error))?;
    Ok(Outcome::Done)
}

/// All groups of a file, with their keys. A line that cannot be read is an error: a benchmark must not skip work.
pub fn groups(source: &Source) -> Result<Vec<(String, Group)>, CliError> {
    let interrupt = Interrupt::listen().map_err(|error| CliError::Failed(format!("cannot watch Ctrl-C: {error}")))?;
    let mut groups = Vec::new();
    for event in source.lines(&interrupt)? {
        match event {
            Event::Line(line) => {
                let bad = |bad: crate::eval::BadLine| {
                    CliError::Setting(format!("{}, line {}: {}", source.name(), bad.line, bad.message))
                };
                let item = line.text.and_then(|text| Item::parse(&text, line.number)).map_err(bad)?;
                groups.extend(item.groups.into_iter().map(|group| (item.key.clone(), group)));
            }
            Event::Failed(error) => return Err(CliError::Failed(format!("cannot read {}: {error}", source.name()))),
            Event::End | Event::Interrupt => break,
        }
    }
    Ok(groups)
}

fn line(key: &str, group: &Group, prompt: &TokenPrompt) -> Value {
    let mut line = json!({
        "group": key,
        "candidate": group.candidates[prompt.candidate].id,
        "dimension": prompt.dimension.name(),
        "ids": prompt.prompt.ids,
    });
    match &prompt.prompt.read {
        Read::Span(span) => line["span"] = json!([span.start, span.end]),
        Read::Next(ids) => line["next"] = json!(ids),
    }
    line
}
