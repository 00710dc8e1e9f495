//! Compresses pages and assets with gzip. Event streams are never compressed: the encoder would hold events back
//! until its block is full.

use std::io::Write;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Media types worth compressing, matched by prefix.
const TEXT_TYPES: [&str; 5] =
    ["text/html", "text/css", "text/javascript", "application/json", "image/svg+xml"];
/// Smallest response that is compressed, in bytes: a smaller one fits into one packet anyway.
const MIN_BYTES: usize = 1400;

/// Compresses the response if it is text and the client accepts gzip.
pub async fn compress(request: Request, next: Next) -> Response {
    let is_wanted = accepts_gzip(request.headers());
    let response = next.run(request).await;
    if !is_wanted || !is_text(response.headers()) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(plain) = to_bytes(body, usize::MAX).await else {
        return Response::from_parts(parts, Body::empty());
    };
    if plain.len() < MIN_BYTES {
        return Response::from_parts(parts, Body::from(plain));
    }
    let mut encoder = GzEncoder::new(Vec::with_capacity(plain.len() / 4), Compression::fast());
    let packed = encoder.write_all(&plain).and_then(|()| encoder.finish());
    let Ok(packed) = packed else { return Response::from_parts(parts, Body::from(plain)) };
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    parts.headers.append(VARY, HeaderValue::from_static("accept-encoding"));
    Response::from_parts(parts, Body::from(packed))
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let all = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(',')).any(is_gzip)
}

/// Returns whether a coding is `gzip` with a weight above zero; `gzip;q=0` means that gzip is not accepted (RFC
/// 9110, section 12.5.3).
fn is_gzip(coding: &str) -> bool {
    let (name, weight) = coding.split_once(';').unwrap_or((coding, "q=1"));
    let weight = weight.trim().strip_prefix("q=").and_then(|weight| weight.parse::<f32>().ok());
    name.trim() == "gzip" && weight.is_none_or(|weight| weight > 0.0)
}

fn is_text(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| TEXT_TYPES.iter().any(|text| kind.starts_with(text)))
}
