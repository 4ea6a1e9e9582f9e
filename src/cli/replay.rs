//! `prism-judge replay`: makes recorded calls again and compares the bits.

use std::io::Write as _;
use std::path::PathBuf;

use super::engine_args::EngineArgs;
use super::input::{Event, Line, Source};
use super::interrupt::Interrupt;
use super::judge_args::JudgeArgs;
use super::progress::Progress;
use super::replay_report::{Finding, Kind, Report};
use super::{CliError, Outcome, output};
use crate::audit::{Chain, Record, Replay, in_order, open_line, replay};
use crate::service::{Judge, JudgeConfig, JudgeError};

const EXAMPLES: &str = "\
Examples:
  prism-judge replay audit.jsonl
  prism-judge replay audit.jsonl.* audit.jsonl
  prism-judge replay --model judge-7b.gguf --json audit.jsonl > report.json

The model, the wording and the arithmetic must be those that judged: give the
flags that the server had. Options of calls come from the records; the cache
takes no part. Files of one audit are put in order by their numbers.

A line is printed for each record that is damaged, out of order, different, or
cannot be replayed, and a summary at the end.
Exit status: 0 every recorded verdict has the same bits, 2 any other result.";

/// Judge the calls of an audit file again and compare every bit of their verdicts.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Files that `serve --audit-file` wrote; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print one JSON object instead of lines.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    judge: JudgeArgs,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<Outcome, CliError> {
    let interrupt = Interrupt::listen().map_err(|error| CliError::Failed(format!("cannot watch Ctrl-C: {error}")))?;
    let files: Vec<(PathBuf, Source)> =
        in_order(&args.files).into_iter().map(|(audit, file)| (audit, Source::new(&file))).collect();
    for (_, source) in &files {
        source.check()?;
    }
    let (engine, cache) = (args.engine.engine()?, args.engine.cache());
    let judge = Judge::open(&JudgeConfig { engine, cache, ..args.judge.config()? })?;
    let size: Option<u64> = files.iter().map(|(_, source)| source.size()).sum();
    let progress = Progress::start(&judge, size);
    let mut work = Work { judge: &judge, interrupt: &interrupt, progress, report: Report::default(), json: args.json };
    interrupt.work_starts();
    let outcome = work.files(&files);
    work.progress.finish();
    let (outcome, report) = (outcome?, work.report);
    if args.json {
        let report = serde_json::to_string(&report).map_err(|error| CliError::Failed(error.to_string()))?;
        output::print(&(report + "\n"))?;
    } else {
        output::print(&report.to_string())?;
    }
    match outcome {
        Outcome::Done if report.all_equal() => Ok(Outcome::Done),
        Outcome::Done => Ok(Outcome::SomeFailed),
        other => Ok(other),
    }
}

struct Work<'a> {
    judge: &'a Judge,
    interrupt: &'a Interrupt,
    progress: Progress<'a>,
    report: Report,
    json: bool,
}

impl Work<'_> {
    fn files(&mut self, files: &[(PathBuf, Source)]) -> Result<Outcome, CliError> {
        let mut chain = Chain::default();
        let mut before = None;
        for (audit, source) in files {
            if before.replace(audit).is_some_and(|before| before != audit) {
                chain = Chain::default();
            }
            let mut read = 0;
            for event in source.lines(self.interrupt)? {
                if self.interrupt.stopped() {
                    return Ok(Outcome::Interrupted);
                }
                match event {
                    Event::End => break,
                    Event::Interrupt => return Ok(Outcome::Interrupted),
                    Event::Failed(error) => {
                        return Err(CliError::Failed(format!("cannot read {}: {error}", source.name())));
                    }
                    Event::Line(line) => {
                        read = line.read;
                        if !self.line(line, &source.name(), &mut chain)? {
                            return Ok(Outcome::Interrupted);
                        }
                        self.progress.at(read);
                    }
                }
            }
            self.progress.finish_input(source.size().unwrap_or(read));
        }
        Ok(Outcome::Done)
    }

    /// Takes one line. False if Ctrl-C stopped the work.
    fn line(&mut self, line: Line, file: &str, chain: &mut Chain) -> Result<bool, CliError> {
        let number = line.number;
        let finding = |kind| Finding { file: file.to_owned(), line: number, kind };
        let text = match line.text {
            Ok(text) => text,
            Err(bad) => {
                chain.damaged();
                return self.found(finding(Kind::Damaged { reason: bad.message })).map(|()| true);
            }
        };
        let line = match open_line(&text) {
            Ok(line) => line,
            Err(damage) => {
                chain.damaged();
                return self.found(finding(Kind::Damaged { reason: damage.to_string() })).map(|()| true);
            }
        };
        if let Err(gap) = chain.follow(&line) {
            self.found(finding(Kind::OutOfOrder { reason: gap.to_string() }))?;
        }
        let call = match line.record {
            Record::Gap(gap) => {
                let kind = Kind::Lost { queue_full: gap.queue_full, not_written: gap.not_written };
                return self.found(finding(kind)).map(|()| true);
            }
            Record::Call(call) => call,
        };
        let replayed: Result<Replay, JudgeError> = replay(self.judge, &call, self.interrupt.cancel());
        let made = match replayed {
            Err(_) if self.interrupt.stopped() => return Ok(false),
            Err(error) => return Err(error.into()),
            Ok(Replay::Made(made)) => made,
            Ok(Replay::OtherJudge(mismatches)) => {
                let made_by = call.made_by;
                return self.found(finding(Kind::OtherJudge { made_by, mismatches })).map(|()| true);
            }
            Ok(Replay::Redacted) => return self.found(finding(Kind::Redacted)).map(|()| true),
            Ok(Replay::NoVerdict(code)) => {
                self.report.no_verdict(code);
                return Ok(true);
            }
        };
        made.results.iter().for_each(|result| self.progress.count(result));
        self.report.made(&made);
        if !made.differences.is_empty() {
            let (made_by, differences) = (call.made_by, made.differences);
            self.found(finding(Kind::Different { made_by, differences }))?;
        }
        Ok(true)
    }

    /// Counts a finding and prints it.
    fn found(&mut self, finding: Finding) -> Result<(), CliError> {
        if !self.json {
            let print = || writeln!(std::io::stdout(), "{finding}").map_err(|error| CliError::write(&error));
            self.progress.paused(print)?;
        }
        self.report.found(finding, self.json);
        Ok(())
    }
}
