//! The one place where statuses become answers over HTTP.
//!
//! | gRPC status | HTTP status | beside it |
//! |---|---|---|
//! | INVALID_ARGUMENT | 400 | `fields` |
//! | UNAUTHENTICATED | 401 | `www-authenticate` |
//! | PERMISSION_DENIED | 403 | |
//! | NOT_FOUND | 404 | |
//! | RESOURCE_EXHAUSTED | 429 | `retry-after`, `retry_after_ms` |
//! | UNIMPLEMENTED | 501 | |
//! | UNAVAILABLE | 503 | `retry-after`, `retry_after_ms` |
//! | DEADLINE_EXCEEDED | 504 | |
//! | everything else | 500 | |
//!
//! What HTTP alone can get wrong: 404 for an unknown route, 405 with `allow`, 408, 413, 415.
//!
//! The body is `{"error": {"code", "message", "fields", "reason"}}`, and `retry_after_ms` where there is one. It never has a
//! key that a host takes for a result.

use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use serde::Serialize;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::server::pb;
use crate::telemetry::GRPC_CODES;

/// When to ask again whether the judge is there: loading takes seconds.
const NOT_THERE: Duration = Duration::from_secs(1);

/// An answer that is no result.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    status: StatusCode,
    code: Code,
    message: String,
    fields: Vec<Field>,
    reason: String,
    retry_after: Option<Duration>,
}

/// A field at fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Field {
    field: String,
    description: String,
}

/// The status of an answer as gRPC calls it, for the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome(pub &'static str);

#[derive(Serialize)]
struct Body<'a> {
    error: Error<'a>,
}

#[derive(Serialize)]
struct Error<'a> {
    code: &'static str,
    message: &'a str,
    fields: &'a [Field],
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}

impl Failure {
    fn new(code: Code, status: StatusCode, reason: &str, message: impl Into<String>) -> Self {
        let (message, reason) = (message.into(), reason.to_owned());
        Self { status, code, message, fields: Vec::new(), reason, retry_after: None }
    }

    /// A wrong field of the request, of its parameters or of its headers.
    pub fn invalid(field: impl Into<String>, description: impl Into<String>) -> Self {
        let (field, description) = (field.into(), description.into());
        let message = if field.is_empty() { description.clone() } else { format!("{field}: {description}") };
        let failure = Self::new(Code::InvalidArgument, StatusCode::BAD_REQUEST, "INVALID_ARGUMENT", message);
        Self { fields: vec![Field { field, description }], ..failure }
    }

    pub fn no_route(routes: &str) -> Self {
        let message = format!("there is no such route; there are {routes}");
        Self::new(Code::NotFound, StatusCode::NOT_FOUND, "NO_ROUTE", message)
    }

