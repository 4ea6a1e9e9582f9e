//! `prism-judge dialogue`: how a persona holds over the turns of a dialogue.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::bars::{Charset, wrap};
use super::explain::title;
use super::input::{Event, Source};
use super::interrupt::Interrupt;
use super::judge_args::JudgeArgs;
use super::{CliError, Outcome, output};
use crate::eval::DialogueLine;
use crate::prism::{Dimension, Drift, Turn};
use crate::service::{Call, Dialogue, Judge, JudgeError, Lane, OptionOverrides, ScoredDialogue};

const EXAMPLES: &str = "\
Examples:
  prism-judge dialogue dialogues.jsonl
  prism-judge dialogue dialogues.jsonl --json > curves.jsonl
  printf '%s' '{\"profile\":\"Big Five focus: Extraversion = high\",' \\
    '\"dialogue\":\"User: Coming?\\nBot: Yes! Who else is in?\",\"agent\":\"Bot\"}' |
    prism-judge dialogue

Lines (JSON objects; other fields may stand beside them):
  persona    {name, traits: [{trait, polarity}], description, facts}, any of it;
             or profile, a text
  dialogue   the whole dialogue: a transcript of `Speaker: text` lines, or a
             list of {speaker, text}
  agent      whose turns are judged; left out: the persona's name

The exit status is 2 if a turn or a line could not be judged.";

const BAR: usize = 10;
const WIDTH: usize = 96;

/// Judge every turn of one speaker in the dialogues of a JSONL file: a curve for each dimension.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The file to judge; `-` is standard input.
    #[arg(default_value = "-")]
    file: PathBuf,
    /// Judge the turns of this speaker, whatever the lines say.
    #[arg(long, value_name = "SPEAKER")]
    agent: Option<String>,
    /// Print one JSON object for each dialogue instead of a table.
    #[arg(long)]
    json: bool,
    /// Draw with ASCII only.
    #[arg(long)]
    ascii: bool,
    #[command(flatten)]
    judge: JudgeArgs,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<Outcome, CliError> {
    let interrupt = Interrupt::listen().map_err(|error| CliError::Failed(format!("cannot watch Ctrl-C: {error}")))?;
    let source = Source::new(&args.file);
    source.check()?;
    let judge = args.judge.open()?;
    interrupt.work_starts();
    let mut failed = 0;
    for event in source.lines(&interrupt)? {
        let line = match event {
            Event::Line(line) => line,
            Event::End => break,
            Event::Interrupt => return Ok(Outcome::Interrupted),
            Event::Failed(error) => return Err(CliError::Failed(format!("cannot read {}: {error}", source.name()))),
        };
        let number = line.number;
        let (shown, failures) = match line.text.and_then(|text| DialogueLine::parse(&text, number)) {
            Err(bad) if args.json => (bad.to_json().to_string(), 1),
            Err(bad) => (format!("line {number}: {}\n", bad.message), 1),
            Ok(mut dialogue) => {
                dialogue.agent = args.agent.clone().unwrap_or(dialogue.agent);
                let scored = score(&judge, &dialogue, &interrupt);
                if interrupt.stopped() {
                    return Ok(Outcome::Interrupted);
                }
                let failures = scored
                    .as_ref()
                    .map_or(1, |scored| scored.turns.iter().filter(|(_, result)| result.is_err()).count());
                let shown = match scored {
                    Ok(scored) if args.json => to_json(&dialogue.id, &scored).to_string(),
                    Ok(scored) => table(&dialogue, &scored, Charset::choose(args.ascii)),
                    Err(error) if args.json => output::error(&dialogue.id, number, &error).to_string(),
                    Err(error) => format!("line {number}: {}\n", output::message(&error)),
                };
                (shown, failures)
            }
        };
        failed += failures;
        output::print(&(shown + "\n"))?;
    }
    Ok(Outcome::of_failures(failed))
}

fn score(judge: &Judge, line: &DialogueLine, interrupt: &Interrupt) -> Result<ScoredDialogue, JudgeError> {
    let DialogueLine { persona, turns, agent, .. } = line.clone();
    let call = Call { lane: Lane::Batch, cancel: interrupt.cancel().clone(), ..Call::default() };
    judge.score_dialogue_blocking(Dialogue { persona, turns, agent }, &OptionOverrides::default(), &call)
}

