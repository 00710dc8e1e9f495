//! Advice for a collector in the local network that macOS does not let the service reach.
//!
//! Since macOS 15 a program needs a permission to connect to the local network. A program started in Terminal
//! or over SSH does not need it, but an agent of launchd does (Apple TN3179, "macOS considerations"). Without
//! the permission `connect` fails with EHOSTUNREACH, as if the host were off (public report:
//! cdzombak/runner#4).

use std::net::{IpAddr, ToSocketAddrs};

use ureq::http::Uri;

/// First major version of macOS that requires the permission.
const FIRST_MACOS: u32 = 15;
/// Message with the setting to change.
const ADVICE: &str = "macOS may be blocking longhauld from the local network: allow it in \
    System Settings > Privacy & Security > Local Network, and check again after every update of longhaul";

/// Returns advice for the case that a connection to these addresses failed with EHOSTUNREACH. `system` is the
/// result of [`system_version`](longhaul_measure::platform::system_version). `None`: the permission cannot be
/// the cause.
pub fn advice(addresses: &[IpAddr], system: &str) -> Option<&'static str> {
    let version = system.strip_prefix("macOS")?.trim_start();
    let major = version.split(|c: char| !c.is_ascii_digit()).next()?.parse();
    let can_block = major.map_or(true, |major: u32| major >= FIRST_MACOS);
    (can_block && addresses.iter().any(|address| is_local(*address))).then_some(ADVICE)
}

/// Returns true for a private or link-local address.
fn is_local(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => address.is_private() || address.is_link_local(),
        IpAddr::V6(address) => address.is_unique_local() || address.is_unicast_link_local(),
    }
}

/// Returns the IP addresses of the host in a collector's URL. A host name is resolved, which can block.
pub fn addresses(address: &str) -> Vec<IpAddr> {
    let uri: Option<Uri> = address.parse().ok();
    let Some(host) = uri.as_ref().and_then(Uri::host) else { return vec![] };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let found = (host, 0).to_socket_addrs();
    found.map_or_else(|_| vec![], |found| found.map(|found| found.ip()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_advice(address: &str, system: &str) -> bool {
        advice(&addresses(address), system).is_some()
    }

    #[test]
    fn only_local_network_addresses_get_advice() {
        for local in [
            "http://192.168.0.103:4318",
            "http://10.1.2.3/otlp",
            "http://172.31.0.1:4318",
            "http://169.254.7.7",
            "http://[fe80::1]:4318",
            "http://[fd00::7]",
            "http://[::ffff:192.168.0.1]",
        ] {
            assert!(has_advice(local, "macOS 15.4 (24E248)"), "{local}");
        }
        for other in [
            "http://127.0.0.1:4318",
            "http://203.0.113.9",
            "http://172.32.0.1",
            "http://[2001:db8::1]",
            "x y",
        ] {
            assert!(!has_advice(other, "macOS 15.4 (24E248)"), "{other}");
        }
    }

    #[test]
    fn only_macos_with_the_setting_gets_advice() {
        for (system, is_advised) in [
            ("macOS 15.0 (24A335)", true),
            ("macOS 26.1", true),
            ("macOS", true),
            ("macOS 14.7.1 (23H222)", false),
            ("Linux 6.1.0", false),
            ("", false),
        ] {
            assert_eq!(has_advice("http://192.168.0.103:4318", system), is_advised, "{system}");
        }
    }
}
