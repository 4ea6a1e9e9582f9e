//! The one place where errors become gRPC statuses.
//!
//! | `ErrorCode` | status | detail |
//! |---|---|---|
//! | `invalid_argument` | INVALID_ARGUMENT | `BadRequest` with each field |
//! | `non_finite` | INTERNAL: the same request would fail again, and the caller can do nothing about it | `ErrorInfo` |
//! | `cancelled` | CANCELLED | `ErrorInfo` |
//! | `deadline_exceeded` | DEADLINE_EXCEEDED | `ErrorInfo` |
//! | `overloaded` | RESOURCE_EXHAUSTED | `RetryInfo`, `ErrorInfo` with the lane's numbers, trailer `grpc-retry-pushback-ms` |
//! | `over_quota` | RESOURCE_EXHAUSTED | `RetryInfo`, `ErrorInfo` with `tokens_per_second`, trailer `grpc-retry-pushback-ms` |
//! | `unavailable` | UNAVAILABLE | `ErrorInfo` |
//! | `not_found` | NOT_FOUND | `ErrorInfo` |
//! | `internal` | INTERNAL | `ErrorInfo` |
//!
//! What the server itself refuses:
//!
//! | why | status | `ErrorInfo.reason` |
//! |---|---|---|
//! | no key, or one that nobody has | UNAUTHENTICATED, header `www-authenticate` | `NO_KEY`, `UNKNOWN_KEY` |
//! | a lane that the key does not open | PERMISSION_DENIED | `LANE_NOT_ALLOWED` |
//! | the model is loading | UNAVAILABLE | `LOADING` |
//! | the server stops | UNAVAILABLE | `STOPPING` |
//!
//! Otherwise `ErrorInfo.reason` is the code's name in upper case; `ErrorInfo.domain` is `prism-judge`.

use std::collections::HashMap;
use std::time::Duration;

use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, FieldViolation, StatusExt as _};

use super::{Refusal, pb};
use crate::service::{ErrorCode, JudgeError, Lane, OverQuota, Overloaded, Stop};

const DOMAIN: &str = "prism-judge";

/// Statuses travel in HTTP/2 header blocks, which peers limit to some kilobytes.
const VIOLATION_LIMIT: usize = 16;
const MESSAGE_LIMIT: usize = 512;

/// The status of a failed judgement.
pub fn of_error(error: &JudgeError) -> Status {
    if error.code == ErrorCode::InvalidArgument {
        let field = error.field.clone().unwrap_or_default();
        return invalid(vec![FieldViolation::new(field, error.message.clone())]);
    }
    if let Some(overload) = &error.overload {
        return overloaded(error, overload);
    }
    if let Some(over) = &error.over_quota {
        return over_quota(error, over);
    }
    let (code, reason) = match error.code {
        ErrorCode::InvalidArgument => (Code::InvalidArgument, "INVALID_ARGUMENT"),
        ErrorCode::NonFinite => (Code::Internal, "NON_FINITE"),
        ErrorCode::Cancelled => (Code::Cancelled, "CANCELLED"),
        ErrorCode::DeadlineExceeded => (Code::DeadlineExceeded, "DEADLINE_EXCEEDED"),
        ErrorCode::Overloaded => (Code::ResourceExhausted, "OVERLOADED"),
        ErrorCode::OverQuota => (Code::ResourceExhausted, "OVER_QUOTA"),
        ErrorCode::Unavailable => (Code::Unavailable, "UNAVAILABLE"),
        ErrorCode::NotFound => (Code::NotFound, "NOT_FOUND"),
        ErrorCode::Internal => (Code::Internal, "INTERNAL"),
    };
    with_reason(code, reason, &error.message)
}

/// A status that names its reason and nothing else.
fn with_reason(code: Code, reason: &str, message: &str) -> Status {
    let details = ErrorDetails::with_error_info(reason, DOMAIN, HashMap::<String, String>::new());
    Status::with_error_details(code, short(message), details)
}

/// RESOURCE_EXHAUSTED that says what is full and when to try again: in the details for people and our own clients, in
/// the trailer for gRPC's cores, which read nothing else (gRFC A6).
fn overloaded(error: &JudgeError, overload: &Overloaded) -> Status {
    let metadata = [
        ("lane", overload.lane.name().to_owned()),
        ("limit_tokens", overload.limit.to_string()),
        ("outstanding_tokens", overload.outstanding.to_string()),
        ("queue_length", overload.pieces.to_string()),
        ("wanted_tokens", overload.wanted.to_string()),
    ];
    let metadata = metadata.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    try_later("OVERLOADED", &error.message, metadata, overload.retry_after)
}

/// The same for a tenant that has used up its share.
fn over_quota(error: &JudgeError, over: &OverQuota) -> Status {
    let metadata = HashMap::from([("tokens_per_second".to_owned(), over.rate.to_string())]);
    try_later("OVER_QUOTA", &error.message, metadata, over.retry_after)
}

fn try_later(reason: &str, message: &str, metadata: HashMap<String, String>, pause: Duration) -> Status {
    let mut details = ErrorDetails::with_retry_info(Some(pause));
    details.set_error_info(reason, DOMAIN, metadata);
    let mut trailers = MetadataMap::new();
    let pause = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
    trailers.insert("grpc-retry-pushback-ms", pause.into());
    Status::with_error_details_and_metadata(Code::ResourceExhausted, short(message), details, trailers)
}

