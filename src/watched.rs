//! What comes from files and is exchanged while calls use it.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::{ArcSwap, Guard};

use crate::digest::Digest;

/// A value, and the digest of what the files held when they were last looked at, whether or not it was any good.
pub struct Watched<T> {
    now: ArcSwap<T>,
    seen: Mutex<Digest>,
}

impl<T> Watched<T> {
    /// `value` was made from files whose contents have the digest `seen`.
    pub fn new(value: T, seen: Digest) -> Self {
        Self { now: ArcSwap::from_pointee(value), seen: Mutex::new(seen) }
    }

    pub fn now(&self) -> Guard<Arc<T>> {
        self.now.load()
    }

    /// Whether the files hold something else than when they were last looked at.
    pub fn differs(&self, contents: Digest) -> bool {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) != contents
    }

    /// Takes what `load` makes of the value before, if the files hold something else now; whether they do.
    ///
    /// # Errors
    /// Those of `load`: once for each change, and the value stays.
    pub fn renew<E>(&self, contents: Digest, load: impl FnOnce(&T) -> Result<T, E>) -> Result<bool, E> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if *seen == contents {
            return Ok(false);
        }
        *seen = contents;
        self.now.store(Arc::new(load(&self.now.load())?));
        Ok(true)
    }
}
