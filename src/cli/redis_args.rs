//! The flags of the verdict cache's second tier, for the server.

use std::convert::Infallible;
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use clap::Args;

use super::CliError;
use super::values::whole;
use crate::cache::redis::{KeyPrefix, RedisSecret, RedisServer};
use crate::service::RedisSettings;

const TTL: usize = RedisSettings::TTL.as_secs() as usize;

const TIMEOUT: usize = RedisSettings::TIMEOUT.as_millis() as usize;

/// Bytes of a file with a secret, at most: a larger one is another file.
const LARGEST_SECRET: u64 = 4096;

/// Where verdicts are shared with other servers, and kept over restarts.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Redis")]
pub struct RedisArgs {
    /// Redis for verdicts, `redis://USER:PASSWORD@HOST:PORT/DB`, `rediss://` or `unix://` (docs/redis.md); the server
    /// does not depend on it. Better as a variable than as a flag, which other users of the machine can see.
    #[arg(long, value_name = "URL", hide_env_values = true)]
    redis_url: Option<Hidden>,
    /// File with the secret that proves that a verdict in Redis was written by a judge; the same for all that share.
    #[arg(long, value_name = "FILE")]
    redis_secret_file: Option<PathBuf>,
    /// How long Redis keeps a verdict, in seconds; 0: until it makes room.
    #[arg(long, value_name = "S")]
    #[arg(default_value_t = TTL, value_parser = whole(0, 1 << 30))]
    redis_ttl_s: usize,
    /// How long Redis may take to answer; after a few late answers in a row it is not asked until it is quick.
    #[arg(long, value_name = "MS")]
    #[arg(default_value_t = TIMEOUT, value_parser = whole(1, 1000))]
    redis_timeout_ms: usize,
    /// What the names of all keys in Redis start with.
    #[arg(long, value_name = "TEXT")]
    #[arg(default_value_t = KeyPrefix::default(), value_parser = prefix)]
    redis_prefix: KeyPrefix,
}

impl RedisArgs {
    /// Whether the settings go together, without reading a file.
    pub fn check(&self) -> Result<(), CliError> {
        self.server().map(drop)
    }

    /// The settings; None without a URL.
    pub fn settings(&self) -> Result<Option<RedisSettings>, CliError> {
        let Some((server, file)) = self.server()? else { return Ok(None) };
        let wrong = |flag: &str, problem: &dyn fmt::Display| CliError::Setting(format!("{flag}: {problem}"));
        let named = format!("--redis-secret-file {}", file.display());
        let secret = read(file).map_err(|error| wrong(&named, &error))?;
        let secret = RedisSecret::new(&secret).map_err(|error| wrong(&named, &error))?;
        Ok(Some(RedisSettings {
            server,
            secret,
            prefix: self.redis_prefix.clone(),
            ttl: Some(Duration::from_secs(self.redis_ttl_s as u64)).filter(|ttl| !ttl.is_zero()),
            timeout: Duration::from_millis(self.redis_timeout_ms as u64),
        }))
    }
}

impl RedisArgs {
    /// Where Redis is, and the file of the secret.
    fn server(&self) -> Result<Option<(RedisServer, &Path)>, CliError> {
        let Some(Hidden(url)) = &self.redis_url else { return Ok(None) };
        let server = RedisServer::parse(url).map_err(|error| CliError::Setting(format!("--redis-url: {error}")))?;
        match &self.redis_secret_file {
            Some(file) => Ok(Some((server, file))),
            None => Err(CliError::Setting(
                "--redis-url needs --redis-secret-file, the same secret for all servers that share: without one, \
                 whoever can write to Redis could make up rewards; make one with `openssl rand -hex 32`"
                    .to_owned(),
            )),
        }
    }
}

fn read(file: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(file)?.take(LARGEST_SECRET + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST_SECRET {
        return Err(std::io::Error::other(format!("it has more than {LARGEST_SECRET} bytes: it is no secret")));
    }
    Ok(bytes)
}

fn prefix(text: &str) -> Result<KeyPrefix, String> {
    KeyPrefix::from_str(text).map_err(|error| error.to_string())
}

/// A text that errors, help and debug output do not show. It is checked later: clap would print it.
#[derive(Clone)]
struct Hidden(String);

impl FromStr for Hidden {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}
