//! The page for people: a form that calls the routes beside it, so that somebody sees what a judge says before they write
//! a client. Files inside the binary, no build step; the same for everybody, without a text of any request.

use axum::extract::Path;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

use super::error::Failure;
use super::route::Route;

/// Name, type and contents.
const FILES: &[(&str, &str, &str)] = &[
    ("index.html", "text/html; charset=utf-8", include_str!("page/index.html")),
    ("style.css", "text/css; charset=utf-8", include_str!("page/style.css")),
    ("main.js", "text/javascript; charset=utf-8", include_str!("page/main.js")),
    ("calls.js", "text/javascript; charset=utf-8", include_str!("page/calls.js")),
    ("show.js", "text/javascript; charset=utf-8", include_str!("page/show.js")),
];

/// Nothing from elsewhere, and no other site may show the page in a frame.
const POLICY: &str = "default-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

pub async fn index() -> Result<Response, Failure> {
    file("index.html")
}

pub async fn named(Path(name): Path<String>) -> Result<Response, Failure> {
    file(&name)
}

fn file(name: &str) -> Result<Response, Failure> {
    let found = FILES.iter().find(|(known, _, _)| *known == name);
    let (_, kind, contents) = found.ok_or_else(|| Failure::no_route(&Route::list()))?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    Ok((headers, *contents).into_response())
}
