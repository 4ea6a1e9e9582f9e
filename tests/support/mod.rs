//! What the tests share. Each test file uses a part of it.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod cli;
pub mod hostile;
pub mod http;
pub mod judge;
pub mod load;
pub mod redis;
pub mod server;
pub mod tiny;

use std::path::PathBuf;

use prism_judge::model::registry::{DEFAULT_MODEL, resolve};

/// The file of the default backbone. Where it is missing, a test on CI fails and one on a desk is skipped, loudly.
pub fn backbone() -> Option<PathBuf> {
    match resolve(DEFAULT_MODEL) {
        Ok(path) => Some(path),
        Err(error) if std::env::var_os("CI").is_some() => panic!("this test needs the backbone: {error}"),
        Err(error) => {
            eprintln!("SKIPPED, NOT TESTED: {error}");
            None
        }
    }
}
