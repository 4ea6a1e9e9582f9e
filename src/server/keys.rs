//! API keys: who may call, as which tenant, in which lanes and how much.
//!
//! The file holds digests, never keys, so that whoever reads it cannot call. It may change while the server runs.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use serde::Deserialize;
use subtle::ConstantTimeEq as _;

use crate::digest::Digest;
use crate::service::{Lane, Quota};
use crate::watched::Watched;

/// Who calls.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// Empty: nobody was asked for a key.
    pub tenant: Arc<str>,
    /// None: all lanes.
    lanes: Option<Arc<[Lane]>>,
    pub quota: Option<Arc<Quota>>,
}

impl Caller {
    /// # Errors
    /// The names of the lanes that the key opens.
    pub fn enter(&self, lane: Lane) -> Result<(), String> {
        match &self.lanes {
            Some(lanes) if !lanes.contains(&lane) => Err(names(lanes)),
            _ => Ok(()),
        }
    }
}

/// Why a call is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no `authorization` header, or it is no bearer key.
    NoKey,
    /// Nobody has this key.
    UnknownKey,
}

impl Refusal {
    /// As the metrics call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoKey => "missing",
            Self::UnknownKey => "unknown_key",
        }
    }
}

/// Why a file of keys is not used; the one before it stays.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {reason}")]
pub struct KeysError {
    file: String,
    reason: String,
}

/// The keys of a file.
pub struct Keys {
    file: PathBuf,
    entries: Watched<Vec<Entry>>,
}

struct Entry {
    digest: [u8; 32],
    caller: Caller,
}

/// The file (TOML).
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeysFile {
    #[serde(default)]
    keys: Vec<KeyLine>,
    #[serde(default)]
    tenants: BTreeMap<String, TenantLine>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyLine {
    sha256: String,
    tenant: String,
    lanes: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TenantLine {
    tokens_per_second: u64,
    /// Left out: ten seconds' worth.
    burst_tokens: Option<u64>,
}

/// Tokens that a tenant can save up, in seconds of its rate, if the file does not say.
const BURST_SECONDS: u64 = 10;

impl Keys {
    pub fn open(file: &Path) -> Result<Self, KeysError> {
        let text = read(file)?;
        let entries = parse(&text, &[]).map_err(|reason| error(file, reason))?;
        Ok(Self { file: file.to_owned(), entries: Watched::new(entries, Digest::of_bytes(text.as_bytes())) })
    }

    /// How many keys a file with this text has.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(text: &str) -> Result<usize, String> {
        parse(text, &[]).map(|entries| entries.len())
    }

    /// Who shows this key. Every key of the file is compared, in time that does not depend on them.
    pub fn caller(&self, headers: &HeaderMap) -> Result<Caller, Refusal> {
        let shown = headers.get(AUTHORIZATION).ok_or(Refusal::NoKey)?.as_bytes();
        let key = match shown.split_at_checked("bearer ".len()) {
            Some((scheme, key)) if scheme.eq_ignore_ascii_case(b"bearer ") => key.trim_ascii(),
            _ => return Err(Refusal::NoKey),
        };
        let digest = Digest::of_bytes(key);
        let mut caller = Err(Refusal::UnknownKey);
        for entry in self.entries.now().iter() {
            if bool::from(entry.digest.ct_eq(digest.as_bytes())) {
                caller = Ok(entry.caller.clone());
            }
        }
        caller
    }

    /// Takes what the file holds now, for calls from now on; whether that was something new. Blocks.
    ///
    /// # Errors
    /// The file is unreadable or wrong: once for each change, and the keys that were there stay.
    pub fn reload(&self) -> Result<bool, KeysError> {
        let text = read(&self.file)?;
        let contents = Digest::of_bytes(text.as_bytes());
        self.entries.renew(contents, |before| parse(&text, before).map_err(|reason| error(&self.file, reason)))
    }
}

fn read(file: &Path) -> Result<String, KeysError> {
    std::fs::read_to_string(file).map_err(|reason| error(file, reason.to_string()))
}

fn error(file: &Path, reason: String) -> KeysError {
    KeysError { file: file.display().to_string(), reason }
}

/// The entries of a file. A tenant keeps what it owes in `before`.
fn parse(text: &str, before: &[Entry]) -> Result<Vec<Entry>, String> {
    let file: KeysFile = toml::from_str(text).map_err(|error| place(text, error.span()))?;
    let mut quotas: HashMap<&str, Arc<Quota>> = HashMap::new();
    for (tenant, line) in &file.tenants {
        let burst = line.burst_tokens.unwrap_or(line.tokens_per_second.saturating_mul(BURST_SECONDS));
        if line.tokens_per_second == 0 || burst == 0 {
            return Err(format!("tenants.{tenant}: tokens_per_second and burst_tokens must be at least 1"));
        }
        if !file.keys.iter().any(|key| key.tenant == *tenant) {
            return Err(format!("tenants.{tenant}: no key belongs to this tenant"));
        }
        let mut earlier = before.iter().filter(|entry| *entry.caller.tenant == **tenant);
        let earlier = earlier.find_map(|entry| entry.caller.quota.clone());
        let quota = match earlier {
            Some(quota) if quota.limits() == (line.tokens_per_second, burst) => quota,
            Some(quota) => Arc::new(quota.changed(line.tokens_per_second, burst)),
            None => Arc::new(Quota::new(line.tokens_per_second, burst)),
        };
        quotas.insert(tenant, quota);
    }
    if file.keys.is_empty() {
        return Err("there is no [[keys]] entry: nobody could call".to_owned());
    }
    let mut entries: Vec<Entry> = Vec::with_capacity(file.keys.len());
    for (index, line) in file.keys.iter().enumerate() {
        let wrong = |what: &str| format!("keys[{index}]: {what}");
        let digest: Digest = line
            .sha256
            .parse()
            .map_err(|_| wrong("sha256 must be the 64 hexadecimal digits that `prism-judge keys new` prints"))?;
        if line.tenant.is_empty() {
            return Err(wrong("tenant must not be empty"));
        }
        if entries.iter().any(|entry| entry.digest == *digest.as_bytes()) {
            return Err(wrong("this key is there twice"));
        }
        let lanes = line.lanes.as_deref().map(lanes).transpose().map_err(|reason| wrong(&reason))?;
        let quota = quotas.get(line.tenant.as_str()).cloned();
        let caller = Caller { tenant: line.tenant.as_str().into(), lanes, quota };
        entries.push(Entry { digest: *digest.as_bytes(), caller });
    }
    Ok(entries)
}

/// Where a file is wrong. Neither the line nor the parser's words are shown: a key may stand there by mistake.
fn place(text: &str, span: Option<Range<usize>>) -> String {
    let before = text.get(..span.map_or(0, |span| span.start)).unwrap_or(text);
    format!(
        "line {}: this is not understood; a [[keys]] entry has sha256, tenant and maybe lanes, [tenants.NAME] has \
         tokens_per_second and maybe burst_tokens",
        before.matches('\n').count() + 1
    )
}

fn lanes(given: &[String]) -> Result<Arc<[Lane]>, String> {
    let lane = |name: &String| Lane::ALL.into_iter().find(|lane| lane.name() == name);
    let lanes: Option<Vec<Lane>> = given.iter().map(lane).collect();
    match lanes {
        Some(lanes) if !lanes.is_empty() => Ok(lanes.into()),
        _ => Err(format!("lanes must be some of {}; left out: all", names(&Lane::ALL))),
    }
}

fn names(lanes: &[Lane]) -> String {
    lanes.iter().map(|lane| lane.name()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
