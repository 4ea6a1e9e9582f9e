//! The flags of personas that have an id.

use std::path::PathBuf;

use clap::Args;

use super::CliError;
use crate::eval::Known;
use crate::persona::{Personas, Registry};

/// Where named personas are.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Personas")]
pub struct PersonaArgs {
    /// Personas that may be named by an id: a folder, or one file (docs/personas.md).
    #[arg(long, value_name = "PATH")]
    personas: Option<PathBuf>,
}

impl PersonaArgs {
    /// The personas, to be looked at again.
    pub fn open(&self) -> Result<Option<Personas>, CliError> {
        Ok(self.personas.as_deref().map(Personas::open).transpose()?)
    }
}

/// The flags of commands that read lines.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Personas")]
pub struct NamedArgs {
    #[command(flatten)]
    files: PersonaArgs,
    /// The one of --personas that is meant where nothing is said of the persona.
    #[arg(long, value_name = "ID", requires = "personas")]
    persona_id: Option<String>,
}

impl NamedArgs {
    /// The personas, as they are now.
    pub fn open(&self) -> Result<Known, CliError> {
        let registry = self.files.personas.as_deref().map(Registry::load).transpose()?.unwrap_or_default();
        let default = match self.persona_id.as_deref().map(|id| registry.get(id)) {
            None => None,
            Some(Ok(named)) => Some(named.persona.clone()),
            Some(Err(unknown)) => return Err(CliError::Setting(format!("--persona-id: {unknown}"))),
        };
        Ok(Known { registry, default })
    }
}
