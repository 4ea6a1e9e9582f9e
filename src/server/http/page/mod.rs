//! The page at `/`: a form that calls the routes beside it, for people who want to see what a judge says before they write
//! a client. Files of the binary, no build step, nothing from elsewhere.

use axum::Router;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

/// Only what this server sends is loaded and called, and nobody may put the page into a frame.
const POLICY: &str =
    "default-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// The page's own routes.
pub fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/", get(async || file(HTML, include_str!("index.html"))))
        .route("/page/style.css", get(async || file(CSS, include_str!("style.css"))))
        .route("/page/main.js", get(async || file(JAVASCRIPT, include_str!("main.js"))))
        .route("/page/calls.js", get(async || file(JAVASCRIPT, include_str!("calls.js"))))
        .route("/page/show.js", get(async || file(JAVASCRIPT, include_str!("show.js"))))
}

fn file(kind: &'static str, text: &'static str) -> Response {
    let headers = [(CONTENT_TYPE, kind), (CONTENT_SECURITY_POLICY, POLICY), (X_CONTENT_TYPE_OPTIONS, "nosniff")];
    (headers, text).into_response()
}
