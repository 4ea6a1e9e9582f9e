//! The flags of the audit file, for the server.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum as _};

use super::CliError;
use super::values::whole;
use crate::audit::{Audit, AuditError, AuditGuard, AuditSettings, Redact, Rotation};

const MIB: u64 = 1 << 20;

/// Largest size and count that may be asked for.
const MOST: usize = 1 << 20;

/// Whether and how calls are recorded.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Audit")]
pub struct AuditArgs {
    /// Record every call with its text and score bits in this file, a JSON line each (docs/audit.md).
    #[arg(long, value_name = "FILE")]
    audit_file: Option<PathBuf>,
    /// Share of the calls that are recorded, above 0 and at most 1.
    #[arg(long, value_name = "RATIO", default_value = "1", value_parser = share)]
    audit_sample: f64,
    /// What stands in records as its SHA-256 alone: persona, context and responses, or these and the caller's ids.
    #[arg(long, value_name = "none|text|all")]
    #[arg(default_value = "none", value_parser = redact)]
    audit_redact: Redact,
    /// Size in MiB at which the file is set aside as FILE.000001 and so on; 0: never.
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = whole(0, MOST))]
    audit_rotate_mb: usize,
    /// Files that are kept beside the newest; 0: all.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole(0, MOST))]
    audit_keep: usize,
    /// Answer no call whose record could not be written: it gets UNAVAILABLE in place of its verdicts.
    #[arg(long)]
    audit_required: bool,
}

impl AuditArgs {
    /// The settings; None without a file.
    pub fn settings(&self) -> Result<Option<AuditSettings>, CliError> {
        let rotation = Rotation {
            bytes: Some(self.audit_rotate_mb as u64 * MIB).filter(|bytes| *bytes > 0),
            keep: self.audit_keep,
        };
        match self.audit_file.clone() {
            Some(path) => Ok(Some(AuditSettings {
                path,
                sample: self.audit_sample,
                redact: self.audit_redact,
                rotation,
                required: self.audit_required,
            })),
            None if self.audit_required => {
                Err(CliError::Setting("--audit-required needs a file to write to: --audit-file FILE".to_owned()))
            }
            None => Ok(None),
        }
    }

    /// Opens the audit, if there is one.
    pub fn open(&self) -> Result<Option<(Arc<Audit>, AuditGuard)>, CliError> {
        Ok(self.settings()?.map(Audit::open).transpose()?)
    }
}

impl From<AuditError> for CliError {
    fn from(error: AuditError) -> Self {
        Self::Failed(error.to_string())
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err("it must be a number above 0 and at most 1, for example 0.1".to_owned()),
    }
}

fn redact(text: &str) -> Result<Redact, String> {
    Redact::from_str(text, false).map_err(|_| "it must be none, text or all".to_owned())
}
