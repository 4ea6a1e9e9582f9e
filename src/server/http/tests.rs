//! The HTTP port with a judge that does what a test asks for. What a host sends is written as the host sends it; each test
//! names the host's version and file.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod document;
mod guardrails;
mod refusals;
mod serving;
mod trainers;

use std::net::SocketAddr;
use std::sync::mpsc;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::prism::Group;
use crate::server::tests::{Strings, fake};
use crate::server::{HttpOptions, Ports, ServeError, ServerOptions, run};

/// A server and what a test holds of its judge.
struct Harness {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<Result<(), ServeError<String>>>,
    strings: Strings,
}

/// An answer.
#[derive(Debug)]
struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Reply {
    fn of(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer in {text:?}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Self { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// Code, reason and first field of an error.
    fn error(&self) -> (String, String, String) {
        let error = &self.json()["error"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&error["code"]), text(&error["reason"]), text(&error["fields"][0]["field"]))
    }
}

impl Harness {
    /// A server whose model is loaded when `load` gets its message.
    async fn loading(load: mpsc::Receiver<()>, options: ServerOptions) -> Self {
        let (judge, http) =
            (TcpListener::bind("127.0.0.1:0").await.unwrap(), TcpListener::bind("127.0.0.1:0").await.unwrap());
        let address = http.local_addr().unwrap();
        let (stop, stop_signal) = oneshot::channel();
        let (fake, strings) = fake();
        let load = move || {
            // A test that ends early has dropped it.
            let _ = load.recv();
            Ok::<_, String>(fake)
        };
        let shutdown = async { drop(stop_signal.await) };
        let served = tokio::spawn(run(Ports { judge, http: Some(http), admin: None }, load, options, shutdown));
        Self { address, stop: Some(stop), served, strings }
    }

    async fn with(options: ServerOptions) -> Self {
        let (loaded, load) = mpsc::channel();
        loaded.send(()).unwrap();
        let harness = Self::loading(load, options).await;
        while harness.get("/health").await.status != 200 {
            tokio::task::yield_now().await;
        }
        harness
    }

    /// One whose persona nobody has to name.
    async fn kind() -> Self {
        let http = HttpOptions { default_persona: Some("kind".to_owned()), ..HttpOptions::default() };
        Self::with(ServerOptions { http, ..ServerOptions::default() }).await
    }

    async fn send(&self, request: &[u8]) -> Reply {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        Reply::of(&text)
    }

    async fn get(&self, path: &str) -> Reply {
        self.send(head("GET", path, &[]).as_bytes()).await
    }

    async fn post(&self, path: &str, body: &Value) -> Reply {
        self.post_with(path, &[], &body.to_string()).await
    }

    async fn post_with(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        self.send(post(path, headers, body).as_bytes()).await
    }

    /// What the judge was asked, one entry a group, whose persona is forgotten.
    #[allow(clippy::type_complexity)] // Written out it says what it is.
    fn asked(&self) -> Vec<(Vec<(String, String)>, Vec<String>)> {
        let turns =
            |group: &Group| group.context.iter().map(|turn| (turn.speaker.clone(), turn.text.clone())).collect();
        let replies = |group: &Group| group.candidates.iter().map(|candidate| candidate.response.clone()).collect();
        self.strings.asked.try_iter().map(|group| (turns(&group), replies(&group))).collect()
    }

    /// The personas that the judge was asked about, by what they say.
    fn personas(&self) -> Vec<String> {
        self.strings.asked.try_iter().map(|group| group.persona.description).collect()
    }
}

fn head(verb: &str, path: &str, headers: &[(&str, &str)]) -> String {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("{verb} {path} HTTP/1.1\r\nhost: judge\r\nconnection: close\r\n{headers}\r\n")
}

fn post(path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let length = body.len().to_string();
    let mut all = vec![("content-length", length.as_str())];
    if !headers.iter().any(|(name, _)| *name == "content-type") {
        all.push(("content-type", "application/json"));
    }
    all.extend_from_slice(headers);
    head("POST", path, &all) + body
}

/// A turn of the user.
fn user(text: &str) -> (String, String) {
    ("User".to_owned(), text.to_owned())
}
