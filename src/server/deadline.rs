//! The caller's timeout (`grpc-timeout`, over HTTP also `x-timeout-ms`) as a moment in time.

use std::time::{Duration, Instant};

use http::HeaderMap;
use tonic::Extensions;

/// How much earlier than the caller's timer ours fires, so that the answer is there when the caller's would end the call.
const HEAD_START: Duration = Duration::from_millis(2);

/// The header of the HTTP port.
pub const TIMEOUT_MS: &str = "x-timeout-ms";

/// A timeout of years is none.
const YEARS: Duration = Duration::from_secs(3600 * 24 * 365 * 4);

/// When the call must be answered; None if the caller sets no timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline(pub Option<Instant>);

impl Deadline {
    /// That of a call, which the front found out.
    pub fn of(extensions: &Extensions) -> Self {
        extensions.get().copied().unwrap_or(Self(None))
    }

    /// Resolves when it has passed.
    pub async fn passed(self) {
        match self.0 {
            Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
            None => std::future::pending().await,
        }
    }
}

/// When a call must be answered whose headers have just come: the time for its message counts.
pub fn of(headers: &HeaderMap) -> Option<Instant> {
    from_now(timeout(headers)?)
}

/// The same for a call of the HTTP port, which may say its timeout in milliseconds too.
///
/// # Errors
/// What `x-timeout-ms` says, if that is no number.
pub fn of_http(headers: &HeaderMap) -> Result<Option<Instant>, String> {
    let Some(said) = headers.get(TIMEOUT_MS) else { return Ok(of(headers)) };
    let said = String::from_utf8_lossy(said.as_bytes());
    let ms: u64 = said.trim().parse().map_err(|_| said.into_owned())?;
    Ok(from_now(Duration::from_millis(ms)))
}

fn from_now(timeout: Duration) -> Option<Instant> {
    let timeout = Some(timeout).filter(|timeout| *timeout < YEARS)?;
    Instant::now().checked_add(timeout.saturating_sub(HEAD_START))
}

/// At most eight digits and a unit; anything else is ignored, as tonic does.
fn timeout(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
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
        let mut headers = HeaderMap::new();
        headers.insert("grpc-timeout", http::HeaderValue::from_static(text));
        timeout(&headers)
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
    fn over_http_milliseconds_go_first_and_what_is_no_number_is_told() {
        let of = |name: &'static str, value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-timeout", http::HeaderValue::from_static("9H"));
            headers.insert(name, http::HeaderValue::from_static(value));
            of_http(&headers)
        };
        let soon = Instant::now() + Duration::from_secs(3600);
        assert!(of(TIMEOUT_MS, "1500").unwrap().unwrap() < soon);
        assert!(of("x-other", "1500").unwrap().unwrap() > soon);
        for wrong in ["", "-1", "1.5", "soon", "99999999999999999999"] {
            assert_eq!(of(TIMEOUT_MS, wrong), Err(wrong.to_owned()));
        }
        // As far away as can be: none.
        assert_eq!(of(TIMEOUT_MS, "18446744073709551615"), Ok(None));
    }

    #[test]
    fn a_budget_below_the_head_start_is_over_at_once() {
        let mut headers = HeaderMap::new();
        headers.insert("grpc-timeout", http::HeaderValue::from_static("1m"));
        assert!(of(&headers).is_some_and(|deadline| deadline <= Instant::now()));
    }
}
