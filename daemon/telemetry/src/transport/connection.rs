//! Settings and messages that connections over HTTP and over gRPC share.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::time::Duration;

use longhaul_measure::{local_network, platform};
use ureq::http::Uri;
use ureq::tls::{Certificate, PemItem, parse_pem};

/// Maximum time for name resolution and for the connection, each within the timeout of the whole request.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Name of this program in requests.
pub const USER_AGENT: &str = concat!("longhaul/", env!("CARGO_PKG_VERSION"));

/// An error when a connection is configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionError {
    /// The certificate file contains no certificate.
    #[error(
        "the file set as `certificate` or in OTEL_EXPORTER_OTLP_CERTIFICATE contains no certificate in PEM format"
    )]
    NoCertificate,
    /// The gRPC library does not accept a setting.
    #[error(
        "gRPC cannot be used: {0}. Check `endpoint` and `headers-file`, or set `protocol` to http/protobuf"
    )]
    Grpc(String),
}

/// Returns the certificates in PEM text.
///
/// # Errors
///
/// [`ConnectionError::NoCertificate`] if there are none.
pub fn certificates(pem: &[u8]) -> Result<Vec<Certificate<'static>>, ConnectionError> {
    let items = parse_pem(pem).filter_map(|item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        _ => None,
    });
    let certificates: Vec<Certificate<'static>> = items.collect();
    if certificates.is_empty() { Err(ConnectionError::NoCertificate) } else { Ok(certificates) }
}

/// Returns the reason why an address cannot be reached, worded to follow the address.
pub fn failure_reason(error: &io::Error, address: &str) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::HostUnreachable => unreachable_reason(address, &platform::system_version()),
        _ => error.to_string(),
    }
}

/// Returns the reason for EHOSTUNREACH, with advice if the permission of macOS may be the cause.
fn unreachable_reason(address: &str, system: &str) -> String {
    let is_local = addresses(address).into_iter().any(local_network::is_local);
    local_network::no_route(if is_local { system } else { "" })
}

/// Returns the IP addresses of the host in a collector's URL. A host name is resolved, which can block.
fn addresses(address: &str) -> Vec<IpAddr> {
    let uri: Option<Uri> = address.parse().ok();
    let Some(host) = uri.as_ref().and_then(Uri::host) else { return vec![] };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let found = (host, 0).to_socket_addrs();
    found.map_or_else(|_| vec![], |found| found.map(|found| found.ip()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreachable_lan_collector_gets_advice_on_macos() {
        let reason = |system: &str| unreachable_reason("http://192.168.0.103:4318/v1/traces", system);
        assert!(
            reason("macOS 15.4 (24E248)").ends_with("after every update of longhaul"),
            "{}",
            reason("macOS 15.4")
        );
        assert_eq!(reason("Linux 6.1.0"), "no route to the host (EHOSTUNREACH)");
        for other in ["http://203.0.113.9", "http://[2001:db8::1]:4318", "x y"] {
            assert_eq!(unreachable_reason(other, "macOS 15.4"), reason("Linux 6.1.0"), "{other}");
        }
        assert_eq!(unreachable_reason("http://[fd00::7]", "macOS 15.4"), reason("macOS 15.4"));
    }
}
