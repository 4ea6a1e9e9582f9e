//! Messages that do not come whole, or are none: their callers are counted as gone, or told what is wrong. Neither is a
//! fault of the server, whose INTERNAL somebody is woken up for.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Request;
use hyper::body::{Body, Bytes, Frame};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message as _;
use support::server::{Server, request, tiny_model};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

/// What comes after the bytes of an upload.
enum Then {
    End,
    /// Nothing, until the test lets go of the other side; then the stream is reset with INTERNAL_ERROR.
    Fail(oneshot::Receiver<Infallible>),
}

/// The body of a request.
struct Upload {
    bytes: Option<Bytes>,
    then: Then,
}

impl Body for Upload {
    type Data = Bytes;
    type Error = oneshot::error::RecvError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match (self.bytes.take(), &mut self.then) {
            (Some(bytes), _) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            (None, Then::End) => Poll::Ready(None),
            (None, Then::Fail(told)) => Pin::new(told).poll(context).map(|told| Some(told.map(|never| match never {}))),
        }
    }
}

/// A message as gRPC sends it.
fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap();
    [&[0][..], &length.to_be_bytes(), message].concat()
}

/// Calls Score with a body of these bytes.
fn call(bytes: &[u8], then: Then) -> Request<Upload> {
    let call = Request::post("http://judge/prism.judge.v1.JudgeService/Score");
    let call = call.header("content-type", "application/grpc").header("te", "trailers");
    call.body(Upload { bytes: Some(Bytes::copy_from_slice(bytes)), then }).unwrap()
}

/// A connection, and its socket.
async fn connect(server: &Server) -> (SendRequest<Upload>, std::net::TcpStream) {
    let socket = std::net::TcpStream::connect(&server.address).unwrap();
    socket.set_nonblocking(true).unwrap();
    let stream = TcpStream::from_std(socket.try_clone().unwrap()).unwrap();
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    (sender, socket)
}

fn metric(server: &Server, series: &str) -> f64 {
    let (_, text) = server.get("/metrics");
    let value = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("{series} is not in\n{text}")).parse().unwrap()
}

fn answered(server: &Server, code: &str) -> f64 {
    metric(server, &format!("prism_judge_requests_total{{method=\"Score\",code=\"{code}\"}}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_goes_away_while_it_sends_its_message_has_cancelled_its_call() {
    let folder = tempfile::tempdir().unwrap();
    let Some(model) = tiny_model(folder.path()) else { return };
    let flags = ["--model", model.to_str().unwrap(), "--log-format", "json"];
    let server = Server::start(&flags).ready().await;
    let whole = framed(&request("Yes! Who else is in?").encode_to_vec());
    // Before the first byte, within the length, within the message.
    let parts = [0, 3, whole.len() / 2];
    for part in parts {
        for way in ["reset", "other reset", "hang up"] {
            let (mut sender, socket) = connect(&server).await;
            let (stays, told) = oneshot::channel();
            let sent = call(&whole[..part], Then::Fail(told));
            let call = tokio::spawn(async move { sender.send_request(sent).await.map(drop) });
            let arrived = async {
                while metric(&server, "prism_judge_requests_in_flight") < 1.0 {
                    tokio::task::yield_now().await;
                }
            };
            tokio::time::timeout(std::time::Duration::from_secs(30), arrived).await.unwrap();
            match way {
                "reset" => call.abort(),
                "other reset" => drop(stays),
                _ => socket.shutdown(std::net::Shutdown::Both).unwrap(),
            }
            let line = server.logged("\"message\":\"call\"");
            assert!(line.contains("\"code\":\"CANCELLED\""), "{way} after {part} bytes: {line}");
        }
    }
    let gone = (parts.len() * 3) as f64;
    assert_eq!((answered(&server, "CANCELLED"), metric(&server, "prism_judge_requests_in_flight")), (gone, 0.0));
    assert_eq!(metric(&server, "prism_judge_cancelled_total{stage=\"arrival\"}"), gone);
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_no_message_are_an_invalid_argument_that_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let Some(model) = tiny_model(folder.path()) else { return };
    let server = Server::start(&["--model", model.to_str().unwrap()]).ready().await;
    let message = request("Yes! Who else is in?").encode_to_vec();
    let whole = framed(&message);
    let (mut sender, _socket) = connect(&server).await;
    let wrong: [(&[u8], &str); 6] = [
        // Field 1 as a number where a message belongs, a text that is not UTF-8, a message that is cut off.
        (&framed(&[0x08, 0x07]), "wire type"),
        (&framed(b"\x2a\x02\xff\xff"), "UTF-8"),
        (&framed(&message[..message.len() - 3]), "failed to decode"),
        // No message, half of one, one that says that it is compressed.
        (b"", "Missing request message"),
        (&whole[..whole.len() - 3], "Unexpected EOF"),
        (b"\x01\0\0\0\0", "compressed"),
    ];
    for (bytes, reason) in wrong {
        let response = sender.send_request(call(bytes, Then::End)).await.unwrap();
        let status = Status::from_header_map(response.headers()).unwrap();
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        let told = status.message();
        assert!(told.starts_with("the bytes of the request are no message of this method: "), "{told}");
        assert!(told.contains(reason) && !told.ends_with('.'), "{told}");
        let violations = status.get_details_bad_request().unwrap().field_violations;
        assert_eq!((violations.len(), violations[0].description.as_str()), (1, told));
    }
    assert_eq!((answered(&server, "INVALID_ARGUMENT"), answered(&server, "INTERNAL")), (wrong.len() as f64, 0.0));
    // The connection goes on.
    let response = sender.send_request(call(&whole, Then::End)).await.unwrap();
    assert_eq!(Status::from_header_map(response.headers()).map(|status| status.code()), None);
}
