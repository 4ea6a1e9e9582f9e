//! HTTP/2 connections that leave deadlines to the server.
//!
//! tonic's own channel arms a timer for every call with a deadline and answers CANCELLED itself, so that what the server
//! would have said is never seen. Here the deadline only travels.

use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prism_judge::server::MESSAGE_LIMIT;
use prism_judge::server::pb::judge_service_client::JudgeServiceClient;
use tokio::net::TcpStream;
use tonic::body::Body;
use tonic::codegen::http::HeaderValue;
use tonic::codegen::http::header::AUTHORIZATION;
use tonic::codegen::{Service, http};

/// A client over one connection; clones share it.
pub type Client = JudgeServiceClient<Connection>;

/// The header that shows an API key.
pub fn bearer(key: &str) -> Result<HeaderValue, String> {
    let value = HeaderValue::try_from(format!("Bearer {key}"));
    let mut value = value.map_err(|_| "it must be a key as `prism-judge keys new` prints it".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

/// Opens `count` connections, whose calls show `key`.
pub async fn open(
    address: &str,
    key: Option<&HeaderValue>,
    count: usize,
) -> Result<Vec<Client>, Box<dyn std::error::Error>> {
    let mut clients = Vec::new();
    for _ in 0..count {
        let stream = TcpStream::connect(address).await.map_err(|error| format!("{address}: {error}"))?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let origin = format!("http://{address}").parse()?;
        let client = JudgeServiceClient::with_origin(Connection { sender, key: key.cloned() }, origin);
        clients.push(client.max_decoding_message_size(MESSAGE_LIMIT).max_encoding_message_size(MESSAGE_LIMIT));
    }
    Ok(clients)
}

/// One HTTP/2 connection.
#[derive(Clone)]
pub struct Connection {
    sender: SendRequest<Body>,
    key: Option<HeaderValue>,
}

impl Service<http::Request<Body>> for Connection {
    type Response = http::Response<hyper::body::Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.sender.poll_ready(context)
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        request.headers_mut().extend(self.key.clone().map(|key| (AUTHORIZATION, key)));
        Box::pin(self.sender.send_request(request))
    }
}
