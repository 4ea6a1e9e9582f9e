//! The HTTP port as a client without a library sees it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// An answer.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    head: String,
    pub body: String,
}

impl Reply {
    fn of(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer in {text:?}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Self { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// A request with a JSON body, after which the connection is closed.
pub fn request(path: &str, headers: &[(&str, &str)], body: &Value) -> String {
    let body = body.to_string();
    let length = body.len().to_string();
    let mut all = vec![("content-length", length.as_str())];
    if !headers.iter().any(|(name, _)| *name == "content-type") {
        all.push(("content-type", "application/json"));
    }
    all.extend_from_slice(headers);
    head("POST", path, &all) + &body
}

pub fn post(address: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
    send(address, &request(path, headers, body))
}

pub fn get(address: &str, path: &str, headers: &[(&str, &str)]) -> Reply {
    send(address, &head("GET", path, headers))
}

fn head(verb: &str, path: &str, headers: &[(&str, &str)]) -> String {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("{verb} {path} HTTP/1.1\r\nhost: judge\r\nconnection: close\r\n{headers}\r\n")
}

fn send(address: &str, request: &str) -> Reply {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    Reply::of(&text)
}

/// The same without a thread, over a stream that may be encrypted.
pub async fn talk(mut stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin, request: &str) -> Reply {
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    // Where TLS is not ended in form, the answer was still whole.
    let _ = stream.read_to_end(&mut bytes).await;
    Reply::of(std::str::from_utf8(&bytes).unwrap())
}
