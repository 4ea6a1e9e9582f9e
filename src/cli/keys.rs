//! `prism-judge keys`: makes API keys.

use std::fs::File;
use std::io::{Read as _, Write as _};

use clap::{Args, Subcommand};

use super::{CliError, Outcome};
use crate::digest::Digest;
use crate::service::Lane;

const EXAMPLES: &str = "\
Examples:
  prism-judge keys new --tenant chat --lane guard >> keys.toml
  prism-judge keys new --tenant rl --lane train --lane batch >> keys.toml
  prism-judge serve --api-keys keys.toml

The key itself goes to standard error, once: give it to the caller, who sends
it as the metadata `authorization: Bearer KEY`. The file holds its digest. A
running server sees a changed file within --reload-s. To change a key, add the
new one, move the callers, remove the old one.

A tenant's share of the model, in the same file:
  [tenants.rl]
  tokens_per_second = 2000
  burst_tokens = 20000        # what it can save up; left out: 10 s' worth";

/// Make API keys for `serve --api-keys`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct KeysArgs {
    #[command(subcommand)]
    command: KeysCommand,
}

#[derive(Debug, Subcommand)]
enum KeysCommand {
    New(NewArgs),
}

/// Make a key: its entry for the file on standard output, the key itself on standard error.
#[derive(Debug, Args)]
struct NewArgs {
    /// Who calls with it. Tenants share neither verdicts nor quotas.
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    tenant: String,
    /// A lane that it opens (guard, train or batch), once for each; left out: all.
    #[arg(long, value_name = "LANE", value_parser = lane)]
    lane: Vec<Lane>,
}

/// Random bytes of a key.
const BYTES: usize = 32;

/// Runs the subcommand.
pub fn run(args: &KeysArgs) -> Result<Outcome, CliError> {
    let KeysCommand::New(NewArgs { tenant, lane }) = &args.command;
    let failed = |error: std::io::Error| CliError::Failed(format!("no random numbers can be had: {error}"));
    let mut random = [0; BYTES];
    File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut random)).map_err(failed)?;
    let digits: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let key = format!("prism-{digits}");
    let mut entry =
        format!("[[keys]]\nsha256 = \"{}\"\ntenant = {}\n", Digest::of_bytes(key.as_bytes()), quoted(tenant));
    if !lane.is_empty() {
        let names: Vec<String> = lane.iter().map(|lane| format!("\"{}\"", lane.name())).collect();
        entry.push_str(&format!("lanes = [{}]\n", names.join(", ")));
    }
    writeln!(std::io::stdout(), "{entry}").map_err(|error| CliError::write(&error))?;
    super::output::tell(&format_args!("{key}"));
    Ok(Outcome::Done)
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn lane(text: &str) -> Result<Lane, String> {
    let found = Lane::ALL.into_iter().find(|lane| lane.name() == text);
    found.ok_or_else(|| "it must be guard, train or batch".to_owned())
}
