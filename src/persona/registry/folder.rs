//! The files of a folder of personas, or a single file: which are taken, which are skipped, what they hold.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::syntax::Syntax;
use crate::digest::{Builder, Digest};

/// Bytes of a file, at most.
const FILE_BYTES: u64 = 4 << 20;

/// Bytes of all files, at most.
const ALL_BYTES: u64 = 64 << 20;

/// Entries of a folder that are looked at, at most.
const ENTRIES: usize = 20_000;

/// What a file holds, by its extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Structured(Syntax),
    Text,
}

/// The extensions that are taken, in any case of letters.
const KINDS: [(&str, Kind); 6] = [
    ("toml", Kind::Structured(Syntax::Toml)),
    ("yaml", Kind::Structured(Syntax::Yaml)),
    ("yml", Kind::Structured(Syntax::Yaml)),
    ("json", Kind::Structured(Syntax::Json)),
    ("txt", Kind::Text),
    ("md", Kind::Text),
];

/// Why a file of a folder is no persona's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    Hidden,
    Extension,
    ReadMe,
    Folder,
    NoFile,
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hidden => "it is hidden",
            Self::Extension => "its name does not end in .toml, .yaml, .yml, .json, .txt or .md",
            Self::ReadMe => "it says how to read the others",
            Self::Folder => "it is a folder",
            Self::NoFile => "it is neither a file nor a folder",
        })
    }
}

/// A file that is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    pub file: String,
    pub reason: SkipReason,
}

/// A file that is read.
pub struct Source {
    /// As messages call it.
    pub name: String,
    /// Its name without folder and extension: the id of a single persona in it.
    pub stem: String,
    pub kind: Kind,
    /// Or why there are none.
    pub bytes: Result<Vec<u8>, String>,
}

impl Source {
    /// None where a file of that name is not taken.
    pub fn new(name: &Path, bytes: Result<Vec<u8>, String>) -> Option<Self> {
        let extension = name.extension()?.to_str()?;
        let (_, kind) = KINDS.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(extension))?;
        let stem = name.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Some(Self { name: name.display().to_string(), stem, kind, bytes })
    }
}

/// All that is there at one look.
#[derive(Default)]
pub struct Contents {
    /// In the order of their names.
    pub files: Vec<Source>,
    pub skipped: Vec<Skipped>,
    /// Why the place as a whole cannot be read.
    pub unreadable: Option<String>,
}

impl Contents {
    /// What lies at `path`, a file or a folder. Never fails: what cannot be read is part of what was found.
    pub fn read(path: &Path) -> Self {
        let mut contents = Self::default();
        if let Err(reason) = contents.look(path) {
            contents.unreadable = Some(reason);
        }
        contents
    }

    /// The same of everything; equal contents have an equal digest.
    pub fn digest(&self) -> Digest {
        let add = |digest: Builder, Source { name, bytes, .. }: &Source| match bytes {
            Ok(bytes) => digest.field("file", name.as_bytes()).field("bytes", bytes),
            Err(reason) => digest.field("file", name.as_bytes()).field("unreadable", reason.as_bytes()),
        };
        let digest = self.files.iter().fold(Digest::builder("prism-judge persona files 1"), add);
        digest.field("unreadable", self.unreadable.as_deref().unwrap_or_default().as_bytes()).finish()
    }

    fn look(&mut self, path: &Path) -> Result<(), String> {
        let plain = |error: io::Error| error.to_string();
        if !path.metadata().map_err(plain)?.is_dir() {
            let source = Source::new(path, read(path, FILE_BYTES));
            self.files.push(source.ok_or_else(|| SkipReason::Extension.to_string())?);
            return Ok(());
        }
        let mut entries: Vec<PathBuf> = Vec::new();
        for entry in path.read_dir().map_err(plain)? {
            entries.push(entry.map_err(plain)?.path());
            if entries.len() > ENTRIES {
                return Err(format!("the folder has more than {ENTRIES} entries; is it one of personas?"));
            }
        }
        entries.sort();
        let mut left = ALL_BYTES;
        for path in entries {
            if let Some(reason) = skip(&path) {
                self.skipped.push(Skipped { file: path.display().to_string(), reason });
                continue;
            }
            let bytes = read(&path, FILE_BYTES.min(left));
            left -= bytes.as_ref().map_or(0, |bytes| bytes.len() as u64);
            // What has no extension of ours was skipped.
            self.files.extend(Source::new(&path, bytes));
        }
        Ok(())
    }
}

/// Why an entry of a folder is not read. What a link points to counts, as in a Kubernetes ConfigMap, whose files are
/// links into a hidden folder that is exchanged.
fn skip(path: &Path) -> Option<SkipReason> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with('.') {
        return Some(SkipReason::Hidden);
    }
    let kind = path.metadata().map(|entry| entry.file_type());
    if kind.as_ref().is_ok_and(std::fs::FileType::is_dir) {
        return Some(SkipReason::Folder);
    }
    let Some(source) = Source::new(path, Ok(Vec::new())) else { return Some(SkipReason::Extension) };
    if source.kind == Kind::Text && source.stem.eq_ignore_ascii_case("readme") {
        return Some(SkipReason::ReadMe);
    }
    // Reading a pipe would wait for somebody who writes. A link that leads nowhere is an error of its own.
    kind.is_ok_and(|kind| !kind.is_file()).then_some(SkipReason::NoFile)
}

fn read(path: &Path, limit: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(limit + 1).read_to_end(&mut bytes));
    read.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > limit {
        return Err(match limit {
            FILE_BYTES => format!("it has more than {} MiB; is it a file of personas?", FILE_BYTES >> 20),
            _ => format!("the files together have more than {} MiB", ALL_BYTES >> 20),
        });
    }
    Ok(bytes)
}

#[cfg(test)]
#[path = "folder_tests.rs"]
mod tests;
