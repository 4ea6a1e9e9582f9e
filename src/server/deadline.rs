//! The caller's timeout (`grpc-timeout`) as a moment in time.
//!
//! tonic arms a timer of its own for the same header and, when it fires, drops the handler and answers CANCELLED.
//! Ours fires a little earlier, so that the caller gets the DEADLINE_EXCEEDED that gRPC promises.

use std::time::{Duration, Instant};

use tonic::metadata::MetadataMap;
use tonic::{Request, Status};

/// How much earlier than tonic's timer ours fires: its resolution is 1 ms.
const HEAD_START: Duration = Duration::from_millis(2);

/// When the call must be answered; None if the caller sets no timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline(pub Option<Instant>);

/// Stamps a request when its header arrives, before its message is read: tonic's timer starts there too.
pub fn stamp(mut request: Request<()>) -> Result<Request<()>, Status> {
    let deadline = timeout(request.metadata())
        .map(|timeout| timeout.saturating_sub(HEAD_START))
        // A timeout of years is none.
        .and_then(|timeout| Instant::now().checked_add(timeout));
    request.extensions_mut().insert(Deadline(deadline));
    Ok(request)
}

/// At most eight digits and a unit; anything else is ignored, as tonic does.
fn timeout(metadata: &MetadataMap) -> Option<Duration> {
    let text = metadata.get("grpc-timeout")?.to_str().ok()?;
    let unit = text.chars().last().filter(char::is_ascii_alphabetic)?;
    let digits = &text[..text.len() - 1];
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    match unit {
        'H' => Some(Duration::from_secs(count * 3600)),
        'M' => Some(Duration::from_secs(count * 60)),
        'S' => Some(Duration::from_secs(count)),
        'm' => Some(Duration::from_millis(count)),
        'u' => Some(Duration::from_micros(count)),
        'n' => Some(Duration::from_nanos(count)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn read(text: &'static str) -> Option<Duration> {
        let mut metadata = MetadataMap::new();
        metadata.insert("grpc-timeout", tonic::metadata::MetadataValue::from_static(text));
        timeout(&metadata)
    }

    #[test]
    fn timeouts_are_read_in_every_unit() {
        assert_eq!(read("2H"), Some(Duration::from_secs(7200)));
        assert_eq!(read("99999999S"), Some(Duration::from_secs(99_999_999)));
        assert_eq!(read("250m"), Some(Duration::from_millis(250)));
        assert_eq!(read("7n"), Some(Duration::from_nanos(7)));
        for wrong in ["", "m", "100000000S", "-1S", "1.5S", "1x", "1 S"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_budget_below_the_head_start_is_over_at_once() {
        let mut request = Request::new(());
        request.metadata_mut().insert("grpc-timeout", "1m".parse().unwrap());
        let deadline = stamp(request).unwrap().extensions().get::<Deadline>().copied().unwrap();
        assert!(deadline.0.is_some_and(|deadline| deadline <= Instant::now()));
    }
}