/// INVALID_ARGUMENT that names every field at fault.
pub fn invalid(mut violations: Vec<FieldViolation>) -> Status {
    let more = violations.len().saturating_sub(VIOLATION_LIMIT);
    violations.truncate(VIOLATION_LIMIT);
    for violation in &mut violations {
        violation.description = short(&violation.description);
        violation.field = short(&violation.field);
    }
    let mut message = match violations.first() {
        Some(first) if first.field.is_empty() => first.description.clone(),
        Some(first) => format!("{}: {}", first.field, first.description),
        None => "the request is wrong".to_owned(),
    };
    let others = violations.len().saturating_sub(1) + more;
    if others > 0 {
        message = format!("{message} (and {others} more)");
    }
    Status::with_error_details(Code::InvalidArgument, message, ErrorDetails::with_bad_request(violations))
}

/// The judge is not there yet.
pub fn loading() -> Status {
    with_reason(Code::Unavailable, "LOADING", "the model is loading; try again in a moment")
}

/// The server ends.
pub fn stopping() -> Status {
    with_reason(Code::Unavailable, "STOPPING", "the server is stopping; try again elsewhere")
}

/// The caller's timeout passed before there was an answer.
pub fn late() -> Status {
    of_error(&Stop::DeadlineExceeded.into())
}

/// The caller shows no key that is known here.
pub fn unauthenticated(refusal: Refusal) -> Status {
    let (reason, message) = match refusal {
        Refusal::NoKey => ("NO_KEY", "the call has no key: send the header `authorization: Bearer KEY`"),
        Refusal::UnknownKey => ("UNKNOWN_KEY", "this key is not known here"),
    };
    let mut status = with_reason(Code::Unauthenticated, reason, message);
    status.metadata_mut().insert("www-authenticate", MetadataValue::from_static("Bearer"));
    status
}

/// The caller's key does not open this lane; `lanes` are those that it opens.
pub fn wrong_lane(lane: Lane, lanes: &str) -> Status {
    let message = format!("lane: this key does not open the {} lane; it opens {lanes}", lane.name());
    with_reason(Code::PermissionDenied, "LANE_NOT_ALLOWED", &message)
}

/// The wire code of a candidate's error.
pub fn code(code: ErrorCode) -> pb::ErrorCode {
    match code {
        ErrorCode::InvalidArgument => pb::ErrorCode::InvalidArgument,
        ErrorCode::NonFinite => pb::ErrorCode::NonFinite,
        ErrorCode::Cancelled => pb::ErrorCode::Cancelled,
        ErrorCode::DeadlineExceeded => pb::ErrorCode::DeadlineExceeded,
        ErrorCode::Overloaded => pb::ErrorCode::Overloaded,
        ErrorCode::OverQuota => pb::ErrorCode::OverQuota,
        ErrorCode::Unavailable => pb::ErrorCode::Unavailable,
        ErrorCode::NotFound => pb::ErrorCode::NotFound,
        ErrorCode::Internal => pb::ErrorCode::Internal,
    }
}

fn short(message: &str) -> String {
    if message.chars().count() <= MESSAGE_LIMIT {
        return message.to_owned();
    }
    message.chars().take(MESSAGE_LIMIT).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_status() {
        let status = |code| of_error(&JudgeError::new(code, "m"));
        assert_eq!(status(ErrorCode::NonFinite).code(), Code::Internal);
        assert_eq!(status(ErrorCode::Internal).code(), Code::Internal);
        assert_eq!(status(ErrorCode::Cancelled).code(), Code::Cancelled);
        assert_eq!(status(ErrorCode::DeadlineExceeded).code(), Code::DeadlineExceeded);
        assert_eq!(status(ErrorCode::Overloaded).code(), Code::ResourceExhausted);
        assert_eq!(status(ErrorCode::Unavailable).code(), Code::Unavailable);
        let reason = status(ErrorCode::NonFinite).get_details_error_info().map(|info| info.reason);
        assert_eq!(reason.as_deref(), Some("NON_FINITE"));
    }

    #[test]
    fn an_overload_tells_when_to_try_again_and_what_is_full() {
        let status = of_error(&JudgeError::from(Overloaded {
            lane: Lane::Guard,
            wanted: 5,
            outstanding: 96,
            pieces: 3,
            limit: 100,
            retry_after: Duration::from_millis(250),
        }));
        assert_eq!(status.code(), Code::ResourceExhausted);
        let pushback = status.metadata().get("grpc-retry-pushback-ms").and_then(|value| value.to_str().ok());
        assert_eq!(pushback, Some("250"));
        let retry = status.get_details_retry_info().and_then(|info| info.retry_delay);
        assert_eq!(retry, Some(Duration::from_millis(250)));
        let info = status.get_details_error_info().map(|info| info.metadata).unwrap_or_default();
        let told = |key| info.get(key).map(String::as_str);
        assert_eq!((told("lane"), told("limit_tokens"), told("queue_length")), (Some("guard"), Some("100"), Some("3")));
    }

    #[test]
    fn a_wrong_field_is_named_in_message_and_detail() {
        let status = of_error(&JudgeError::invalid("persona", "is empty"));
        assert_eq!((status.code(), status.message()), (Code::InvalidArgument, "persona: is empty"));
        let fields = status.get_details_bad_request().map(|detail| detail.field_violations).unwrap_or_default();
        let fields: Vec<_> = fields.iter().map(|field| (field.field.as_str(), field.description.as_str())).collect();
        assert_eq!(fields, [("persona", "is empty")]);
    }

    #[test]
    fn a_status_stays_small_enough_for_a_header_block() {
        let violation = |index| FieldViolation::new(format!("candidates[{index}].id"), "é".repeat(10_000));
        let status = invalid((0..10_000).map(violation).collect());
        assert!(status.message().ends_with("(and 9999 more)"));
        assert!(status.details().len() < 32_000, "{}", status.details().len());
    }
}
