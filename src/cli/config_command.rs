//! `prism-judge config`: is a configuration file of the server in order, and what does one look like?

use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};

use super::config::{self, Source};
use super::{CliError, Outcome, output};

const EXAMPLES: &str = "\
Examples:
  prism-judge config check prism-judge.toml
  prism-judge config example guardrail-sidecar > prism-judge.toml
  prism-judge serve --config prism-judge.toml
  prism-judge serve --print-config      what holds now, and where each is from

A file is checked by itself: variables and flags have no part in it, nor has
any file that it names. `serve` checks all of them before it opens a port.";

/// Check a configuration file of the server, or print an example of one.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Name every key that is wrong, with what is allowed
    #[command(after_help = "Examples:\n  prism-judge config check prism-judge.toml")]
    Check {
        /// The file (TOML)
        file: PathBuf,
    },
    /// Print a commented file to start from
    #[command(after_help = "Examples:\n  prism-judge config example rl-reward-server > prism-judge.toml")]
    Example {
        /// What the server is for
        #[arg(value_enum)]
        name: Example,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Example {
    Laptop,
    GuardrailSidecar,
    RlRewardServer,
}

impl Example {
    fn text(self) -> &'static str {
        match self {
            Self::Laptop => include_str!("../../examples/config/laptop.toml"),
            Self::GuardrailSidecar => include_str!("../../examples/config/guardrail-sidecar.toml"),
            Self::RlRewardServer => include_str!("../../examples/config/rl-reward-server.toml"),
        }
    }
}

/// Runs the subcommand.
pub fn run(args: &Args) -> Result<Outcome, CliError> {
    match &args.command {
        ConfigCommand::Check { file } => check(file)?,
        ConfigCommand::Example { name } => output::print(name.text())?,
    }
    Ok(Outcome::Done)
}

fn check(file: &Path) -> Result<(), CliError> {
    let name = file.display().to_string();
    let text = config::text(file).map_err(|problem| CliError::Setting(format!("{name}: {problem}")))?;
    let count = check_config(&name, &text)?;
    output::print(&format!("{name}: all is well (keys: {count})\n"))
}

/// Checks the text of a configuration file of the server, which is called `name`; tells how many keys it has.
///
/// # Errors
/// All keys that are wrong, or those that do not go together.
pub fn check_config(name: &str, text: &str) -> Result<usize, CliError> {
    let (args, settings) = config::parse_file(name, text)?;
    args.check().map_err(|error| match error {
        CliError::Setting(problem) => CliError::Setting(format!("{name}: {problem}")),
        other => other,
    })?;
    Ok(settings.count(Source::File))
}
