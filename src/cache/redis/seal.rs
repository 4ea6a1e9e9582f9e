//! What proves that a value was written for its key by a judge with the same secret: HMAC-SHA-256.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::{Invalid, RedisSecret, value};
use crate::digest::Digest;

/// Changes whenever the same bytes come to mean something else.
const VERSION: u8 = 1;

/// Version, and the length of the body.
const HEAD: usize = 1 + size_of::<u16>();

const TAG: usize = 32;

/// Bytes of the longest sealed value.
pub(super) const LONGEST: usize = HEAD + value::LONGEST + TAG;

/// Seals and opens values: version, length of the body, body, and a tag over these and the name of the key.
#[derive(Clone)]
pub struct Seal(Hmac<Sha256>);

impl Seal {
    pub fn new(secret: &RedisSecret) -> Self {
        // A secret of any length, and a key that is used for nothing else.
        let derived = Digest::builder("prism-judge redis seal 1").field("secret", secret.bytes()).finish();
        let mut key = [0; 64];
        key[..32].copy_from_slice(derived.as_bytes());
        Self(Hmac::<Sha256>::new((&key).into()))
    }

    /// A body as the value of the key `name`.
    pub fn seal(&self, name: &str, body: &[u8]) -> Vec<u8> {
        let mut value = Vec::with_capacity(HEAD + body.len() + TAG);
        value.push(VERSION);
        // No body is that long: one that were could not be opened again.
        value.extend(u16::try_from(body.len()).unwrap_or(u16::MAX).to_le_bytes());
        value.extend(body);
        let tag = self.tag(name, &value).finalize().into_bytes();
        value.extend(tag);
        value
    }

    /// The body of the value of the key `name`.
    ///
    /// # Errors
    /// It was not sealed for this key by this secret, or was changed since.
    pub fn open<'a>(&self, name: &str, value: &'a [u8]) -> Result<&'a [u8], Invalid> {
        let (head, rest) = value.split_first_chunk::<HEAD>().ok_or(Invalid::Length)?;
        let [version, length @ ..] = *head;
        if version != VERSION {
            return Err(Invalid::Version);
        }
        let length = usize::from(u16::from_le_bytes(length));
        if rest.len() != length + TAG {
            return Err(Invalid::Length);
        }
        let (signed, tag) = value.split_at(HEAD + length);
        // In constant time.
        self.tag(name, signed).verify_slice(tag).map_err(|_| Invalid::Seal)?;
        Ok(&rest[..length])
    }

    /// Over the name with its length, and all before the tag.
    fn tag(&self, name: &str, signed: &[u8]) -> Hmac<Sha256> {
        let mut tag = self.0.clone();
        tag.update(&(name.len() as u64).to_le_bytes());
        tag.update(name.as_bytes());
        tag.update(signed);
        tag
    }
}
