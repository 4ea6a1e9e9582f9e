//! `prism-judge explain`: one verdict as a readable table.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::bars::{Charset, wrap};
use super::input::{Event, Source};
use super::interrupt::Interrupt;
use super::judge_args::JudgeArgs;
use super::persona_args::NamedArgs;
use super::{CliError, Outcome, output};
use crate::eval::{self, Item, Known};
use crate::persona::Persona;
use crate::prism::{Candidate, Dimension, EvidenceKind, Group, Label};
use crate::service::{ExplainedPrompt, Explanation};

const EXAMPLES: &str = "\
Examples:
  prism-judge explain rows.jsonl                         the first row of a file
  prism-judge explain groups.jsonl --id g7/negative/0    one reply of a group
  prism-judge explain --persona 'Big Five focus: Extraversion = high' \\
      --context 'Coming tonight?' --response 'Yes! Who else is in?'
  prism-judge explain --persona @card.txt --response 'Hello.' --show-prompt
  prism-judge explain --personas personas/ --persona-id ada --response 'Hello.'";

const BAR: usize = 24;
const WIDTH: usize = 96;

/// Show one verdict: the posterior of each dimension, the labels shown, the tokens.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A JSONL file, `-` for standard input. Left out when a persona and --response are given.
    #[arg(conflicts_with_all = ["persona", "context", "response"])]
    file: Option<PathBuf>,
    /// The response of the file to explain; left out: the first.
    #[arg(long, requires = "file")]
    id: Option<String>,
    /// The persona's description, or @FILE.
    #[arg(long, value_name = "TEXT|@FILE", requires = "response", conflicts_with = "persona_id")]
    persona: Option<String>,
    /// What the user said before; left out: nothing.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    context: String,
    /// The response to judge.
    #[arg(long, value_name = "TEXT")]
    response: Option<String>,
    /// Print every prompt as the model read it.
    #[arg(long)]
    show_prompt: bool,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Draw with ASCII only.
    #[arg(long)]
    ascii: bool,
    #[command(flatten)]
    named: NamedArgs,
    #[command(flatten)]
    judge: JudgeArgs,
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<Outcome, CliError> {
    let interrupt = Interrupt::listen().map_err(|error| CliError::Failed(format!("cannot watch Ctrl-C: {error}")))?;
    let known = args.named.open()?;
    let group = match (&args.file, &args.response) {
        (Some(file), _) => from_file(&Source::new(file), &known, args.id.as_deref(), &interrupt)?,
        (None, Some(response)) => from_flags(persona(args.persona.as_deref(), known)?, &args.context, response),
        (None, None) => return Err(nothing_to_explain()),
    };
    let judge = args.judge.open()?;
    let explanation = judge.explain(&group, &Default::default())?;
    let text = if args.json {
        format!("{:#}\n", to_json(&explanation))
    } else {
        table(&explanation, Charset::choose(args.ascii), args.show_prompt)
    };
    output::print(&text)?;
    Ok(Outcome::Done)
}

fn nothing_to_explain() -> CliError {
    let message =
        "say what to explain: a FILE of rows, or --persona and --response; --persona-id in place of --persona";
    CliError::Setting(message.to_owned())
}

/// The persona of the flags: described, or known by its id.
fn persona(described: Option<&str>, known: Known) -> Result<Persona, CliError> {
    let Some(described) = described else { return known.default.ok_or_else(nothing_to_explain) };
    let description = match described.strip_prefix('@') {
        Some(path) => std::fs::read_to_string(path).map_err(|error| CliError::file(path.as_ref(), &error))?,
        None => described.to_owned(),
    };
    Ok(Persona { description, ..Persona::default() })
}

fn from_flags(persona: Persona, context: &str, response: &str) -> Group {
    let candidates = vec![Candidate { id: "1".to_owned(), response: response.to_owned() }];
    Group { persona, context: eval::user_turn(context), candidates }
}

/// The group of exactly one candidate that `id` names, or the first of the source.
fn from_file(source: &Source, known: &Known, id: Option<&str>, interrupt: &Interrupt) -> Result<Group, CliError> {
    for event in source.lines(interrupt)? {
        let line = match event {
            Event::Line(line) => line,
            Event::Failed(error) => return Err(CliError::Failed(format!("cannot read {}: {error}", source.name()))),
            Event::End | Event::Interrupt => break,
        };
        let number = line.number;
        let item = match line.text.and_then(|text| Item::parse_knowing(known, &text, number)) {
            Ok(item) => item,
            // Another line may hold the response that is asked for.
            Err(bad) if id.is_some() && bad.id.as_deref() != id => continue,
            Err(bad) => return Err(CliError::Failed(format!("line {number}: {}", bad.message))),
        };
        if let Some(row) = item.rows.iter().find(|row| id.is_none_or(|id| row.id == id)) {
            let mut group = item.groups[row.group].clone();
            group.candidates = vec![group.candidates.swap_remove(row.candidate)];
            return Ok(group);
        }
    }
    Err(CliError::Failed(match id {
        Some(id) => format!("{} has no response with the id {id}", source.name()),
        None => format!("{} has no row", source.name()),
    }))
}

