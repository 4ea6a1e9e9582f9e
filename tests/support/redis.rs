//! A real Redis on a socket of its own, which ends with the test.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use prism_judge::cache::redis::{KeyPrefix, RedisSecret, RedisServer, RedisState, RedisTier};
use prism_judge::service::{Judge, RedisSettings};
use redis::{Cmd, Connection, FromRedisValue};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

pub const SECRET: &str = "a secret of the tests";

/// How long a judge may take to use a Redis that is back.
pub const RECOVERY: Duration = Duration::from_secs(5);

/// `redis-server` in a folder of its own.
pub struct Redis {
    folder: TempDir,
    flags: Vec<String>,
    password: Option<String>,
    child: Child,
}

impl Redis {
    pub fn start(flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let child = spawn(&folder, &flags);
        Self { folder, flags, password: None, child }
    }

    /// One that asks for a password.
    pub fn with_password(password: &str) -> Self {
        let mut redis = Self::start(&["--requirepass", password]);
        redis.password = Some(password.to_owned());
        redis
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("redis.sock")
    }

    pub fn url(&self) -> String {
        self.url_with(self.password.as_deref())
    }

    pub fn url_with(&self, password: Option<&str>) -> String {
        let password = password.map(|password| format!("?pass={password}")).unwrap_or_default();
        format!("unix://{}{password}", self.socket().display())
    }

    /// The same without answers: SIGSTOP.
    pub fn pause(&self) {
        kill_process(Pid::from_child(&self.child), Signal::STOP).unwrap();
    }

    pub fn resume(&self) {
        kill_process(Pid::from_child(&self.child), Signal::CONT).unwrap();
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it anew, empty, after it was killed.
    pub fn restart(&mut self) {
        self.child = spawn(&self.folder, &self.flags);
    }

    pub fn connect(&self) -> Connection {
        redis::Client::open(self.url()).unwrap().get_connection().unwrap()
    }

    /// One command, past every judge.
    pub fn ask<T: FromRedisValue>(&self, command: &str, arguments: &[&[u8]]) -> T {
        let mut ask = Cmd::new();
        ask.arg(command);
        for argument in arguments {
            ask.arg(*argument);
        }
        ask.query(&mut self.connect()).unwrap()
    }

    /// The names of all keys, in order.
    pub fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = self.ask("KEYS", &[b"*"]);
        keys.sort();
        keys
    }

    /// Settings that work.
    pub fn settings(&self) -> RedisSettings {
        RedisSettings {
            server: RedisServer::parse(&self.url()).unwrap(),
            secret: RedisSecret::new(SECRET.as_bytes()).unwrap(),
            prefix: KeyPrefix::default(),
            ttl: Some(RedisSettings::TTL),
            // Other tests may keep the machine busy: what a test wants to find there is not to be late.
            timeout: Duration::from_millis(500),
        }
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // SIGKILL ends a stopped process as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts it and waits until it takes connections.
fn spawn(folder: &TempDir, flags: &[String]) -> Child {
    let mut command = Command::new("redis-server");
    command.args(["--port", "0", "--unixsocket", "redis.sock", "--save", "", "--appendonly", "no"]).args(flags);
    let mut child = command
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("these tests need redis-server (Debian: apt-get install redis-server)");
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut log = Vec::new();
    while !log.last().is_some_and(|line: &String| line.contains("eady to accept connections")) {
        log.push(lines.next().unwrap_or_else(|| panic!("redis-server ended: {log:#?}")));
    }
    // A full pipe would stop it.
    std::thread::spawn(move || lines.for_each(drop));
    child
}

/// The tier of a judge that has one.
pub fn tier(judge: &Judge) -> &RedisTier {
    judge.redis().unwrap()
}

/// Waits until the tier is in a state; no longer than a Redis that is back may go unused.
pub async fn reaches(tier: &RedisTier, wanted: RedisState) {
    let mut state = tier.state();
    let reached = tokio::time::timeout(RECOVERY, state.wait_for(|state| *state == wanted)).await;
    assert!(reached.is_ok_and(|state| state.is_ok()), "it never was {wanted:?}");
}
