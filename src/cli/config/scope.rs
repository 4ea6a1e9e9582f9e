//! Which flags of which subcommand are settings.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::builder::{PossibleValue, TypedValueParser, ValueParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args as _, Command, FromArgMatches as _};

use super::args::{ConfigArgs, FLAGS};
use super::environment::Environment;
use super::key::Key;
use super::kind::Kind;
use super::settings::{Settings, Sources};
use super::{Found, Refusal, file, refuse};
use crate::cli::CliError;
use crate::cli::judge_args::JudgeArgs;

/// The subcommand whose every flag is a setting.
pub const SERVER: &str = "serve";

/// The settings of one subcommand.
pub struct Scope {
    pub keys: Vec<Key>,
    /// Whether a file is read, and a variable of ours that is no setting is wrong.
    server: bool,
}

impl Scope {
    /// All flags of the server; of other subcommands those that choose the judge, if it has them.
    pub fn of(subcommand: &Command) -> Self {
        let keys = subcommand.get_arguments().filter_map(Key::of);
        if subcommand.get_name() == SERVER {
            return Self { keys: keys.filter(|key| !FLAGS.contains(&key.long())).collect(), server: true };
        }
        let judge = JudgeArgs::augment_args(Command::new("judge"));
        let shared: Vec<&str> = judge.get_arguments().filter_map(Arg::get_long).collect();
        let keys: Vec<Key> = keys.filter(|key| shared.contains(&key.long())).collect();
        // A flag of the same name alone is another one.
        Self { keys: if keys.len() == shared.len() { keys } else { Vec::new() }, server: false }
    }

    /// The settings that hold with `flags`, the environment and the file that either of them names.
    pub fn settle(self, flags: &ArgMatches, environment: &Environment) -> Result<Settings, Refusal> {
        let path = if self.server { ConfigArgs::from_arg_matches(flags)?.config } else { None };
        let path = path.or_else(|| environment.file().filter(|_| self.server));
        let sources = Sources {
            flags: given(&self.keys, flags),
            variables: environment.read(&self.keys, self.server),
            file: path.map(|path| (file::read(&path, &self.keys), path)),
        };
        Ok(self.settled(sources)?)
    }

    /// The settings that hold with a file alone.
    pub fn settle_file(self, name: &str, text: &str) -> Result<Settings, CliError> {
        let found = file::parse(name, text, &self.keys);
        self.settled(Sources { file: Some((found, PathBuf::from(name))), ..Sources::default() })
    }

    fn settled(self, mut sources: Sources) -> Result<Settings, CliError> {
        let mut problems = std::mem::take(&mut sources.flags.problems);
        problems.append(&mut sources.variables.problems);
        if let Some((found, _)) = &mut sources.file {
            problems.append(&mut found.problems);
        }
        refuse(problems)?;
        Ok(Settings::of(self.keys, sources))
    }
}

/// Makes every flag one that a setting can be, in all subcommands.
pub fn prepare(command: Command) -> Command {
    let server = command.get_name() == SERVER;
    let command = command.mut_args(|arg| match Kind::of(&arg) {
        // A switch can be turned off where a file turns it on.
        Kind::Boolean if server && is_switch(&arg) => arg
            .action(ArgAction::Set)
            .num_args(0..=1)
            .require_equals(true)
            .value_name("BOOL")
            .default_value("false")
            .default_missing_value("true")
            .hide_default_value(true)
            .hide_possible_values(true),
        kind if kind.may_be_negative() && arg.get_long().is_some() => arg.allow_negative_numbers(true),
        _ => arg,
    });
    command.mut_subcommands(prepare)
}

fn is_switch(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::SetTrue) && !arg.get_long().is_some_and(|long| FLAGS.contains(&long))
}

/// The same command, but for the values of settings, which may be anything.
pub fn unchecked(command: Command) -> Command {
    command.mut_subcommands(|subcommand| {
        let ids: Vec<String> = Scope::of(&subcommand).keys.iter().map(|key| key.id().to_owned()).collect();
        subcommand.mut_args(|arg| {
            let setting = ids.iter().any(|id| arg.get_id() == id.as_str());
            let parser = Unchecked(arg.get_value_parser().clone());
            if setting { arg.value_parser(parser) } else { arg }
        })
    })
}

/// Takes any value; help still shows the right ones.
#[derive(Clone)]
struct Unchecked(ValueParser);

impl TypedValueParser for Unchecked {
    type Value = OsString;

    fn parse_ref(&self, _: &Command, _: Option<&Arg>, value: &OsStr) -> Result<OsString, clap::Error> {
        Ok(value.to_owned())
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.0.possible_values()
    }
}

/// What the command line itself says.
fn given(keys: &[Key], flags: &ArgMatches) -> Found {
    let mut found = Found::default();
    for key in keys.iter().filter(|key| flags.value_source(key.id()) == Some(ValueSource::CommandLine)) {
        let value = flags.get_raw(key.id()).and_then(|mut values| values.next()).unwrap_or(OsStr::new(""));
        match key.check(value) {
            Ok(()) => _ = found.values.insert(key.word().to_owned(), value.to_owned()),
            Err(reason) => {
                let shown = key.shown_short(value);
                found.problems.push(format!("invalid value '{shown}' for '{}': {reason}", key.usage()));
            }
        }
    }
    found
}
