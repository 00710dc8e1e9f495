//! Validation of a collector's address, and the addresses of its signals.

use ureq::http::Uri;

/// An error in the address of a collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// The text is not an HTTP or HTTPS URL with a host.
    #[error("not a valid URL: write http://localhost:4318 or https://collector.example:4318, for example")]
    InvalidUrl,
    /// The URL contains a user name or password.
    #[error("a URL with a user name or password would appear in logs: put credentials into `headers-file`")]
    Credentials,
}

/// Checks the address of a collector and returns it without surrounding spaces.
///
/// # Errors
///
/// [`EndpointError`]. The message does not quote the address, because it can contain a secret.
pub fn validate(text: &str) -> Result<String, EndpointError> {
    let uri: Uri = text.trim().parse().map_err(|_| EndpointError::InvalidUrl)?;
    let authority = uri.authority().ok_or(EndpointError::InvalidUrl)?;
    match uri.scheme_str() {
        Some("http" | "https") if authority.as_str().contains('@') => Err(EndpointError::Credentials),
        Some("http" | "https") if !authority.host().is_empty() => Ok(text.trim().to_owned()),
        _ => Err(EndpointError::InvalidUrl),
    }
}

/// Returns the address for a signal (`traces`, `metrics` or `logs`) at the base address of a collector (OTLP 1.9,
/// "OTLP/HTTP Request").
pub fn signal_url(base: &str, signal: &str) -> String {
    let (path, query) = base.split_at(base.find('?').unwrap_or(base.len()));
    format!("{}/v1/{signal}{query}", path.trim_end_matches('/'))
}

/// Returns an address without its query (the part after `?`), which can contain a secret.
pub fn redacted(address: &str) -> String {
    address.split('?').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_http_urls_without_credentials_are_valid() {
        for good in ["http://localhost:4318", " https://a.example/otlp ", "http://[::1]:4318/"] {
            assert_eq!(validate(good).as_deref(), Ok(good.trim()));
        }
        for bad in ["", "localhost:4318", "grpc://a:4317", "http://", "/v1", "http://a b"] {
            assert_eq!(validate(bad), Err(EndpointError::InvalidUrl), "{bad}");
        }
        assert_eq!(validate("https://me:secret@a.example"), Err(EndpointError::Credentials));
    }

    #[test]
    fn signal_path_is_appended_and_the_query_is_hidden() {
        assert_eq!(signal_url("http://a:1/otlp/", "traces"), "http://a:1/otlp/v1/traces");
        assert_eq!(signal_url("http://a:1/otlp/?key=k", "traces"), "http://a:1/otlp/v1/traces?key=k");
        assert_eq!(redacted("http://a/v1/traces?key=secret"), "http://a/v1/traces");
    }
}
