//! How settings get in: every long flag of `serve` is one setting, and `--some-key`, `PRISM_JUDGE_SOME_KEY` and
//! `some_key` in a TOML file are one word. A flag goes before a variable, that before the file, that before the default.
//! Knows flags by what clap knows of them and no setting by its name; everything that is wrong is told in one answer.
//!
//! A new setting is a flag in a struct that is flattened into [`serve::Args`], with a parser that says "it must ...".
//! It needs no `env`; `hide_env_values` makes it a secret. What it needs or excludes is said by [`serve::Args::check`]:
//! clap's `requires` and the like would look at flags alone.

mod args;
mod environment;
mod file;
mod key;
mod kind;
#[cfg(test)]
mod properties;
mod redact;
mod scope;
mod settings;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;

use clap::{ArgMatches, Args as _, Command, FromArgMatches as _};

use self::scope::{SERVER, Scope};
use super::{CliError, serve};

pub use self::args::ConfigArgs;
pub use self::environment::Environment;
pub use self::file::text;
pub use self::settings::{Settings, Source};

/// What keeps a command line from being run.
pub enum Refusal {
    /// clap's own: a flag that there is not, flags that exclude each other, or help that was asked for.
    Usage(clap::Error),
    Setting(CliError),
}

impl From<clap::Error> for Refusal {
    fn from(error: clap::Error) -> Self {
        Self::Usage(error)
    }
}

impl From<CliError> for Refusal {
    fn from(error: CliError) -> Self {
        Self::Setting(error)
    }
}

/// What one source gives: the right values by their word, and what is wrong with the others.
#[derive(Debug, Default)]
struct Found {
    values: BTreeMap<String, OsString>,
    problems: Vec<String>,
}

/// Parses `args`, with what the environment and the configuration file add to them.
pub fn parse(
    command: Command,
    args: &[OsString],
    environment: &Environment,
) -> Result<(ArgMatches, Settings), Refusal> {
    let command = scope::prepare(command);
    // Values are read as they are written first, so that the wrong ones are told together with those of other sources.
    let given = scope::unchecked(command.clone()).try_get_matches_from(args)?;
    let Some((name, flags)) = given.subcommand() else { return Ok((given, Settings::default())) };
    let Some(subcommand) = command.find_subcommand(name) else { return Ok((given, Settings::default())) };
    let settings = Scope::of(subcommand).settle(flags, environment)?;
    let mut all = args.to_vec();
    let start = args.iter().position(|arg| arg == name).map_or(args.len(), |at| at + 1);
    drop(all.splice(start..start, settings.beside_flags()));
    Ok((command.try_get_matches_from(all)?, settings))
}

/// Reads the text of a configuration file by itself, without flags and environment; `name` is the file's.
///
/// # Errors
/// Every wrong key. What does not go together is up to [`serve::Args::check`].
pub fn parse_file(name: &str, text: &str) -> Result<(serve::Args, Settings), CliError> {
    let command = scope::prepare(serve::Args::augment_args(Command::new(SERVER)));
    let settings = Scope::of(&command).settle_file(name, text)?;
    let flags = [OsString::from(SERVER)].into_iter().chain(settings.beside_flags());
    let parsed = command.try_get_matches_from(flags).and_then(|matches| serve::Args::from_arg_matches(&matches));
    let args = parsed.map_err(|error| CliError::Setting(format!("{name}: {}", first_line(&error))))?;
    Ok((args, settings))
}

/// What clap says without the hint to `--help`, which is of no use for a file.
fn first_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

/// Tells all wrong settings in one error.
///
/// # Errors
/// What a check says that failed for another reason than a setting, by itself.
pub fn all(checks: impl IntoIterator<Item = Result<(), CliError>>) -> Result<(), CliError> {
    let mut problems = Vec::new();
    for check in checks {
        match check {
            Err(CliError::Setting(problem)) => problems.push(problem),
            other => other?,
        }
    }
    refuse(problems)
}

fn refuse(mut problems: Vec<String>) -> Result<(), CliError> {
    match problems.len() {
        0 => Ok(()),
        1 => Err(CliError::Setting(problems.remove(0))),
        count => Err(CliError::Setting(format!("{count} settings are wrong\n  {}", problems.join("\n  ")))),
    }
}
