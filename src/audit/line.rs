//! Lines of the audit file. Each ends with the SHA-256 digest of its own bytes, and names the digest of the line before
//! it, so that a line that was cut off, changed, taken out or moved is noticed.

use serde::Deserialize;

use super::{Record, SCHEMA};
use crate::digest::Digest;

/// What stands between the digested bytes of a line and their digest.
const DIGEST: &str = r#","digest":""#;

/// A line as the one after it sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    pub seq: u64,
    pub digest: Digest,
}

/// An intact line.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub record: Record,
    /// The line's own number, from 0, and digest.
    pub link: Link,
    /// The digest of the line before it; None for the first line of all.
    pub prev: Option<Digest>,
}

/// Why a line cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    #[error("the line does not end with its digest: it was cut off or changed")]
    Torn,
    #[error("the line's digest does not fit: it was changed")]
    Changed,
    #[error("the record has schema {0}, and this program reads up to {SCHEMA}: use a newer one")]
    Schema(u32),
    #[error("the record cannot be read: {0}")]
    Unreadable(String),
}

/// Appends the line of a record in JSON to `lines`.
pub fn seal(record: &str, after: Option<Link>, lines: &mut Vec<u8>) -> Link {
    let seq = after.map_or(0, |link| link.seq + 1);
    let prev = after.map_or("null".to_owned(), |link| format!("\"{}\"", link.digest));
    let start = lines.len();
    lines.extend_from_slice(format!(r#"{{"record":{record},"seq":{seq},"prev":{prev}"#).as_bytes());
    let digest = Digest::of_bytes(&lines[start..]);
    lines.extend_from_slice(format!("{DIGEST}{digest}\"}}\n").as_bytes());
    Link { seq, digest }
}

/// Reads a line without its line end.
pub fn open_line(text: &str) -> Result<Line, Damage> {
    #[derive(Deserialize)]
    struct Wire<R> {
        record: R,
        seq: u64,
        prev: Option<Digest>,
    }
    #[derive(Deserialize)]
    struct Schema {
        schema: u32,
    }
    let (sealed, digest) = split(text).ok_or(Damage::Torn)?;
    if Digest::of_bytes(sealed.as_bytes()) != digest {
        return Err(Damage::Changed);
    }
    match serde_json::from_str::<Wire<Record>>(text) {
        Ok(Wire { record, seq, prev }) => Ok(Line { record, link: Link { seq, digest }, prev }),
        Err(error) => match serde_json::from_str::<Wire<Schema>>(text) {
            Ok(Wire { record: Schema { schema }, .. }) if schema > SCHEMA => Err(Damage::Schema(schema)),
            _ => Err(Damage::Unreadable(error.to_string())),
        },
    }
}

/// The bytes that a line's digest is made of, and the digest that it names.
fn split(text: &str) -> Option<(&str, Digest)> {
    let rest = text.strip_suffix("\"}")?;
    let at = rest.len().checked_sub(64)?;
    let digest = rest.get(at..)?.parse().ok()?;
    Some((rest.get(..at)?.strip_suffix(DIGEST)?, digest))
}

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;
