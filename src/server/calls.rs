//! How many calls a connection has in flight, until the last byte of their answers.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::watch;

/// The calls of one connection.
#[derive(Clone)]
pub struct Calls(watch::Sender<usize>);

impl Calls {
    pub fn new() -> Self {
        Self(watch::Sender::new(0))
    }

    /// One more call, until what is returned is dropped.
    pub fn enter(&self) -> InFlight {
        self.0.send_modify(|calls| *calls += 1);
        InFlight(self.0.clone())
    }

    /// Resolves when there has been no call for `pause`.
    pub async fn idle_for(&self, pause: Duration) {
        let mut calls = self.0.subscribe();
        loop {
            // The sender is ours: it lives.
            let _ = calls.wait_for(|calls| *calls == 0).await;
            if tokio::time::timeout(pause, calls.wait_for(|calls| *calls > 0)).await.is_err() {
                return;
            }
        }
    }
}

/// A call in flight.
pub struct InFlight(watch::Sender<usize>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.send_modify(|calls| *calls -= 1);
    }
}

/// The body of an answer over HTTP, with its call.
pub struct Carried<B> {
    body: B,
    _call: InFlight,
}

impl<B> Carried<B> {
    pub fn new(body: B, call: InFlight) -> Self {
        Self { body, _call: call }
    }
}

impl<B: Body + Unpin> Body for Carried<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
