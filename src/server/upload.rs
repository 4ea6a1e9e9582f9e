//! The message of a call on its way in. tonic says INTERNAL of one that breaks off and of one that it cannot read, as if
//! the server were at fault. Here a caller that goes away is CANCELLED, and one that sends something else is told so.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use http::{HeaderMap, Response};
use hyper::body::{Frame, Incoming, SizeHint};
use tonic::body::Body;
use tonic::{Code, Status};
use tonic_types::FieldViolation;

use super::status;
use crate::service::Stop;

/// Whether a message broke off before its end.
#[derive(Clone, Default)]
pub struct Upload(Arc<AtomicBool>);

impl Upload {
    /// The body of a request, watched.
    pub fn of(&self, body: Incoming) -> Watched {
        Watched { body, upload: self.clone() }
    }

    /// The answer to the call, in which a status that tonic made of its message is put right.
    pub fn answered(&self, response: Response<Body>) -> Response<Body> {
        let Some(status) = of_tonic(response.headers()) else { return response };
        match status.code() {
            // Whatever it is, nobody is there to read it.
            _ if self.0.load(Ordering::Relaxed) => status::of_error(&Stop::Cancelled.into()).into_http(),
            Code::Internal => {
                let reason = status.message().trim_end_matches('.');
                let message = format!("the bytes of the request are no message of this method: {reason}");
                status::invalid(vec![FieldViolation::new("", message)]).into_http()
            }
            _ => response,
        }
    }
}

/// The status of a call that failed, if it is none of ours: all of ours have details, and none of tonic's has.
fn of_tonic(headers: &HeaderMap) -> Option<Status> {
    if headers.contains_key("grpc-status-details-bin") {
        return None;
    }
    Status::from_header_map(headers).filter(|status| status.code() != Code::Ok)
}

/// A body that tells its [`Upload`] when it breaks off.
pub struct Watched {
    body: Incoming,
    upload: Upload,
}

impl hyper::body::Body for Watched {
    type Data = <Incoming as hyper::body::Body>::Data;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        let broken = match &frame {
            Poll::Ready(Some(frame)) => frame.is_err(),
            // hyper takes some resets for the end.
            Poll::Ready(None) => !self.body.is_end_stream(),
            Poll::Pending => false,
        };
        if broken {
            self.upload.0.store(true, Ordering::Relaxed);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
