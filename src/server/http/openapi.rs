//! The OpenAPI document of the port. It is written by hand, but for the messages of our own routes, which the tests take
//! from the gRPC contract (`make docs`).

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

/// The document.
pub const DOCUMENT: &str = include_str!("../../../docs/openapi.json");

pub async fn document() -> Response {
    let kind = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, kind)], DOCUMENT).into_response()
}
