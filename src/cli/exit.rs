//! What a subcommand can end with, and the exit status that stands for it.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use super::output;
use crate::model::ModelError;
use crate::persona::RegistryError;
use crate::service::{ErrorCode, JudgeError, OpenError};

/// Exit status of a wrong flag or setting (`EX_USAGE`).
pub const SETTING: u8 = 64;
/// Exit status after Ctrl-C (128 + SIGINT).
pub const INTERRUPTED: u8 = 130;
/// Exit status after a second SIGTERM (128 + SIGTERM).
pub const TERMINATED: u8 = 143;
const FAILED: u8 = 1;
const SOME_FAILED: u8 = 2;

/// How a subcommand ended that could do its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// At least one line has no verdict.
    SomeFailed,
    Interrupted,
}

impl Outcome {
    /// `Done`, unless something failed.
    pub fn of_failures(failed: usize) -> Self {
        if failed == 0 { Self::Done } else { Self::SomeFailed }
    }
}

/// Why a subcommand could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// A flag or a setting is wrong.
    #[error("{0}")]
    Setting(String),
    /// Something that the work needs is not there.
    #[error("{0}")]
    Failed(String),
    /// The reader of standard output went away; nobody is left to tell.
    #[error("the reader of the output has closed it")]
    Closed,
}

impl CliError {
    /// An error of the file system, with the file's name.
    pub fn file(path: &Path, error: &io::Error) -> Self {
        Self::Failed(format!("{}: {error}", path.display()))
    }

    /// An error while writing results.
    pub fn write(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Failed(format!("cannot write the results: {error}")),
        }
    }
}

impl From<ModelError> for CliError {
    fn from(error: ModelError) -> Self {
        match error {
            ModelError::Unknown(message) => Self::Setting(message),
            other => Self::Failed(other.to_string()),
        }
    }
}

impl From<RegistryError> for CliError {
    fn from(error: RegistryError) -> Self {
        Self::Setting(error.to_string())
    }
}

impl From<OpenError> for CliError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Model(error) => error.into(),
            // The built-in wording always loads: these come from a file that a flag names.
            OpenError::LabelSpaces(_)
            | OpenError::Template(_)
            | OpenError::Plan(_)
            | OpenError::KvBudget { .. }
            | OpenError::Threads => Self::Setting(error.to_string()),
            OpenError::Probe(error) => error.into(),
            OpenError::AnswerSlot(_) | OpenError::Thread(_) => Self::Failed(error.to_string()),
        }
    }
}

impl From<JudgeError> for CliError {
    fn from(error: JudgeError) -> Self {
        let message = output::message(&error);
        if error.code == ErrorCode::InvalidArgument { Self::Setting(message) } else { Self::Failed(message) }
    }
}

/// Prints what went wrong and gives the exit status.
pub fn code(outcome: Result<Outcome, CliError>) -> ExitCode {
    match outcome {
        Ok(Outcome::Done) | Err(CliError::Closed) => ExitCode::SUCCESS,
        Ok(Outcome::SomeFailed) => SOME_FAILED.into(),
        Ok(Outcome::Interrupted) => INTERRUPTED.into(),
        Err(error) => {
            output::tell(&format_args!("error: {error}"));
            if matches!(error, CliError::Setting(_)) { SETTING.into() } else { FAILED.into() }
        }
    }
}
