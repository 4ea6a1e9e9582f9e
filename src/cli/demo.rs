//! `prism-judge demo`: the main job on built-in examples.

use std::fmt::Write as _;

use super::bars::{Charset, wrap};
use super::interrupt::Interrupt;
use super::judge_args::JudgeArgs;
use super::{CliError, Outcome, output};
use crate::eval::{Item, Role};
use crate::model::registry::DEFAULT_MODEL;
use crate::persona::Persona;
use crate::prism::{Dimension, Group, Verdict};
use crate::service::{Call, Judge, OptionOverrides};

const EXAMPLES: &str = "\
Examples:
  prism-judge demo                          fetches a model if it is missing
  prism-judge demo --model judge-7b.gguf    the same replies, a stronger judge
  prism-judge demo --evidence label_slot    the paper's estimator";

/// Our own writing, in the form of a diagnosis file.
const GROUPS: &str = include_str!("../../data/demo.jsonl");

/// How weak the default judge is, in plain words.
pub const WEAK_JUDGE: &str = "\
The default model has 135 million weights. It is small enough for any laptop and a weak judge: it picks the reply of \
the right pole over the opposite one in 93 of 100 pairs, but over a neighbouring trait in 73 (chance 50), and names the \
dimension that is off in 39 (chance 33). Do not train or guard with it. For that, give a 7B model: --model PATH.gguf";

const BAR: usize = 10;
const WIDTH: usize = 96;

/// Judge built-in replies to a few personas: one fits, the others break the task, the stance or the style.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Draw with ASCII only.
    #[arg(long)]
    ascii: bool,
    #[command(flatten)]
    judge: JudgeArgs,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<Outcome, CliError> {
    let config = args.judge.config_fetched()?;
    Interrupt::listen().map_err(|error| CliError::Failed(format!("cannot watch Ctrl-C: {error}")))?;
    let judge = Judge::open(&config)?;
    let charset = Charset::choose(args.ascii);
    let info = judge.info();
    output::print(&format!(
        "Judge: {} ({} million weights)\nS is the mean evidence of the three dimensions, from 0 to 1: \
         how much the reply expresses the persona.\n\n",
        info.model,
        (info.parameters + 500_000) / 1_000_000
    ))?;
    let (mut groups, mut first) = (0, 0);
    for (index, line) in GROUPS.lines().enumerate() {
        let item = Item::parse(line, index + 1).map_err(|bad| CliError::Failed(bad.message))?;
        let verdicts = judge_all(&judge, &item)?;
        output::print(&table(&item, &verdicts, charset))?;
        groups += 1;
        first += usize::from(fits_best(&item, &verdicts));
    }
    let mut text = format!("The reply that fits got the highest S in {first} of {groups} groups.\n\n");
    if info.model == DEFAULT_MODEL {
        text += &wrap(WEAK_JUDGE, WIDTH, "");
    }
    text += "\nNext: prism-judge score FILE, prism-judge explain FILE, prism-judge serve\n";
    output::print(&text)?;
    Ok(Outcome::Done)
}

fn judge_all(judge: &Judge, item: &Item) -> Result<Vec<Verdict>, CliError> {
    let mut verdicts = Vec::new();
    for group in &item.groups {
        for result in judge.score_blocking(group, &OptionOverrides::default(), &Call::default())? {
            verdicts.push(result?);
        }
    }
    Ok(verdicts)
}

fn fits_best(item: &Item, verdicts: &[Verdict]) -> bool {
    let scores = |role: Role| {
        let rows = item.rows.iter().zip(verdicts);
        rows.filter(move |(row, _)| row.role == role).map(|(_, verdict)| verdict.s_prism)
    };
    let best = scores(Role::Negative).fold(f64::NEG_INFINITY, f64::max);
    scores(Role::Positive).all(|score| score > best)
}

fn table(item: &Item, verdicts: &[Verdict], charset: Charset) -> String {
    let mut text = String::new();
    let Some(Group { persona, context, candidates }) = item.groups.first() else { return text };
    text += &wrap(&describe(persona), WIDTH, "");
    for turn in context {
        text += &wrap(&format!("{}: {}", turn.speaker, turn.text), WIDTH, "  ");
    }
    let header = ["S", "task framing", "interpersonal stance", "linguistic style"];
    let _ = write!(text, "\n  {:<13}", "the reply");
    for name in header {
        let _ = write!(text, "{name:<22}");
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    for ((row, candidate), verdict) in item.rows.iter().zip(candidates).zip(verdicts) {
        let name = match row.violated {
            None => "fits",
            Some(Dimension::TaskFraming) => "wrong task",
            Some(Dimension::InterpersonalStance) => "wrong stance",
            Some(Dimension::LinguisticStyle) => "wrong style",
        };
        let _ = write!(text, "  {name:<13}");
        let evidence = Dimension::ALL.map(|dimension| verdict.dimensions.get(dimension).evidence);
        for score in [verdict.s_prism].into_iter().chain(evidence) {
            let _ = write!(text, "{score:.3} {:<16}", charset.bar(score, BAR));
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
        text += &wrap(&candidate.response, WIDTH - 4, "      ");
    }
    text.push('\n');
    text
}

fn describe(persona: &Persona) -> String {
    let traits: Vec<String> =
        persona.traits.iter().map(|target| format!("{} {}", target.polarity, target.trait_)).collect();
    let name = persona.name.as_deref().unwrap_or("Persona");
    if traits.is_empty() {
        format!("{name}: {}", persona.description)
    } else {
        format!("{name} ({}): {}", traits.join(", "), persona.description)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn every_built_in_group_has_one_reply_that_fits_and_three_that_do_not() {
        assert!(GROUPS.lines().count() >= 2);
        for (index, line) in GROUPS.lines().enumerate() {
            let item = Item::parse(line, index + 1).unwrap();
            let violated: Vec<_> = item.rows.iter().map(|row| row.violated).collect();
            let expected = [None].into_iter().chain(Dimension::ALL.map(Some)).collect::<Vec<_>>();
            assert_eq!(violated, expected, "line {}", index + 1);
            assert_eq!(item.groups.len(), 1);
        }
    }
}
