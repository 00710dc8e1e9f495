//! Compresses pages and assets with gzip (tower-http). Event streams are never compressed: the encoder would hold
//! events back until its block is full.
//!
//! A compressed body is sent in one piece instead of block by block, so that a client that reads slowly keeps no
//! request in flight and no connection busy.

use axum::body::{Body, to_bytes};
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{Extensions, HeaderMap, StatusCode, Version};
use axum::response::{IntoResponse, Response};
use tower_http::compression::predicate::{Predicate, SizeAbove};
use tower_http::compression::{CompressionLayer, CompressionLevel};

/// Media types worth compressing, matched by prefix.
const TEXT_TYPES: [&str; 5] =
    ["text/html", "text/css", "text/javascript", "application/json", "image/svg+xml"];
/// Smallest response that is compressed, in bytes: a smaller one fits into one packet anyway.
const MIN_BYTES: u64 = 1400;

/// Returns the layer that compresses a response if it is text and the client accepts gzip.
pub fn layer() -> CompressionLayer<impl Predicate> {
    CompressionLayer::new()
        .quality(CompressionLevel::Fastest)
        .compress_when(SizeAbove::new(MIN_BYTES).and(is_text))
}

fn is_text(_: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| TEXT_TYPES.iter().any(|text| kind.starts_with(text)))
}

/// Replaces the stream of a compressed body by its bytes.
pub async fn collect_body(response: Response) -> Response {
    if !response.headers().contains_key(CONTENT_ENCODING) {
        return response;
    }
    let (parts, body) = response.into_parts();
    match to_bytes(body, usize::MAX).await {
        Ok(bytes) => Response::from_parts(parts, Body::from(bytes)),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
