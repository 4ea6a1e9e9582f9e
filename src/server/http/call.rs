//! A request as its handler gets it: read whole, with who calls and until when.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Query as Pairs, Request};
use axum::http::{Extensions, HeaderMap, header};
use axum::response::{IntoResponse, Json, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_stream::StreamExt as _;
use tonic::Status;

use super::error::Failure;
use super::query::Query;
use super::route::Route;
use crate::server::MESSAGE_LIMIT;
use crate::telemetry::catalogue::LIMIT_REFUSALS;

/// How long a body may pause.
const PATIENCE: Duration = Duration::from_secs(30);

/// How much of a body that is too large is read on and thrown away, so that its sender reads the answer: whoever still
/// writes when the connection ends hears of a broken connection alone.
const THROWN_AWAY: usize = 4 * MESSAGE_LIMIT;

/// What a request says besides its body.
pub struct Ask {
    pub headers: HeaderMap,
    pub query: Query,
    /// What `query` was read from.
    pairs: Vec<(String, String)>,
    /// Who calls, until when, and where the call is recorded; from the front.
    extensions: Extensions,
}

impl Ask {
    /// Reads a request whose body is JSON.
    ///
    /// # Errors
    /// 400 with the field, 408, 413, 415.
    pub async fn read<T: DeserializeOwned>(route: Route, request: Request) -> Result<(Self, T), Failure> {
        let (parts, body) = request.into_parts();
        let pairs = Pairs::<Vec<(String, String)>>::try_from_uri(&parts.uri);
        let Pairs(pairs) = pairs.map_err(|error| Failure::invalid("", error.body_text()))?;
        let query = Query::default().read(&pairs, route.parameters())?;
        json_is_said(&parts.headers)?;
        let bytes = whole(body, &parts.headers).await?;
        let ask = Self { headers: parts.headers, query, pairs, extensions: parts.extensions };
        Ok((ask, parse(&bytes)?))
    }

    /// A call of the gRPC service with `message`.
    pub fn of<T>(&self, message: T) -> tonic::Request<T> {
        let mut request = tonic::Request::new(message);
        *request.extensions_mut() = self.extensions.clone();
        request
    }

    /// The parameters as they were sent.
    pub fn pairs(&self) -> &[(String, String)] {
        &self.pairs
    }

    /// Who calls, until when, and where the call is recorded.
    pub fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    /// A header that is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok().filter(|value| !value.is_empty())
    }
}

/// A call of the gRPC service by a request without a body.
///
/// # Errors
/// 400: the request has a parameter.
pub fn bare<T>(request: Request, message: T) -> Result<tonic::Request<T>, Failure> {
    if request.uri().query().is_some_and(|query| !query.is_empty()) {
        return Err(Failure::invalid("", "this route has no parameters"));
    }
    let mut call = tonic::Request::new(message);
    *call.extensions_mut() = request.into_parts().0.extensions;
    Ok(call)
}

/// What a method of the gRPC service answers, as JSON.
pub fn answer<T: Serialize>(answer: Result<tonic::Response<T>, Status>) -> Result<Response, Failure> {
    Ok(Json(answer?.into_inner()).into_response())
}

/// A body of another type is no mistake to be guessed around, and a page of another site cannot send this one without
/// asking its browser.
fn json_is_said(headers: &HeaderMap) -> Result<(), Failure> {
    let of = |name| headers.get(name).map(|value: &header::HeaderValue| String::from_utf8_lossy(value.as_bytes()));
    let kind = of(header::CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind != "application/json" && !(kind.starts_with("application/") && kind.ends_with("+json")) {
        return Err(Failure::media_type("the body must be JSON: send the header `content-type: application/json`"));
    }
    match of(header::CONTENT_ENCODING) {
        Some(encoding) if encoding != "identity" => Err(Failure::media_type("the body must not be compressed")),
        _ => Ok(()),
    }
}

async fn whole(body: Body, headers: &HeaderMap) -> Result<Vec<u8>, Failure> {
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    let mut bytes = Vec::with_capacity(length.unwrap_or_default().min(1 << 20));
    let (mut pieces, mut read) = (body.into_data_stream(), 0);
    loop {
        let piece = tokio::time::timeout(PATIENCE, pieces.next()).await;
        match piece.map_err(|_| Failure::slow_body(PATIENCE))? {
            None => break,
            Some(Err(_)) => return Err(Failure::invalid("", "the body broke off")),
            Some(Ok(piece)) => {
                read += piece.len();
                if read <= MESSAGE_LIMIT {
                    bytes.extend_from_slice(&piece);
                } else if read > THROWN_AWAY {
                    break;
                }
            }
        }
    }
    if read > MESSAGE_LIMIT {
        LIMIT_REFUSALS.increment(["message_bytes"]);
        return Err(Failure::too_large(MESSAGE_LIMIT));
    }
    Ok(bytes)
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Failure> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        // The path of the whole is a dot, and a question mark where the text ends too soon.
        let path = error.path().to_string();
        Failure::invalid(path.trim_start_matches(['.', '?']), short(&error.inner().to_string()))
    })?;
    json.end().map_err(|error| Failure::invalid("", short(&error.to_string())))?;
    Ok(value)
}

/// The parser quotes the value that it did not expect.
fn short(message: &str) -> String {
    const LONGEST: usize = 512;
    match message.char_indices().nth(LONGEST) {
        None => message.to_owned(),
        // The place is at the end.
        Some((cut, _)) => match message.rfind(" at line ") {
            Some(at) if at > cut => format!("{}…{}", &message[..cut], &message[at..]),
            _ => format!("{}…", &message[..cut]),
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::server::pb;

    fn refused(text: &str) -> (String, String) {
        let failure = parse::<pb::ScoreRequest>(text.as_bytes()).unwrap_err();
        let error = failure.of_item();
        (error.field, error.message)
    }

    #[test]
    fn a_field_at_fault_is_named_with_its_place() {
        let (field, message) = refused("{\"persona\":{\"traits\":[\n{\"trait\":\"TRAIT_X\"}]}}");
        assert_eq!(field, "persona.traits[0].trait");
        assert!(message.contains("unknown variant `TRAIT_X`") && message.contains("line 2 column"), "{message}");
        let (field, message) = refused("{\"candidate\":{\"respons\":\"x\"}}");
        assert!(field.starts_with("candidate"), "{field}");
        assert!(message.contains("unknown field `respons`"), "{message}");
        for broken in ["", "{", "[1]", "{} {}", "{\"request_id\":7}", "\u{feff}{}", "{\"request_id\":\"\\ud800\"}"] {
            assert!(refused(broken).1.contains("line 1 column"), "{broken}");
        }
    }

    #[test]
    fn a_value_that_is_quoted_is_cut_and_its_place_is_not() {
        let (_, message) = refused(&format!("{{\"lane\":\"{}\"}}", "é".repeat(100_000)));
        assert!(message.chars().count() < 600 && message.contains("line 1 column"), "{message}");
    }

    #[test]
    fn only_json_is_taken() {
        let of = |pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(*name, value.parse().unwrap());
            }
            json_is_said(&headers).is_ok()
        };
        for kind in ["application/json", "Application/JSON; charset=utf-8", "application/vnd.api+json"] {
            assert!(of(&[("content-type", kind)]), "{kind}");
        }
        for kind in ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""] {
            assert!(!of(&[("content-type", kind)]), "{kind}");
        }
        assert!(!of(&[]));
        assert!(!of(&[("content-type", "application/json"), ("content-encoding", "gzip")]));
        assert!(of(&[("content-type", "application/json"), ("content-encoding", "identity")]));
    }
}
