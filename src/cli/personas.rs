//! `prism-judge personas`: are the files of named personas in order, and what does the judge read in them?

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::json;

use super::explain::title;
use super::{CliError, Outcome, output};
use crate::digest::Digest;
use crate::persona::{Form, Named, Problem, Profile, Registry, RegistryError, Skipped, TraitTarget};
use crate::prism::{Dimension, LabelSpaces};
use crate::service::{OpenError, check_persona};

const EXAMPLES: &str = "\
Examples:
  prism-judge personas check personas/
  prism-judge personas check card.json
  prism-judge personas check personas/ --json | jq -r '.personas[].id'
  prism-judge serve --personas personas/

A folder may hold TOML, YAML and JSON files of one persona or several, character
cards of the community (JSON, V2 and V1), and cards in plain text.

Exit status: 0 all personas are in order, 1 the place cannot be read, 2 some
file or persona is wrong.";

/// Check the personas that `serve --personas` would know.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PersonasArgs {
    #[command(subcommand)]
    command: PersonasCommand,
}

#[derive(Debug, Subcommand)]
enum PersonasCommand {
    /// List the id, the form and the cues of each persona, and everything that is wrong
    #[command(
        after_help = "Examples:\n  prism-judge personas check personas/\n  prism-judge personas check card.json --json"
    )]
    Check {
        /// A folder, or one file
        path: PathBuf,
        /// Print one JSON object instead of text
        #[arg(long)]
        json: bool,
    },
}

/// What the judge reads in a persona.
#[derive(Debug, Serialize)]
struct Row<'a> {
    id: &'a str,
    name: Option<&'a str>,
    file: &'a str,
    form: Form,
    digest: Digest,
    traits: Vec<TraitTarget>,
    facts: usize,
    /// By dimension; empty for a persona of traits alone, whose labels describe its traits.
    cues: BTreeMap<&'static str, Cue>,
    /// Fields of the file that are not used.
    unused: &'a [String],
}

/// The text that speaks about one dimension.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Cue {
    /// The section that it is from; none: the whole persona.
    section: Option<String>,
    characters: usize,
    /// How many of these the label of the dimension has.
    used: usize,
}

/// Runs the subcommand.
pub fn run(args: &PersonasArgs) -> Result<Outcome, CliError> {
    let PersonasCommand::Check { path, json } = &args.command;
    check(path, *json)
}

fn check(path: &Path, json: bool) -> Result<Outcome, CliError> {
    path.metadata().map_err(|error| CliError::file(path, &error))?;
    let (registry, mut problems) = Registry::read(path);
    if let Err(RegistryError { problems: too_large }) = registry.check(check_persona) {
        problems.extend(too_large);
    }
    let spaces = LabelSpaces::load(None).map_err(OpenError::from)?;
    let rows: Vec<Row<'_>> = registry.iter().filter_map(|named| row(named, &spaces)).collect();
    let text =
        if json { format!("{:#}\n", as_json(&rows, &registry, &problems)) } else { as_text(&rows, registry.skipped()) };
    output::print(&text)?;
    if !json {
        problems.iter().for_each(|problem| output::tell(&format_args!("error: {problem}")));
    }
    Ok(Outcome::of_failures(problems.len()))
}

/// None for a persona that gives no profile; the registry has none of these.
fn row<'a>(named: &'a Named, spaces: &LabelSpaces) -> Option<Row<'a>> {
    let profile = named.persona.profile().ok()?;
    let dimensions = Dimension::ALL.into_iter().filter(|_| profile.is_character());
    let cues = dimensions.map(|dimension| (dimension.name(), cue(&profile, dimension, spaces))).collect();
    Some(Row {
        id: &named.id,
        name: named.name.as_deref(),
        file: &named.file,
        form: named.form,
        digest: named.digest,
        facts: profile.facts.len(),
        traits: profile.traits,
        cues,
        unused: &named.unused,
    })
}

fn cue(profile: &Profile, dimension: Dimension, spaces: &LabelSpaces) -> Cue {
    let (kind, limit) = spaces.cue(dimension);
    let section = profile.cue_section(kind).map(|section| section.header.clone());
    let characters = |limit| profile.cue(kind, limit).text.chars().count();
    Cue { section, characters: characters(usize::MAX), used: characters(limit) }
}

fn as_json(rows: &[Row<'_>], registry: &Registry, problems: &[Problem]) -> serde_json::Value {
    let skipped = registry.skipped().iter();
    let skipped: Vec<_> = skipped.map(|it| json!({"file": it.file, "reason": it.reason.to_string()})).collect();
    let problems = problems.iter();
    let problems: Vec<_> =
        problems.map(|it| json!({"file": it.file, "field": it.field, "message": it.message})).collect();
    json!({"personas": rows, "skipped": skipped, "problems": problems})
}

fn as_text(rows: &[Row<'_>], skipped: &[Skipped]) -> String {
    let mut text = String::new();
    for row in rows {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}\n  {:<22}{} ({})", row.id, "file", row.file, row.form);
        let mut line = |what: &str, value: String| {
            if !value.is_empty() {
                let _ = writeln!(text, "  {what:<22}{value}");
            }
        };
        line("name", row.name.unwrap_or_default().to_owned());
        let traits = row.traits.iter().map(|target| format!("{} {}", target.trait_, target.polarity));
        line("traits", traits.collect::<Vec<_>>().join(", "));
        line("facts", if row.facts == 0 { String::new() } else { row.facts.to_string() });
        for dimension in Dimension::ALL {
            line(title(dimension), row.cues.get(dimension.name()).map(described).unwrap_or_default());
        }
        line("not used", row.unused.join(", "));
    }
    for Skipped { file, reason } in skipped {
        let _ = writeln!(text, "skipped {file}: {reason}");
    }
    let _ = writeln!(text, "personas: {}", rows.len());
    text
}

fn described(Cue { section, characters, used }: &Cue) -> String {
    let from = section.as_deref().map_or("the whole text", |section| section);
    match characters - used {
        0 => format!("{from}, {characters} characters"),
        _ => format!("{from}, the first {used} of {characters} characters"),
    }
}
