//! The file that records go to: appended to by one process, and set aside when it is large.
//!
//! `FILE` is the newest; the older ones are `FILE.000001`, `FILE.000002` and so on, in the order in which they were
//! written.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::{AuditError, Link, open_line};

/// Digits of a number in a name, at least: names sort as they were written.
const DIGITS: usize = 6;

/// Bytes that are first read from the end of a file to find its last line.
const TAIL: u64 = 64 << 10;

/// When files are set aside, and how many are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// None: one file for ever.
    pub bytes: Option<u64>,
    /// Files that are kept beside the newest; 0: all.
    pub keep: usize,
}

/// An open audit file.
#[derive(Debug)]
pub struct AuditFile {
    path: PathBuf,
    file: File,
    rotation: Rotation,
    /// Whether it is a file that can be cut and renamed, not a pipe or a device.
    regular: bool,
    /// Bytes up to the end of the last line.
    length: u64,
    /// Whether there may be half a line after the last one.
    torn: bool,
}

impl AuditFile {
    /// Opens or creates the file, for this process alone, and finds the line that the next one follows.
    pub fn open(path: &Path, rotation: Rotation) -> Result<(Self, Option<Link>), AuditError> {
        let failed = |source: io::Error| AuditError::Open { path: path.to_owned(), source };
        let file = appending().open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let regular = metadata.is_file();
        let mut opened = Self { path: path.to_owned(), file, rotation, regular, length: 0, torn: false };
        if !regular {
            return Ok((opened, None));
        }
        match opened.file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(AuditError::InUse(path.to_owned())),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        if metadata.mode() & 0o077 != 0 {
            tracing::warn!("the audit file {} can be read by others: chmod 600 would prevent it", path.display());
        }
        let tail = tail(path).map_err(failed)?;
        (opened.length, opened.torn) = (tail.length, tail.torn);
        let last = match tail.last {
            Some(last) => Some(last),
            // Nothing was written since the last file was set aside.
            None => match rotated(path).map_err(failed)?.last() {
                Some((_, newest)) => self::tail(newest).map_err(failed)?.last,
                None => None,
            },
        };
        Ok((opened, last))
    }

    /// Opens what is at the path now, if that is no longer this file because another process deleted, moved or replaced
    /// it; where nothing is, a new file. Whether it did.
    pub fn follow_path(&mut self) -> io::Result<bool> {
        if !self.regular {
            return Ok(false);
        }
        let id = |metadata: &fs::Metadata| (metadata.dev(), metadata.ino());
        match fs::metadata(&self.path) {
            Ok(there) if id(&there) == id(&self.file.metadata()?) => return Ok(false),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(_) | Err(_) => {}
        }
        // The line that the next one follows is still the last one of the file that has gone.
        (*self, _) = Self::open(&self.path, self.rotation).map_err(|error| match error {
            AuditError::Open { source, .. } => source,
            other => io::Error::other(other),
        })?;
        Ok(true)
    }

