//! The set of personas in use, and how it is exchanged.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::folder::Contents;
use super::{Registry, RegistryError};
use crate::persona::Persona;
use crate::watched::Watched;

/// Personas whose files may change while they are used.
pub struct Personas {
    path: PathBuf,
    registry: Watched<Registry>,
}

impl Personas {
    /// The personas of a folder or a file. Blocks.
    ///
    /// # Errors
    /// Everything that is wrong, in one answer.
    pub fn open(path: &Path) -> Result<Self, RegistryError> {
        let contents = Contents::read(path);
        let seen = contents.digest();
        let (registry, problems) = Registry::of(path, contents);
        let registry = RegistryError::unless(problems, registry)?;
        Ok(Self { path: path.to_owned(), registry: Watched::new(registry, seen) })
    }

    /// The set that is in use. Whoever holds it keeps it, whatever comes after.
    pub fn now(&self) -> Arc<Registry> {
        Arc::clone(&self.registry.now())
    }

    /// Takes what the files hold now, for calls from now on; whether that was something new. `check` is asked about each
    /// new persona. Blocks.
    ///
    /// # Errors
    /// Something is wrong: once for each change, and the whole set that was there stays.
    pub fn reload<E: fmt::Display>(&self, check: impl Fn(&Persona) -> Result<(), E>) -> Result<bool, RegistryError> {
        let Some(contents) = self.changed(|| Contents::read(&self.path)) else { return Ok(false) };
        self.registry.renew(contents.digest(), |_| {
            let (registry, problems) = Registry::of(&self.path, contents);
            let registry = RegistryError::unless(problems, registry)?;
            registry.check(check)?;
            Ok(registry)
        })
    }

    /// What `read` finds, if it is new and stands still: files that are being written or exchanged are looked at again the
    /// next time.
    fn changed(&self, read: impl Fn() -> Contents) -> Option<Contents> {
        let first = read().digest();
        if !self.registry.differs(first) {
            return None;
        }
        Some(read()).filter(|contents| contents.digest() == first)
    }
}

#[cfg(test)]
#[path = "personas_tests.rs"]
mod tests;
