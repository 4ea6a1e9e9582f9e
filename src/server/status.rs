//! The one place where errors become gRPC statuses.
//!
//! | `ErrorCode` | status | detail |
//! |---|---|---|
//! | `invalid_argument` | INVALID_ARGUMENT | `BadRequest` with each field |
//! | `non_finite` | INTERNAL: the same request would fail again, and the caller can do nothing about it | `ErrorInfo` |
//! | `cancelled` | CANCELLED | `ErrorInfo` |
//! | `deadline_exceeded` | DEADLINE_EXCEEDED | `ErrorInfo` |
//! | `overloaded` | RESOURCE_EXHAUSTED | `RetryInfo`, `ErrorInfo` with the lane's numbers, trailer `grpc-retry-pushback-ms` |
//! | `unavailable` | UNAVAILABLE | `ErrorInfo` |
//! | `internal` | INTERNAL | `ErrorInfo` |
//!
//! `ErrorInfo.reason` is the code's name in upper case, `ErrorInfo.domain` is `prism-judge`.

use std::collections::HashMap;

use tonic::metadata::MetadataMap;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, FieldViolation, StatusExt as _};

use super::pb;
use crate::service::{ErrorCode, JudgeError, Overloaded};

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
    let (code, reason) = match error.code {
        ErrorCode::InvalidArgument => (Code::InvalidArgument, "INVALID_ARGUMENT"),
        ErrorCode::NonFinite => (Code::Internal, "NON_FINITE"),
        ErrorCode::Cancelled => (Code::Cancelled, "CANCELLED"),
        ErrorCode::DeadlineExceeded => (Code::DeadlineExceeded, "DEADLINE_EXCEEDED"),
        ErrorCode::Overloaded => (Code::ResourceExhausted, "OVERLOADED"),
        ErrorCode::Unavailable => (Code::Unavailable, "UNAVAILABLE"),
        ErrorCode::Internal => (Code::Internal, "INTERNAL"),
    };
    let details = ErrorDetails::with_error_info(reason, DOMAIN, HashMap::<String, String>::new());
    Status::with_error_details(code, short(&error.message), details)
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
    let metadata = metadata.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<HashMap<_, _>>();
    let mut details = ErrorDetails::with_retry_info(Some(overload.retry_after));
    details.set_error_info("OVERLOADED", DOMAIN, metadata);
    let mut trailers = MetadataMap::new();
    let pause = u64::try_from(overload.retry_after.as_millis()).unwrap_or(u64::MAX);
    trailers.insert("grpc-retry-pushback-ms", pause.into());
    Status::with_error_details_and_metadata(Code::ResourceExhausted, short(&error.message), details, trailers)
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
    Status::unavailable("the model is loading; try again in a moment")
}

/// The wire code of a candidate's error.
pub fn code(code: ErrorCode) -> pb::ErrorCode {
    match code {
        ErrorCode::InvalidArgument => pb::ErrorCode::InvalidArgument,
        ErrorCode::NonFinite => pb::ErrorCode::NonFinite,
        ErrorCode::Cancelled => pb::ErrorCode::Cancelled,
        ErrorCode::DeadlineExceeded => pb::ErrorCode::DeadlineExceeded,
        ErrorCode::Overloaded => pb::ErrorCode::Overloaded,
        ErrorCode::Unavailable => pb::ErrorCode::Unavailable,
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
    use std::time::Duration;

    use super::*;
    use crate::service::Lane;

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