fn to_json(id: &str, scored: &ScoredDialogue) -> Value {
    let turn = |(turn, result): &(usize, Result<_, JudgeError>)| match result {
        Ok(verdict) => json!({"turn": turn, "verdict": verdict}),
        Err(error) => json!({"turn": turn, "error": {"code": error.code, "message": output::message(error)}}),
    };
    json!({"id": id, "turns": scored.turns.iter().map(turn).collect::<Vec<_>>(), "drift": scored.drift})
}

/// The curves as columns of bars, a line for each judged turn.
fn table(line: &DialogueLine, scored: &ScoredDialogue, charset: Charset) -> String {
    let mut text = wrap(&format!("Dialogue {}", line.id), WIDTH, "");
    // Writing to a String cannot fail.
    let _ = write!(text, "\n  {:<7}{:<20}", "turn", "S");
    for dimension in Dimension::ALL {
        let _ = write!(text, "{:<22}", title(dimension));
    }
    end_line(&mut text);
    for (turn, result) in &scored.turns {
        let _ = write!(text, "  {turn:<7}");
        match result {
            Ok(verdict) => {
                let _ = write!(text, "{}", cell(verdict.s_prism, charset, 20));
                for dimension in Dimension::ALL {
                    let _ = write!(text, "{}", cell(verdict.dimensions.get(dimension).evidence, charset, 22));
                }
            }
            Err(error) => {
                let _ = write!(text, "{}", wrap(&output::message(error), usize::MAX, "").trim_end());
            }
        }
        end_line(&mut text);
        text += &line.turns.get(*turn).map(said).unwrap_or_default();
    }
    if let Some(drift) = &scored.drift {
        let curves = [("S", &drift.s_prism)].into_iter().chain(Dimension::ALL.map(title).into_iter().zip([
            &drift.task_framing,
            &drift.interpersonal_stance,
            &drift.linguistic_style,
        ]));
        text.push('\n');
        for (name, Drift { mean, slope, change, lowest, lowest_turn }) in curves {
            let _ = writeln!(
                text,
                "  {name:<22}mean {mean:.3}   {slope:+.3} a turn   {change:+.3} from first to last   lowest {lowest:.3} at \
                 turn {lowest_turn}"
            );
        }
    }
    text
}

fn cell(score: f64, charset: Charset, width: usize) -> String {
    format!("{:<width$}", format!("{score:.3} {}", charset.bar(score, BAR)))
}

/// The first line of what was said.
fn said(turn: &Turn) -> String {
    let lines = wrap(&turn.text, WIDTH - 14, "         ");
    let first = lines.lines().next().unwrap_or_default();
    let more = if lines.lines().count() > 1 { " ..." } else { "" };
    format!("{first}{more}\n")
}

fn end_line(text: &mut String) {
    text.truncate(text.trim_end_matches(' ').len());
    text.push('\n');
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::prism::DialogueDrift;

    #[test]
    fn a_table_has_a_line_for_each_turn_and_for_each_curve_and_cannot_drive_the_terminal() {
        let text = format!("\x1b[31m{}", "word ".repeat(40));
        let line = DialogueLine {
            id: "d\x1b".to_owned(),
            persona: Default::default(),
            turns: vec![Turn { speaker: "Ada".to_owned(), text }],
            agent: "Ada".to_owned(),
        };
        let flat = |value| Drift { mean: value, slope: -0.0625, change: 0.25, lowest: value, lowest_turn: 3 };
        let drift = DialogueDrift {
            s_prism: flat(0.5),
            task_framing: flat(0.25),
            interpersonal_stance: flat(0.75),
            linguistic_style: flat(1.0),
        };
        let failed = JudgeError::invalid("turns[0].text", "is \x1b empty");
        let scored = ScoredDialogue { turns: vec![(0, Err(failed))], drift: Some(drift) };
        let table = table(&line, &scored, Charset::Ascii);
        assert!(!table.contains('\x1b'), "{table}");
        assert!(table.contains("  0      turns[0].text: is empty\n         [31mword word"), "{table}");
        assert!(table.contains(" ...\n"), "{table}");
        let curve =
            "  S                     mean 0.500   -0.062 a turn   +0.250 from first to last   lowest 0.500 at turn 3\n";
        assert!(table.contains(curve), "{table}");
        assert!(table.contains("  linguistic style      mean 1.000"), "{table}");
        assert!(table.lines().all(|line| line == line.trim_end()), "{table}");
    }
}