    /// `allowed` is the route's own method.
    pub fn wrong_method(allowed: &str) -> Self {
        let message = format!("this route takes {allowed} alone");
        Self::new(Code::Unimplemented, StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", message)
    }

    pub fn too_large(limit: usize) -> Self {
        let message = format!("the body has more than {limit} bytes: send less in one request");
        Self::new(Code::OutOfRange, StatusCode::PAYLOAD_TOO_LARGE, "TOO_LARGE", message)
    }

    pub fn media_type(message: &str) -> Self {
        Self::new(Code::InvalidArgument, StatusCode::UNSUPPORTED_MEDIA_TYPE, "MEDIA_TYPE", message)
    }

    pub fn slow_body(patience: Duration) -> Self {
        let message = format!("nothing of the body came for {} s", patience.as_secs());
        Self::new(Code::DeadlineExceeded, StatusCode::REQUEST_TIMEOUT, "SLOW_BODY", message)
    }

    pub fn internal(message: &str) -> Self {
        Self::new(Code::Internal, StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL", message)
    }

    /// The same for hosts that try again after every 5xx and after no 4xx: what is full is 503.
    pub fn full_is_unavailable(self) -> Self {
        match self.status {
            StatusCode::TOO_MANY_REQUESTS => Self { status: StatusCode::SERVICE_UNAVAILABLE, ..self },
            _ => self,
        }
    }

    /// The error of the only reply of a request, whose host calls the reply and what stands before it so.
    pub fn of_reply(error: pb::JudgeError, reply: &str, context: &str) -> Self {
        let field = match error.field.as_str() {
            "reply" => reply.to_owned(),
            field if field.starts_with("context") => context.to_owned(),
            field => field.to_owned(),
        };
        Self::from(pb::JudgeError { field, ..error })
    }

    /// The first field at fault.
    pub fn field(&self) -> Option<&str> {
        self.fields.first().map(|field| field.field.as_str())
    }

    pub fn is(&self, code: Code) -> bool {
        self.code == code
    }

    /// The same as the error of one item of several.
    pub fn of_item(&self) -> pb::JudgeError {
        let code = match self.code {
            Code::InvalidArgument => pb::ErrorCode::InvalidArgument,
            Code::NotFound => pb::ErrorCode::NotFound,
            _ => pb::ErrorCode::Internal,
        };
        let field = self.fields.first();
        pb::JudgeError {
            code: code.into(),
            message: field.map_or(&self.message, |field| &field.description).clone(),
            field: field.map(|field| field.field.clone()).unwrap_or_default(),
            retry_after_ms: None,
        }
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        let details = status.get_error_details();
        let http = match status.code() {
            Code::InvalidArgument => StatusCode::BAD_REQUEST,
            Code::Unauthenticated => StatusCode::UNAUTHORIZED,
            Code::PermissionDenied => StatusCode::FORBIDDEN,
            Code::NotFound => StatusCode::NOT_FOUND,
            Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
            Code::Unimplemented => StatusCode::NOT_IMPLEMENTED,
            Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let reason = details.error_info().map_or(name(status.code()), |info| info.reason.as_str());
        let fields = details.bad_request().map(|request| request.field_violations.as_slice()).unwrap_or_default();
        let fields = fields
            .iter()
            .map(|violation| Field { field: violation.field.clone(), description: violation.description.clone() });
        let told = details.retry_info().and_then(|info| info.retry_delay);
        let retry_after = told.or((status.code() == Code::Unavailable).then_some(NOT_THERE));
        Self { fields: fields.collect(), retry_after, ..Self::new(status.code(), http, reason, status.message()) }
    }
}

/// The error of the only item of a request.
impl From<pb::JudgeError> for Failure {
    fn from(error: pb::JudgeError) -> Self {
        let code = match error.code() {
            pb::ErrorCode::InvalidArgument => return Self::invalid(error.field, error.message),
            pb::ErrorCode::NotFound => Code::NotFound,
            pb::ErrorCode::Cancelled => Code::Cancelled,
            pb::ErrorCode::DeadlineExceeded => Code::DeadlineExceeded,
            pb::ErrorCode::Overloaded | pb::ErrorCode::OverQuota => Code::ResourceExhausted,
            pb::ErrorCode::Unavailable => Code::Unavailable,
            pb::ErrorCode::PermissionDenied => Code::PermissionDenied,
            pb::ErrorCode::NonFinite | pb::ErrorCode::Internal | pb::ErrorCode::Unspecified => Code::Internal,
        };
        let reason = error.code().as_str_name().trim_start_matches("ERROR_CODE_").to_owned();
        let failure = Self::from(Status::new(code, error.message));
        let told = error.retry_after_ms.map(|ms| Duration::from_millis(ms.into()));
        Self { reason, retry_after: told.or(failure.retry_after), ..failure }
    }
}

/// A status code's name.
fn name(code: Code) -> &'static str {
    GRPC_CODES.get(code as usize).copied().unwrap_or("UNKNOWN")
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let retry_after_ms = self.retry_after.map(|pause| u64::try_from(pause.as_millis()).unwrap_or(u64::MAX));
        let Self { message, fields, reason, .. } = &self;
        let body = Body { error: Error { code: name(self.code), message, fields, reason, retry_after_ms } };
        let mut response = (self.status, Json(body)).into_response();
        response.extensions_mut().insert(Outcome(name(self.code)));
        let headers = response.headers_mut();
        if let Some(ms) = retry_after_ms {
            // Whole seconds, and none too early.
            headers.insert(header::RETRY_AFTER, HeaderValue::from(ms.div_ceil(1000).max(1)));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::server::status;
    use crate::service::{Lane, Overloaded};
    use serde_json::{Value, json};

    async fn sent(failure: Failure) -> (u16, Option<String>, Value) {
        let response = failure.into_response();
        let retry = response.headers().get("retry-after").map(|value| value.to_str().unwrap().to_owned());
        let status = response.status().as_u16();
        let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (status, retry, serde_json::from_slice(&body).unwrap())
    }

    #[tokio::test]
    async fn every_status_has_its_number() {
        for (code, number) in [
            (Code::InvalidArgument, 400),
            (Code::Unauthenticated, 401),
            (Code::PermissionDenied, 403),
            (Code::NotFound, 404),
            (Code::ResourceExhausted, 429),
            (Code::Internal, 500),
            (Code::Unimplemented, 501),
            (Code::Unavailable, 503),
            (Code::DeadlineExceeded, 504),
        ] {
            let (status, retry, body) = sent(Status::new(code, "why").into()).await;
            assert_eq!((status, body["error"]["message"].as_str()), (number, Some("why")), "{code:?}");
            assert_eq!(retry.is_some(), code == Code::Unavailable);
        }
    }

    #[tokio::test]
    async fn a_pause_is_told_in_milliseconds_and_in_whole_seconds_that_are_not_too_few() {
        for (pause, seconds) in [(1, "1"), (1000, "1"), (1001, "2"), (61_000, "61")] {
            let full = Overloaded {
                lane: Lane::Train,
                wanted: 5,
                outstanding: 96,
                pieces: 3,
                limit: 100,
                retry_after: Duration::from_millis(pause),
            };
            let (status, retry, body) = sent(status::of_error(&full.into()).into()).await;
            assert_eq!((status, retry.as_deref()), (429, Some(seconds)));
            assert_eq!(body["error"]["retry_after_ms"], json!(pause));
            assert_eq!(body["error"]["reason"], "OVERLOADED");
        }
    }

    #[tokio::test]
    async fn fields_are_told_as_the_host_calls_them() {
        let error = |field: &str| pb::JudgeError {
            code: pb::ErrorCode::InvalidArgument.into(),
            message: "is empty".into(),
            field: field.into(),
            retry_after_ms: None,
        };
        for (field, told) in [("reply", "response"), ("context[3].text", "prompt"), ("persona", "persona")] {
            let (status, _, body) = sent(Failure::of_reply(error(field), "response", "prompt")).await;
            let message = format!("{told}: is empty");
            let expected = json!({"error": {"code": "INVALID_ARGUMENT", "message": message,
                "fields": [{"field": told, "description": "is empty"}], "reason": "INVALID_ARGUMENT"}});
            assert_eq!((status, body), (400, expected));
        }
    }

    #[tokio::test]
    async fn the_error_of_the_only_item_is_that_of_the_request() {
        let error = pb::JudgeError {
            code: pb::ErrorCode::NonFinite.into(),
            message: "not finite".into(),
            ..pb::JudgeError::default()
        };
        let (status, _, body) = sent(error.into()).await;
        assert_eq!((status, &body["error"]["reason"]), (500, &json!("NON_FINITE")));
    }
}
