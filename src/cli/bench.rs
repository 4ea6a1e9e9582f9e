//! `prism-judge bench`: ranking metrics over files that say which response fits.

use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::drive::{Driver, LineResult, RowResult};
use super::input::Source;
use super::interrupt::Interrupt;
use super::judge_args::JudgeArgs;
use super::progress::Progress;
use super::{CliError, Outcome, output};
use crate::eval::{Collector, Item, Known, Report, Role, Row, ScoreRow};
use crate::prism::Dimension;

const EXAMPLES: &str = "\
Examples:
  prism-judge bench groups.jsonl
  prism-judge bench easy.jsonl hard.jsonl --json > report.json
  prism-judge bench groups.jsonl --limit 20 --scores scores.jsonl

AUC compares every positive with every negative, P-AUC only those of one group,
a tie counts one half; G-Acc is the share of groups whose positive is above
every negative. A response without a score is left out and counted as failed.";

/// Failures whose reasons are printed.
const TOLD: usize = 10;

/// Judge files with known answers; prints AUC, P-AUC and G-Acc of S and of each dimension.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// JSONL files of groups, or of rows with a label.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Judge only the first N lines of each file.
    #[arg(long, value_name = "N", default_value_t = usize::MAX, hide_default_value = true)]
    limit: usize,
    /// Write the scores of every response to this file (JSONL); it is replaced.
    #[arg(long, value_name = "FILE")]
    scores: Option<PathBuf>,
    #[command(flatten)]
    judge: JudgeArgs,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<Outcome, CliError> {
    let interrupt = Interrupt::listen().map_err(|error| CliError::Failed(format!("cannot watch Ctrl-C: {error}")))?;
    let sources: Vec<Source> = args.files.iter().map(|file| Source::new(file)).collect();
    for source in &sources {
        source.check()?;
    }
    if let Some(scores) = &args.scores {
        args.files.iter().try_for_each(|file| output::refuse_input("--scores", scores, file))?;
    }
    let judge = args.judge.open()?;
    let mut scores = args.scores.as_deref().map(|path| output::writer(Some(path))).transpose()?;
    let size = sources.iter().map(Source::size).sum::<Option<u64>>();
    let (known, progress) = (Known::default(), Progress::start(&judge, size));
    let mut driver = Driver { judge: &judge, known: &known, interrupt: &interrupt, progress };
    let mut files = Vec::new();
    let mut overall = Collector::default();
    let mut told = 0;
    for source in &sources {
        let (name, mut collector) = (source.name(), Collector::default());
        let outcome = driver.run(source, args.limit, &mut |result| {
            collect(&mut collector, &result);
            tell_failures(&name, &result, &mut told);
            match &mut scores {
                Some(writer) => write_scores(&mut **writer, &name, &result).map_err(|error| CliError::write(&error)),
                None => Ok(()),
            }
        })?;
        if outcome == Outcome::Interrupted {
            driver.progress.finish();
            return Ok(Outcome::Interrupted);
        }
        files.push((name, collector.report()));
        overall.merge(collector);
    }
    driver.progress.finish();
    let overall = overall.report();
    let text = if args.json {
        let files: Vec<Value> = files.iter().map(|(name, report)| json!({"file": name, "report": report})).collect();
        let report = json!({
            "judge": judge.info(), "speed": driver.progress.speed(), "files": files, "overall": overall,
        });
        format!("{report:#}\n")
    } else {
        tables(&files, &overall)
    };
    output::print(&text)?;
    Ok(Outcome::of_failures(overall.failed))
}

fn collect(collector: &mut Collector, result: &LineResult<'_>) {
    match result {
        LineResult::Bad(_) => collector.add_bad_line(),
        LineResult::Judged { item, results, .. } => {
            for (row, result) in item.rows.iter().zip(*results) {
                let verdict = result.as_ref().and_then(|result| result.as_ref().ok());
                collector.add(&ScoreRow { key: &item.key, role: &row.role, violated: row.violated, verdict });
            }
        }
    }
}

/// Says why responses failed, for the first few.
fn tell_failures(file: &str, result: &LineResult<'_>, told: &mut usize) {
    let reasons = match result {
        LineResult::Bad(bad) => vec![(bad.line, bad.message.clone())],
        LineResult::Judged { line, results, .. } => {
            let failed = results.iter().flatten().filter_map(|result| result.as_ref().err());
            failed.map(|error| (*line, output::message(error))).collect()
        }
    };
    for (line, reason) in reasons {
        *told += 1;
        match *told {
            ..=TOLD => output::tell(&format_args!("{file}, line {line}: {reason}")),
            told if told == TOLD + 1 => output::tell(&"more responses failed; --scores FILE lists all reasons"),
            _ => {}
        }
    }
}

fn write_scores(writer: &mut dyn Write, file: &str, result: &LineResult<'_>) -> std::io::Result<()> {
    match result {
        LineResult::Bad(bad) => {
            let mut object = bad.to_json();
            object["file"] = json!(file);
            output::line(writer, &object)?;
        }
        LineResult::Judged { line, item, results } => {
            for (row, result) in item.rows.iter().zip(*results) {
                output::line(writer, &scores_of(file, *line, item, (row, result)))?;
            }
        }
    }
    writer.flush()
}

fn scores_of(file: &str, line: usize, item: &Item, (row, result): (&Row, &RowResult)) -> Value {
    let role = match row.role {
        Role::Single => "single",
        Role::Positive => "positive",
        Role::Negative => "negative",
    };
    let mut object = match result {
        Some(Ok(verdict)) => {
            let mut object = json!({"id": row.id, "line": line, "s_prism": verdict.s_prism});
            for dimension in Dimension::ALL {
                object[dimension.name()] = json!(verdict.dimensions.get(dimension).evidence);
            }
            object
        }
        Some(Err(error)) => output::error(&row.id, line, error),
        None => json!({"id": row.id, "line": line}),
    };
    object["file"] = json!(file);
    object["group"] = json!(item.key);
    object["role"] = json!(role);
    object["violated"] = json!(row.violated);
    object
}

fn tables(files: &[(String, Report)], overall: &Report) -> String {
    let mut text = String::new();
    for (name, report) in files {
        text += &table(name, report);
    }
    if files.len() > 1 {
        text += &table("all files", overall);
    }
    text
}

fn table(name: &str, report: &Report) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write!(text, "{name}: {} groups, {} responses, {} failed", report.groups, report.rows, report.failed);
    if report.unlabelled > 0 {
        let _ = write!(text, ", {} without a known answer", report.unlabelled);
    }
    let _ = writeln!(text, "\n  {:<22} {:>7} {:>7} {:>7}", "", "AUC", "P-AUC", "G-Acc");
    for (score, ranking) in report.rankings() {
        let [auc, p_auc, g_acc] = [ranking.auc, ranking.p_auc, ranking.g_acc].map(percent);
        let _ = writeln!(text, "  {score:<22} {auc:>7} {p_auc:>7} {g_acc:>7}");
    }
    if let Some(diagnosis) = &report.diagnosis {
        let [top_1, top_2, f1] = [diagnosis.top_1, diagnosis.top_2_recall, diagnosis.macro_f1];
        let _ = writeln!(
            text,
            "  weakest dimension of {} annotated responses: Top-1 {}, Top-2 recall {}, macro-F1 {}",
            diagnosis.rows,
            percent(Some(top_1)),
            percent(Some(top_2)),
            percent(Some(f1)),
        );
    }
    text.push('\n');
    text
}

/// In percent, as the paper prints it.
fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.2}", 100.0 * share))
}
