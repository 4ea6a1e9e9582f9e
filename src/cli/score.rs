//! `prism-judge score`: JSONL in, one JSON verdict a line out.

use std::io::{self, IsTerminal as _, Write};
use std::path::PathBuf;

use super::drive::{Driver, LineResult};
use super::input::Source;
use super::interrupt::Interrupt;
use super::judge_args::JudgeArgs;
use super::persona_args::NamedArgs;
use super::progress::Progress;
use super::{CliError, Outcome, output};

const EXAMPLES: &str = "\
Examples:
  prism-judge score rows.jsonl > verdicts.jsonl
  prism-judge score rows.jsonl -o verdicts.jsonl --evidence label_slot
  prism-judge score rows.jsonl --personas personas/ --persona-id harbour-cat
  printf '%s' '{\"profile\":\"Big Five focus: Extraversion = high\",' \\
    '\"context\":\"Coming tonight?\",\"response\":\"Yes! Who else is in?\"}' |
    prism-judge score

Lines (JSON objects; other fields may stand beside these):
  row        persona, context, response, and id
  published  profile, context or dialogue, response, and case_id
  group      persona, context, positive, negatives [{text, kind, persona}], and
             group_id
  persona    {name, traits: [{trait, polarity}], description, facts}, any of it;
             in its place persona_id, one of --personas
  context    a text (one turn of User), or a list of {speaker, text}
  dialogue   the same, but a text is a transcript of `Speaker: text` lines

A line that cannot be judged gives {\"id\",\"line\",\"error\":{\"code\",\"message\"}},
and the exit status is 2.
Ctrl-C stops after writing what was judged; the exit status is 130.";

/// Judge the rows or groups of a JSONL file; writes one JSON verdict a line, in order.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The file to judge; `-` is standard input.
    #[arg(default_value = "-")]
    file: PathBuf,
    /// Write the verdicts to this file instead of standard output; it is replaced.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    named: NamedArgs,
    #[command(flatten)]
    judge: JudgeArgs,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<Outcome, CliError> {
    let source = Source::new(&args.file);
    if let Some(output) = &args.output {
        output::refuse_input("--output", output, &args.file)?;
    }
    if source == Source::Stdin && io::stdin().is_terminal() {
        output::tell(&"reading rows from the terminal, one JSON object a line; end with Ctrl-D");
    }
    let interrupt = Interrupt::listen().map_err(|error| CliError::Failed(format!("cannot watch Ctrl-C: {error}")))?;
    source.check()?;
    let known = args.named.open()?;
    let judge = args.judge.open()?;
    let mut writer = output::writer(args.output.as_deref())?;
    let progress = Progress::start(&judge, source.size());
    let mut driver = Driver { judge: &judge, known: &known, interrupt: &interrupt, progress };
    let outcome = driver.run(&source, usize::MAX, &mut |result| write(&mut *writer, &result));
    driver.progress.finish();
    match outcome? {
        Outcome::Interrupted => Ok(Outcome::Interrupted),
        _ => Ok(Outcome::of_failures(driver.progress.failed())),
    }
}

/// Writes a line's results and flushes them: what is judged is never lost.
fn write(writer: &mut dyn Write, result: &LineResult<'_>) -> Result<(), CliError> {
    let lines = |writer: &mut dyn Write| -> io::Result<()> {
        match result {
            LineResult::Bad(bad) => output::line(writer, &bad.to_json())?,
            LineResult::Judged { line, item, results } => {
                for (row, result) in item.rows.iter().zip(*results) {
                    match result {
                        Some(Ok(verdict)) => output::line(writer, verdict)?,
                        Some(Err(error)) => output::line(writer, &output::error(&row.id, *line, error))?,
                        None => {}
                    }
                }
            }
        }
        writer.flush()
    };
    lines(writer).map_err(|error| CliError::write(&error))
}
