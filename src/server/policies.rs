//! The file of policies, which may change while the server runs.

use std::path::{Path, PathBuf};

use crate::digest::Digest;
use crate::service::JudgeError;
use crate::service::check::{Policies, Policy};
use crate::watched::Watched;

/// Why a file of policies is not used; the one before it stays.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {reason}")]
pub struct PolicyError {
    file: String,
    reason: String,
}

/// The policies of a file.
pub struct PolicyFile {
    file: PathBuf,
    policies: Watched<Policies>,
}

impl PolicyFile {
    /// # Errors
    /// The file is unreadable or wrong.
    pub fn open(file: &Path) -> Result<Self, PolicyError> {
        let text = read(file)?;
        let policies = Policies::parse(&text).map_err(|reason| error(file, reason))?;
        Ok(Self { file: file.to_owned(), policies: Watched::new(policies, Digest::of_bytes(text.as_bytes())) })
    }

    /// See [`Policies::find`].
    pub fn find(&self, name: &str) -> Result<(String, Policy), JudgeError> {
        self.policies.now().find(name)
    }

    /// Takes what the file holds now, for checks from now on; whether that was something new. Blocks.
    ///
    /// # Errors
    /// The file is unreadable or wrong: the latter once for each change, and the policies that were there stay.
    pub fn reload(&self) -> Result<bool, PolicyError> {
        let text = read(&self.file)?;
        let contents = Digest::of_bytes(text.as_bytes());
        self.policies.renew(contents, |_| Policies::parse(&text).map_err(|reason| error(&self.file, reason)))
    }
}

fn read(file: &Path) -> Result<String, PolicyError> {
    std::fs::read_to_string(file).map_err(|reason| error(file, reason.to_string()))
}

fn error(file: &Path, reason: String) -> PolicyError {
    PolicyError { file: file.display().to_string(), reason }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn policy(name: &str, least: &str) -> String {
        format!("[policies.{name}]\nblock = {{ s_prism = {least} }}\n")
    }

    #[test]
    fn a_file_that_changes_is_taken_and_one_that_is_wrong_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("policies.toml");
        let write = |text: &str| std::fs::write(&file, text).unwrap();
        write(&policy("one", "0.5"));
        let policies = PolicyFile::open(&file).unwrap();
        let known = |name: &str| policies.find(name).is_ok();
        assert!(!policies.reload().unwrap());
        write(&policy("two", "0.5"));
        assert!(policies.reload().unwrap());
        assert!(!known("one") && known("two"));
        write(&policy("three", "5"));
        let error = policies.reload().unwrap_err().to_string();
        assert!(error.contains("policies.toml: policies.three.block.s_prism: it is 5"), "{error}");
        // It is told once.
        assert!(!policies.reload().unwrap());
        assert!(known("two") && !known("three"));
        std::fs::remove_file(&file).unwrap();
        assert!(policies.reload().is_err() && known("two"));
        assert!(PolicyFile::open(&file).is_err());
    }
}
