//! Whose keys and values are shared.

use crate::digest::Digest;

/// Work of one realm shares keys and values; work of different realms never does. How long an answer takes, and how many
/// tokens were computed for it, would otherwise tell one tenant what another one sent (CVE-2025-46570).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Realm([u8; 16]);

impl Realm {
    /// The realm of a tenant; the empty name is one as well.
    pub fn of(tenant: &str) -> Self {
        // Half a digest is enough: names are few, and those who call do not choose them.
        let mut half = [0; 16];
        half.copy_from_slice(&Digest::of_bytes(tenant.as_bytes()).as_bytes()[..16]);
        Self(half)
    }
}

impl Default for Realm {
    fn default() -> Self {
        Self::of("")
    }
}
