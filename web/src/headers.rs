//! Security headers of every response. They forbid loading resources from other origins, running inline scripts,
//! embedding the pages in frames, and guessing media types. A chart as a file of its own may load nothing at all,
//! but has its style within.

use axum::Router;
use axum::http::HeaderValue;
use axum::http::header::{self, HeaderName};
use tower_http::set_header::SetResponseHeaderLayer;

/// Content security policy of a chart as a file of its own.
pub const CHART_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";

/// Headers of the responses whose handler set no other value.
const DEFAULT_HEADERS: [(HeaderName, &str); 2] = [
    (header::CACHE_CONTROL, "no-store"),
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'",
    ),
];

/// Headers of all responses.
const SECURITY_HEADERS: [(HeaderName, &str); 5] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    // With `no-referrer`, a browser would send `Origin: null` with the commands of our own page, and they would be
    // refused (Fetch, "append a request `Origin` header").
    (header::REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// Adds the security headers to every response of a router.
pub fn add_security_headers(router: Router) -> Router {
    let router = DEFAULT_HEADERS.into_iter().fold(router, |router, (name, value)| {
        router.layer(SetResponseHeaderLayer::if_not_present(name, HeaderValue::from_static(value)))
    });
    SECURITY_HEADERS.into_iter().fold(router, |router, (name, value)| {
        router.layer(SetResponseHeaderLayer::overriding(name, HeaderValue::from_static(value)))
    })
}
