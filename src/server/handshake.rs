//! A connection that opens and then says nothing would cost a file for ever and hold up every stop until its bound. It
//! gets a time limit for its first words; from then on HTTP looks after it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use crate::telemetry::catalogue::CONNECTIONS_REFUSED;

/// Bytes that every HTTP/2 client sends first: the preface, and the header of a SETTINGS frame (RFC 9113, section 3.4).
pub const HTTP2_WORDS: usize = 24 + 9;

/// Bytes of the shortest request line of HTTP/1, `GET / HTTP/1.1` (RFC 9112, section 3), which is less than HTTP/2 begins with.
pub const HTTP1_WORDS: usize = 14 + 2;

/// A connection whose first words must come in time.
pub struct Greeting<T> {
    stream: T,
    /// None once the first words are here.
    missing: Option<Missing>,
}

struct Missing {
    bytes: usize,
    limit: Pin<Box<Sleep>>,
}

impl<T> Greeting<T> {
    /// Starts the clock for the first `words` bytes.
    pub fn new(stream: T, words: usize, limit: Duration) -> Self {
        let limit = Box::pin(tokio::time::sleep(limit));
        Self { stream, missing: Some(Missing { bytes: words, limit }) }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Greeting<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        let Some(missing) = &mut self.missing else { return read };
        missing.bytes = missing.bytes.saturating_sub(buf.filled().len() - before);
        if missing.bytes == 0 {
            self.missing = None;
        } else if read.is_pending() && missing.limit.as_mut().poll(cx).is_ready() {
            self.missing = None;
            CONNECTIONS_REFUSED.increment(["handshake_timeout"]);
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Greeting<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
