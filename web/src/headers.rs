//! Security headers of every response. They forbid loading resources from other origins, running inline scripts,
//! embedding the pages in frames, and guessing media types.

use axum::Router;
use axum::http::HeaderValue;
use axum::http::header::{self, HeaderName};
use tower_http::set_header::SetResponseHeaderLayer;

const SECURITY_HEADERS: [(HeaderName, &str); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    // With `no-referrer`, a browser would send `Origin: null` with the commands of our own page, and they would be
    // refused (Fetch, "append a request `Origin` header").
    (header::REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// Adds the security headers to every response of a router, and `Cache-Control: no-store` where the handler set no
/// other value.
pub fn add_security_headers(router: Router) -> Router {
    let no_store = HeaderValue::from_static("no-store");
    SECURITY_HEADERS.into_iter().fold(
        router.layer(SetResponseHeaderLayer::if_not_present(header::CACHE_CONTROL, no_store)),
        |router, (name, value)| {
            router.layer(SetResponseHeaderLayer::overriding(name, HeaderValue::from_static(value)))
        },
    )
}
