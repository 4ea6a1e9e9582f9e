//! SHA-256 over tagged, length-prefixed fields, so that no two different inputs share a digest by shifting a boundary.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

/// A 256-bit digest, shown as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of raw bytes (a file, for example), without tags.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Starts a digest over fields; `schema` names what is digested.
    pub fn builder(schema: &str) -> Builder {
        Builder(Sha256::new()).field("schema", schema.as_bytes())
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Collects the fields of one digest, in order.
#[derive(Clone)]
pub struct Builder(Sha256);

impl Builder {
    /// Adds one field: both the tag and the value are preceded by their length in bytes.
    pub fn field(mut self, tag: &str, value: &[u8]) -> Self {
        for part in [tag.as_bytes(), value] {
            self.0.update((part.len() as u64).to_le_bytes());
            self.0.update(part);
        }
        self
    }

    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0; 64];
        for (digits, byte) in text.chunks_exact_mut(2).zip(self.0) {
            let digit = |value: u8| b"0123456789abcdef"[usize::from(value)];
            digits.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
        }
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl serde::Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A text that is no digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a digest has 64 hexadecimal digits in lower case")]
pub struct NotADigest;

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let digit = |digit: u8| match digit {
            b'0'..=b'9' => Ok(digit - b'0'),
            b'a'..=b'f' => Ok(digit - b'a' + 10),
            _ => Err(NotADigest),
        };
        let mut bytes = [0; 32];
        if text.len() != 2 * bytes.len() {
            return Err(NotADigest);
        }
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *byte = (digit(digits[0])? << 4) | digit(digits[1])?;
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_read_back_from_its_digits_and_from_nothing_else() {
        let digest = Digest::of_bytes(b"abc");
        let text = digest.to_string();
        assert_eq!(text.parse(), Ok(digest));
        for wrong in
            ["", &text[1..], &text.to_uppercase(), &text.replace('b', "g"), &format!("{text}0"), &"é".repeat(32)]
        {
            assert_eq!(wrong.parse::<Digest>(), Err(NotADigest), "{wrong}");
        }
    }

    #[test]
    fn the_digest_of_abc_is_the_published_one() {
        assert_eq!(
            Digest::of_bytes(b"abc").to_string(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn a_shifted_boundary_changes_the_digest() {
        let digest = |a: &str, b: &str| Digest::builder("t").field("x", a.as_bytes()).field("y", b.as_bytes()).finish();
        assert_ne!(digest("ab", "c"), digest("a", "bc"));
        assert_ne!(digest("", "abc"), digest("abc", ""));
    }
}
