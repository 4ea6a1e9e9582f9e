//! The second tier as the server's users set it up: flags, variables, log, TLS. No password ever shows.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::io::{BufRead as _, BufReader, Lines};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStderr, Stdio};

use support::cli::{binary, run, stderr};
use support::redis::{Redis, SECRET};
use support::tiny::Tiny;

/// `prism-judge serve` and its log; ends with the test.
struct Served {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
    log: Vec<String>,
}

impl Served {
    fn start(folder: &Path, variables: &[(&str, &str)]) -> Self {
        let (model, secret) = (folder.join("tiny.gguf"), folder.join("secret"));
        let mut command = binary(&[
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--http-listen",
            "off",
            "--admin-listen",
            "off",
            "--model",
            model.to_str().unwrap(),
        ]);
        command.env("PRISM_JUDGE_REDIS_SECRET_FILE", &secret).envs(variables.iter().copied());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, lines, log: Vec::new() }
    }

    /// Reads on until the log has said this so many times, in whatever order with other things.
    fn says(&mut self, text: &str, times: usize) {
        while self.log.iter().filter(|line| line.contains(text)).count() < times {
            match self.lines.next() {
                Some(line) => self.log.push(line.unwrap()),
                None => panic!("it ended before it said {text:?}: {:#?}", self.log),
            }
        }
    }

    /// SIGTERM; the whole log.
    fn end(mut self) -> String {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), rustix::process::Signal::TERM)
            .unwrap();
        self.log.extend(self.lines.by_ref().map(Result::unwrap));
        assert!(self.child.wait().unwrap().success());
        self.log.join("\n")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder with a tiny model and a secret; None where the backbone is missing.
fn folder() -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().unwrap();
    Tiny::speaking_as(&support::backbone()?, 12).write(&folder.path().join("tiny.gguf"));
    std::fs::write(folder.path().join("secret"), SECRET).unwrap();
    Some(folder)
}

#[test]
fn a_refused_password_is_told_once_and_never_shown_and_the_server_serves() {
    let Some(folder) = folder() else { return };
    let redis = Redis::with_password("right");
    let url = redis.url_with(Some("hunter2"));
    let mut served = Served::start(folder.path(), &[("PRISM_JUDGE_REDIS_URL", &url), ("RUST_LOG", "trace")]);
    served.says("the model is loaded, serving", 1);
    // Three attempts: the first is an error, the others are noted at debug level.
    served.says("refuses us", 1);
    served.says("still cannot be used", 2);
    let log = served.end();
    assert_eq!(log.matches("refuses us").count(), 1, "{log}");
    assert!(!log.contains("hunter2") && !log.contains(SECRET), "{log}");
}

#[test]
fn a_redis_over_tls_is_used_if_its_certificate_is_known() {
    let Some(folder) = folder() else { return };
    let known = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(at("cert.pem"), known.cert.pem()).unwrap();
    std::fs::write(at("key.pem"), known.signing_key.serialize_pem()).unwrap();
    std::fs::write(at("other.pem"), other.cert.pem()).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let _redis = Redis::start(&[
        "--bind",
        "127.0.0.1",
        "--tls-port",
        &port.to_string(),
        "--tls-cert-file",
        &at("cert.pem"),
        "--tls-key-file",
        &at("key.pem"),
        "--tls-ca-cert-file",
        &at("cert.pem"),
        "--tls-auth-clients",
        "no",
    ]);
    let url = format!("rediss://localhost:{port}");
    for (certificates, says) in
        [("cert.pem", "answers: verdicts are shared"), ("other.pem", "invalid peer certificate")]
    {
        let certificates = at(certificates);
        let variables = [("PRISM_JUDGE_REDIS_URL", url.as_str()), ("SSL_CERT_FILE", &certificates)];
        let mut served = Served::start(folder.path(), &variables);
        served.says(says, 1);
        served.end();
    }
}

#[test]
fn wrong_settings_are_told_with_their_flag_and_without_the_password() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (good, short, large) = (at("good", SECRET), at("short", "hunter2\n"), at("large", &"x".repeat(5000)));
    let absent = folder.path().join("absent").to_str().unwrap().to_owned();
    let url = "redis://:hunter2@localhost";
    for (flags, expected) in [
        (vec!["--redis-url", "http://:hunter2@localhost"], "--redis-url: it is not the URL of a Redis"),
        (vec!["--redis-url", "redis://:hunter2@localhost:port"], "--redis-url: it is not the URL of a Redis"),
        (vec!["--redis-url", "rediss://:hunter2@localhost/#insecure"], "always checked"),
        (vec!["--redis-url", url], "--redis-url needs --redis-secret-file"),
        (vec!["--redis-url", url, "--redis-secret-file", ""], "--redis-secret-file <FILE>': it must not be empty"),
        (vec!["--redis-url", url, "--redis-secret-file", &short], "it has 7 bytes and must have at least 16"),
        (vec!["--redis-url", url, "--redis-secret-file", &large], "more than 4096 bytes"),
        (vec!["--redis-url", url, "--redis-secret-file", &absent], "No such file"),
        (vec!["--redis-url", url, "--redis-secret-file", &good, "--redis-prefix", "a b"], "--redis-prefix"),
        (vec!["--redis-url", url, "--redis-secret-file", &good, "--redis-timeout-ms", "0"], "--redis-timeout-ms"),
        (vec!["--redis-url", url, "--redis-secret-file", &good, "--redis-ttl-s", "1.5"], "--redis-ttl-s"),
        // The next thing that is wrong: these settings are right.
        (vec!["--redis-url", url, "--redis-secret-file", &good, "--model", "no-such-model"], "no-such-model"),
    ] {
        let output = run(&[&["serve"], &flags[..]].concat(), b"");
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(64), "{flags:?}: {told}");
        assert!(told.contains(expected), "{flags:?}: {told}");
        assert!(!told.contains("hunter2"), "{told}");
    }
    let help = binary(&["serve", "--help"]).env("PRISM_JUDGE_REDIS_URL", url).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    assert!(help.contains("--redis-url") && !help.contains("hunter2"), "{help}");
}