/// The name for people.
pub fn title(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::TaskFraming => "task framing",
        Dimension::InterpersonalStance => "interpersonal stance",
        Dimension::LinguisticStyle => "linguistic style",
    }
}

fn table(explanation: &Explanation, charset: Charset, show_prompt: bool) -> String {
    let verdict = &explanation.verdict;
    let judge = &verdict.judge;
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "S_PRISM {:.3}   weakest: {}", verdict.s_prism, title(verdict.weakest_dimension));
    for dimension in Dimension::ALL {
        let scores = verdict.dimensions.get(dimension);
        let _ = writeln!(text, "\n{}   evidence {:.3}", title(dimension), scores.evidence);
        let posterior = [scores.posterior.aligned, scores.posterior.indeterminate, scores.posterior.contradictory];
        for (label, share) in Label::ALL.into_iter().zip(posterior) {
            let _ = writeln!(text, "  {:<13} {share:.3} {}", label.name(), charset.bar(share, BAR).trim_end());
        }
        if let Some(mass) = scores.label_mass {
            let _ = writeln!(text, "  the labels hold {:.1} % of the probability at the answer slot", 100.0 * mass);
        }
        let prompts: Vec<_> = explanation.prompts.iter().filter(|prompt| prompt.dimension == dimension).collect();
        text += &labels(&prompts);
        if judge.evidence == EvidenceKind::Likelihood {
            text += "    indeterminate: about as likely either way\n";
        }
        if show_prompt {
            for (index, prompt) in prompts.iter().enumerate() {
                let _ =
                    writeln!(text, "  --- prompt {} of {} ({} tokens) ---", index + 1, prompts.len(), prompt.tokens);
                text += &verbatim(&prompt.text);
            }
            text += "  --- end ---\n";
        }
    }
    let tokens = verdict.tokens;
    let _ = writeln!(text, "\ntokens: {} in all prompts, {} through the model", tokens.prompt, tokens.computed);
    let _ = writeln!(text, "judge: {}, {}", judge.model, options(verdict));
    text
}

fn options(verdict: &crate::prism::Verdict) -> String {
    let judge = &verdict.judge;
    let name = |value: Value| value.as_str().unwrap_or_default().to_owned();
    let of = |value| serde_json::to_value(value).map(name).unwrap_or_default();
    let [evidence, layout] = [of(json!(judge.evidence)), of(json!(judge.layout))];
    let [order, calibration] = [of(json!(judge.label_order)), of(json!(judge.calibration))];
    let numerics = of(json!(judge.numerics));
    match judge.evidence {
        EvidenceKind::LabelSlot => {
            format!(
                "evidence {evidence}, layout {layout}, label order {order}, calibration {calibration}, numerics {numerics}"
            )
        }
        // No labels are shown, so that their layout and order mean nothing.
        EvidenceKind::Likelihood => {
            format!("evidence {evidence}, calibration {calibration}, numerics {numerics}")
        }
    }
}

/// Each description once, then the letters of every displayed order.
fn labels(prompts: &[&ExplainedPrompt]) -> String {
    let mut text = String::new();
    let shown = || prompts.iter().flat_map(|prompt| &prompt.labels);
    for label in Label::ALL {
        let mut seen: Vec<&str> = Vec::new();
        for description in shown().filter(|shown| shown.label == label).map(|shown| shown.description.as_str()) {
            if !seen.contains(&description) {
                seen.push(description);
                text += &wrap(&format!("{}: {description}", label.name()), WIDTH, "    ");
            }
        }
    }
    for prompt in prompts {
        let letters: Vec<String> = prompt
            .labels
            .iter()
            .filter_map(|shown| {
                shown.letter.as_deref().map(|letter| format!("{}={}", letter.trim(), shown.label.name()))
            })
            .collect();
        if !letters.is_empty() {
            let _ = writeln!(text, "  shown as {}", letters.join(" "));
        }
    }
    text
}

/// The text with its line breaks; other control characters become visible.
fn verbatim(text: &str) -> String {
    let mut shown = String::new();
    for line in text.split('\n') {
        let line: String =
            line.chars().map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() }).collect();
        let _ = writeln!(shown, "  | {line}");
    }
    shown
}

fn to_json(explanation: &Explanation) -> Value {
    let prompts: Vec<Value> = explanation
        .prompts
        .iter()
        .map(|prompt| {
            let labels: Vec<Value> = prompt
                .labels
                .iter()
                .map(|shown| json!({"letter": shown.letter, "label": shown.label, "description": shown.description}))
                .collect();
            json!({"dimension": prompt.dimension, "labels": labels, "tokens": prompt.tokens, "text": prompt.text})
        })
        .collect();
    json!({"verdict": explanation.verdict, "prompts": prompts})
}
