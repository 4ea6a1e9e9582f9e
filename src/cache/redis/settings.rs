//! Where Redis is, and how it is used. Passwords and secrets never show.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use ::redis::io::tcp::TcpSettings;
use ::redis::{Client, ConnectionAddr, ConnectionInfo};

/// Bytes that a secret has at least.
const SHORTEST_SECRET: usize = 16;

/// Characters of a prefix, at most: it is part of every key.
const LONGEST_PREFIX: usize = 64;

/// What is wrong with a setting. Never shows a password or a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedisSettingError {
    #[error(
        "it is not the URL of a Redis (it is not shown, as it may hold a password): it must be \
         redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE], rediss://... for TLS, or unix:///PATH[?pass=PASSWORD], with \
         %40 and the like for special characters of a password"
    )]
    Url,
    #[error("#insecure is not possible: the server's certificate is always checked")]
    Insecure,
    #[error("it has {0} bytes and must have at least {SHORTEST_SECRET}; make one with `openssl rand -hex 32`")]
    ShortSecret(usize),
    #[error("it must have 1 to {LONGEST_PREFIX} characters, each a letter, a digit or one of - _ . : / {{ }}")]
    Prefix,
}

/// How the tier is set up.
#[derive(Clone, Debug)]
pub struct RedisSettings {
    pub server: RedisServer,
    /// What proves that a value was written by a judge; the same for all that share.
    pub secret: RedisSecret,
    pub prefix: KeyPrefix,
    /// How long a judgement is kept; None: until Redis makes room.
    pub ttl: Option<Duration>,
    /// How long Redis may take to answer a call.
    pub timeout: Duration,
}

impl RedisSettings {
    /// A week.
    pub const TTL: Duration = Duration::from_secs(7 * 24 * 3600);
    /// What a stopped Redis may cost a call, with room for the timer, is 5 ms.
    pub const TIMEOUT: Duration = Duration::from_millis(3);
}

/// A Redis, by its URL.
#[derive(Clone)]
pub struct RedisServer(Client);

impl RedisServer {
    /// # Errors
    /// [`RedisSettingError::Url`], [`RedisSettingError::Insecure`].
    pub fn parse(url: &str) -> Result<Self, RedisSettingError> {
        let info: ConnectionInfo = url.trim().parse().map_err(|_| RedisSettingError::Url)?;
        if matches!(info.addr(), ConnectionAddr::TcpTls { insecure: true, .. }) {
            return Err(RedisSettingError::Insecure);
        }
        let redis = info.redis_settings().clone().set_lib_name("prism-judge", env!("CARGO_PKG_VERSION"));
        // Without TCP_NODELAY a small command can wait 40 ms for an acknowledgement.
        let tcp = TcpSettings::default().set_nodelay(true);
        let client = Client::open(info.set_redis_settings(redis).set_tcp_settings(tcp));
        client.map(Self).map_err(|_| RedisSettingError::Url)
    }

    pub(super) fn client(&self) -> &Client {
        &self.0
    }
}

/// Host and port, or path.
impl fmt::Display for RedisServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.get_connection_info().addr().fmt(f)
    }
}

impl fmt::Debug for RedisServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisServer({self})")
    }
}

/// A secret that all judges of one cache have, and nobody else.
#[derive(Clone)]
pub struct RedisSecret(Vec<u8>);

impl RedisSecret {
    /// Of the bytes of a file; white space around them does not count.
    ///
    /// # Errors
    /// [`RedisSettingError::ShortSecret`].
    pub fn new(bytes: &[u8]) -> Result<Self, RedisSettingError> {
        let bytes = bytes.trim_ascii();
        if bytes.len() < SHORTEST_SECRET {
            return Err(RedisSettingError::ShortSecret(bytes.len()));
        }
        Ok(Self(bytes.to_vec()))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for RedisSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RedisSecret")
    }
}

/// What the names of all keys start with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPrefix(String);

impl Default for KeyPrefix {
    fn default() -> Self {
        Self("prism-judge".to_owned())
    }
}

impl FromStr for KeyPrefix {
    type Err = RedisSettingError;

    fn from_str(text: &str) -> Result<Self, RedisSettingError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.:/{}".contains(c);
        match text.len() {
            1..=LONGEST_PREFIX if text.chars().all(allowed) => Ok(Self(text.to_owned())),
            _ => Err(RedisSettingError::Prefix),
        }
    }
}

impl fmt::Display for KeyPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn urls_of_every_kind_are_read_and_shown_without_their_passwords() {
        for (url, shown) in [
            ("redis://host", "host:6379"),
            ("redis://:hunter2@host:7000/3", "host:7000"),
            ("rediss://judge:hunter2@10.0.0.1:6380", "10.0.0.1:6380"),
            ("redis://:hunter%402@[::1]:7000\n", "::1:7000"),
            ("unix:///run/redis.sock?pass=hunter2&db=1", "/run/redis.sock"),
            ("redis://host?x=hunter2", "host:6379"),
        ] {
            let server = RedisServer::parse(url).unwrap();
            assert_eq!(server.to_string(), shown);
            assert!(!format!("{server:?}").contains("hunter"), "{server:?}");
        }
    }

    #[test]
    fn wrong_urls_are_errors_that_do_not_repeat_them() {
        for url in ["", "host:6379", "http://:hunter2@host", "redis://:hunter2@", "redis://:hunter2@host/db", "redis:"]
        {
            let error = RedisServer::parse(url).unwrap_err();
            assert_eq!(error, RedisSettingError::Url, "{url}");
            assert!(!error.to_string().contains("hunter2"));
        }
        assert_eq!(RedisServer::parse("rediss://host/#insecure").unwrap_err(), RedisSettingError::Insecure);
    }

    #[test]
    fn a_secret_is_long_enough_and_does_not_show() {
        let secret = RedisSecret::new(b" 0123456789abcdef\r\n").unwrap();
        assert_eq!(secret.bytes(), b"0123456789abcdef");
        assert!(!format!("{secret:?}").contains("012345"));
        assert_eq!(RedisSecret::new(b"0123456789abcde \n").unwrap_err(), RedisSettingError::ShortSecret(15));
    }

    #[test]
    fn prefixes_are_short_and_plain() {
        for prefix in ["a", "prism-judge:eu_1.b/{x}", "a".repeat(64).as_str()] {
            assert_eq!(prefix.parse::<KeyPrefix>().unwrap().to_string(), prefix);
        }
        for prefix in ["", "a b", "ä", "a\n", "*", "a".repeat(65).as_str()] {
            assert_eq!(prefix.parse::<KeyPrefix>(), Err(RedisSettingError::Prefix), "{prefix}");
        }
    }
}
