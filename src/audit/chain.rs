//! Whether lines follow each other without one missing.

use super::{Line, Link};

/// Follows lines in the order in which they were written.
#[derive(Debug, Default)]
pub struct Chain {
    last: Option<Link>,
}

/// A line that does not follow the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "line number {expected} should follow and this one has number {found}: lines are missing, or the files are not in \
     order"
)]
pub struct Break {
    pub expected: u64,
    pub found: u64,
}

impl Chain {
    /// Takes the next line. The first one, and one after a damaged line, may be any.
    pub fn follow(&mut self, line: &Line) -> Result<(), Break> {
        let last = self.last.replace(line.link);
        match last {
            Some(last) if line.prev != Some(last.digest) => Err(Break { expected: last.seq + 1, found: line.link.seq }),
            _ => Ok(()),
        }
    }

    /// The next line is damaged: what follows it cannot be checked against it.
    pub fn damaged(&mut self) {
        self.last = None;
    }
}
