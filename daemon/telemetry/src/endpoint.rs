//! Where a collector is.

use longhaul_store::Signal;
use ureq::http::Uri;

/// Why an address cannot be a collector's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// It is no address.
    #[error("it is no address: write it as http://localhost:4318 or https://collector.example:4318")]
    NoAddress,
    /// It holds a name or password.
    #[error("a name and password in an address end up in logs: put them into `headers-file`")]
    Credentials,
}

/// An address, checked.
///
/// # Errors
///
/// [`EndpointError`]. The address itself is not in the message: it may hold a secret.
pub fn checked(text: &str) -> Result<String, EndpointError> {
    let uri: Uri = text.trim().parse().map_err(|_| EndpointError::NoAddress)?;
    let authority = uri.authority().ok_or(EndpointError::NoAddress)?;
    match uri.scheme_str() {
        Some("http" | "https") if authority.as_str().contains('@') => Err(EndpointError::Credentials),
        Some("http" | "https") if !authority.host().is_empty() => Ok(text.trim().to_owned()),
        _ => Err(EndpointError::NoAddress),
    }
}

/// The address for one signal below a collector's (OTLP 1.9, "OTLP/HTTP Request").
pub fn below(base: &str, signal: &str) -> String {
    format!("{}/v1/{signal}", base.trim_end_matches('/'))
}

/// As it may be shown: what stands behind `?` may be a secret.
pub fn shown(address: &str) -> String {
    address.split('?').next().unwrap_or_default().to_owned()
}

/// The address of a signal below a collector's.
pub fn of_signal(base: &str, signal: Signal) -> String {
    below(base, signal.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_one_of_http_without_credentials() {
        for good in ["http://localhost:4318", " https://a.example/otlp ", "http://[::1]:4318/"] {
            assert_eq!(checked(good).as_deref(), Ok(good.trim()));
        }
        for bad in ["", "localhost:4318", "grpc://a:4317", "http://", "/v1", "http://a b"] {
            assert_eq!(checked(bad), Err(EndpointError::NoAddress), "{bad}");
        }
        assert_eq!(checked("https://me:secret@a.example"), Err(EndpointError::Credentials));
    }

    #[test]
    fn a_signal_is_below_the_base_and_shown_without_its_question() {
        assert_eq!(of_signal("http://a:1/otlp/", Signal::Traces), "http://a:1/otlp/v1/traces");
        assert_eq!(shown("http://a/v1/traces?key=secret"), "http://a/v1/traces");
    }
}
