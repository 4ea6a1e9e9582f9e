//! The command line: one file per subcommand. Parses, calls `service`, prints; adds no rule of its own.

mod audit_args;
mod bars;
mod bench;
mod config;
mod config_command;
mod debug_passes;
mod debug_prefill;
mod debug_prompts;
mod debug_score;
mod demo;
mod dialogue;
mod drive;
mod engine_args;
mod exit;
mod explain;
mod input;
mod interrupt;
mod judge_args;
mod keys;
mod limit_args;
mod models;
mod output;
mod persona_args;
mod personas;
mod progress;
mod redis_args;
mod replay;
mod replay_report;
mod score;
mod serve;
mod server_args;
mod telemetry_args;
mod values;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use self::config::{Environment, Refusal, Settings};

pub use config_command::check_config;
pub use exit::{CliError, Outcome};

const EXAMPLES: &str = "\
Examples:
  prism-judge demo                              judge built-in replies
  prism-judge score rows.jsonl > out.jsonl      one JSON verdict a line
  prism-judge explain rows.jsonl --id 12        show how a verdict came about
  prism-judge dialogue dialogues.jsonl          how a persona holds, by turn
  prism-judge bench groups.jsonl                metrics where answers are known
  prism-judge serve --listen 127.0.0.1:50051    judge over gRPC
  prism-judge config check prism-judge.toml     is the server's file in order?
  prism-judge keys new --tenant chat            a key for the server's callers
  prism-judge personas check personas/          which personas have which id?
  prism-judge replay audit.jsonl                judge recorded calls again

The flags under \"Judge\" can be variables too: --model is PRISM_JUDGE_MODEL. So
can all flags of serve; an empty variable is none, and a flag goes before it.

Exit status: 0 all is well, 1 could not start or write, 2 some line failed,
64 wrong flag or setting, 130 Ctrl-C.";

/// Scores how well a response keeps to a persona, on three dimensions, with an open language model in this process.
#[derive(Debug, Parser)]
#[command(name = "prism-judge", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Score(score::Args),
    Explain(explain::Args),
    /// List, fetch and check the judge's models.
    Models(models::ModelsArgs),
    Demo(demo::Args),
    Dialogue(dialogue::Args),
    Bench(bench::Args),
    Serve(Box<serve::Args>),
    Keys(keys::KeysArgs),
    Personas(personas::PersonasArgs),
    Config(config_command::Args),
    Replay(replay::Args),
    #[command(hide = true)]
    DebugPasses(debug_passes::Args),
    #[command(hide = true)]
    DebugPrefill(debug_prefill::Args),
    #[command(hide = true)]
    DebugPrompts(debug_prompts::Args),
    #[command(hide = true)]
    DebugScore(debug_score::Args),
}

/// Parses the command line, runs the subcommand and gives the exit status.
pub fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    let (cli, settings) = match parse(&args, &Environment::of_process()) {
        Ok(parsed) => parsed,
        Err(Refusal::Usage(error)) => {
            // Nothing can be done if even the message cannot be printed.
            let _ = error.print();
            return if error.use_stderr() { exit::SETTING.into() } else { ExitCode::SUCCESS };
        }
        Err(Refusal::Setting(error)) => return exit::code(Err(error)),
    };
    let outcome = match cli.command {
        Command::Score(args) => score::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Models(args) => models::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Dialogue(args) => dialogue::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Serve(args) => serve::run(&args, &settings),
        Command::Keys(args) => keys::run(&args),
        Command::Personas(args) => personas::run(&args),
        Command::Config(args) => config_command::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::DebugPasses(args) => debug_passes::run(&args),
        Command::DebugPrefill(args) => debug_prefill::run(&args),
        Command::DebugPrompts(args) => debug_prompts::run(&args),
        Command::DebugScore(args) => debug_score::run(&args),
    };
    exit::code(outcome)
}

fn parse(args: &[OsString], environment: &Environment) -> Result<(Cli, Settings), Refusal> {
    let (matches, settings) = config::parse(Cli::command(), args, environment)?;
    Ok((Cli::from_arg_matches(&matches)?, settings))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// clap breaks longer lines anywhere, and an example that is broken cannot be pasted.
    #[test]
    fn the_examples_of_every_command_fit_into_80_columns() {
        let mut commands = vec![Cli::command()];
        while let Some(command) = commands.pop() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in help.lines() {
                assert!(line.chars().count() <= 80, "{}: {line}", command.get_name());
            }
            commands.extend(command.get_subcommands().cloned());
        }
    }
}