    /// Writes whole lines. If it fails none of them counts, and what was written of them is cut off again.
    pub fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.torn {
            self.file.write_all(b"\n")?;
            self.length += 1;
            self.torn = false;
        }
        if let Err(error) = self.file.write_all(lines) {
            self.torn = !self.regular || self.file.set_len(self.length).is_err();
            return Err(error);
        }
        // The path may have been left since it was looked at; what no path leads to is lost.
        if self.regular && self.file.metadata()?.nlink() == 0 {
            return Err(io::Error::other("it was deleted while it was written to"));
        }
        self.length += lines.len() as u64;
        Ok(())
    }

    /// Sets the file aside and starts a new one if `coming` bytes would make it too large. Whether it did.
    pub fn make_room(&mut self, coming: usize) -> io::Result<bool> {
        let due = self.rotation.bytes.is_some_and(|most| self.length > 0 && self.length + coming as u64 > most);
        if due && self.regular {
            self.rotate()?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Waits until the disk has what was written.
    pub fn sync(&self) -> io::Result<()> {
        if self.regular { self.file.sync_all() } else { Ok(()) }
    }

    /// A new file takes the name; until that has worked the old one stays in use.
    fn rotate(&mut self) -> io::Result<()> {
        self.sync()?;
        let number = rotated(&self.path)?.last().map_or(1, |(number, _)| number + 1);
        let aside = with_suffix(&self.path, &format!(".{number:0DIGITS$}"));
        // Its name is not one of those that a glob for the others finds.
        let mut hidden = OsString::from(".");
        hidden.push(self.path.file_name().unwrap_or_default());
        hidden.push(".new");
        let fresh = self.path.with_file_name(hidden);
        // One that is left from a process that ended just here is empty.
        let file = appending().open(&fresh)?;
        file.try_lock()?;
        fs::rename(&self.path, &aside)?;
        if let Err(error) = fs::rename(&fresh, &self.path) {
            fs::rename(&aside, &self.path)?;
            return Err(error);
        }
        File::open(folder(&self.path))?.sync_all()?;
        (self.file, self.length, self.torn) = (file, 0, false);
        self.prune()
    }

    /// Removes the oldest files beyond those that are kept.
    fn prune(&self) -> io::Result<()> {
        let files = rotated(&self.path)?;
        let keep = if self.rotation.keep == 0 { files.len() } else { self.rotation.keep };
        for (_, old) in &files[..files.len().saturating_sub(keep)] {
            fs::remove_file(old)?;
            tracing::info!("removed the audit file {}, the oldest of more than {keep}", old.display());
        }
        Ok(())
    }
}

/// Puts the files of each audit in the order in which they were written: the numbered ones, then the newest. Every file
/// comes with the name that they share.
pub fn in_order(files: &[PathBuf]) -> Vec<(PathBuf, PathBuf)> {
    let mut named: Vec<(PathBuf, u64, PathBuf)> = files
        .iter()
        .map(|file| match numbered(file) {
            Some((newest, number)) => (newest, number, file.clone()),
            None => (file.clone(), u64::MAX, file.clone()),
        })
        .collect();
    let names: Vec<PathBuf> = named.iter().map(|(name, ..)| name.clone()).collect();
    // Audits stay in the order in which they were given.
    named.sort_by_cached_key(|(name, number, _)| (names.iter().position(|first| first == name), *number));
    named.into_iter().map(|(name, _, file)| (name, file)).collect()
}

/// The name of the newest file, and the number, of a file that was set aside.
fn numbered(path: &Path) -> Option<(PathBuf, u64)> {
    let digits = path.extension()?.to_str()?;
    if digits.len() < DIGITS || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    Some((path.with_extension(""), digits.parse().ok()?))
}

/// The files of `path` that were set aside, oldest first.
fn rotated(path: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder(path))? {
        let file = path.with_file_name(entry?.file_name());
        if let Some((of, number)) = numbered(&file)
            && of == path
        {
            files.push((number, file));
        }
    }
    files.sort();
    Ok(files)
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Only the owner may read what is created.
fn appending() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600);
    options
}

/// The end of a file.
struct Tail {
    length: u64,
    /// The last intact line.
    last: Option<Link>,
    /// Whether the file ends within a line: a process was killed while it wrote.
    torn: bool,
}

/// Reads a file from its end, further and further back, until an intact line is found.
fn tail(path: &Path) -> io::Result<Tail> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut window = TAIL.min(length);
    loop {
        file.seek(SeekFrom::Start(length - window))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let torn = bytes.last().is_some_and(|byte| *byte != b'\n');
        let intact = |line: &[u8]| open_line(std::str::from_utf8(line).ok()?).ok().map(|line| line.link);
        if let Some(last) = bytes.rsplit(|byte| *byte == b'\n').find_map(intact) {
            return Ok(Tail { length, last: Some(last), torn });
        }
        if window == length {
            return Ok(Tail { length, last: None, torn });
        }
        window = (window * 4).min(length);
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
