//! A collector in the local network that macOS may keep the service from.
//!
//! Since macOS 15 a program needs a permission to connect to the local network; one that was started in Terminal or over SSH
//! does not, and an agent of launchd does (Apple TN3179, "macOS considerations"). Without it `connect` fails with EHOSTUNREACH,
//! as if the host were off (public report: cdzombak/runner#4).

use std::net::{IpAddr, ToSocketAddrs};

use ureq::http::Uri;

/// The first macOS that asks for the permission.
const FIRST_MACOS: u32 = 15;
/// What to do about it.
const ADVICE: &str = "macOS may keep longhauld from the local network: System Settings > Privacy & Security > Local Network, \
    allow longhauld there; after an update it may have to be allowed again";

/// Returns what to do when no route leads to these addresses, on a system as
/// [`system_version`](longhaul_measure::platform::system_version) names it; `None`: nothing that is known.
pub fn advice(addresses: &[IpAddr], system: &str) -> Option<&'static str> {
    let version = system.strip_prefix("macOS")?.trim_start();
    let major = version.split(|c: char| !c.is_ascii_digit()).next()?.parse();
    let may_refuse = major.map_or(true, |major: u32| major >= FIRST_MACOS);
    (may_refuse && addresses.iter().any(|address| is_local(*address))).then_some(ADVICE)
}

/// Whether an address is one of a local network, private or link-local.
fn is_local(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => address.is_private() || address.is_link_local(),
        IpAddr::V6(address) => address.is_unique_local() || address.is_unicast_link_local(),
    }
}

/// Returns the IP addresses of the host in a collector's address. Asks the resolver, unless that is one itself.
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

    fn advised(address: &str, system: &str) -> bool {
        advice(&addresses(address), system).is_some()
    }

    #[test]
    fn only_addresses_of_a_local_network_are_advised_on() {
        for local in [
            "http://192.168.0.103:4318",
            "http://10.1.2.3/otlp",
            "http://172.31.0.1:4318",
            "http://169.254.7.7",
            "http://[fe80::1]:4318",
            "http://[fd00::7]",
            "http://[::ffff:192.168.0.1]",
        ] {
            assert!(advised(local, "macOS 15.4 (24E248)"), "{local}");
        }
        for other in [
            "http://127.0.0.1:4318",
            "http://203.0.113.9",
            "http://172.32.0.1",
            "http://[2001:db8::1]",
            "x y",
        ] {
            assert!(!advised(other, "macOS 15.4 (24E248)"), "{other}");
        }
    }

    #[test]
    fn only_a_macos_that_has_the_setting_is_advised() {
        for (system, is_advised) in [
            ("macOS 15.0 (24A335)", true),
            ("macOS 26.1", true),
            ("macOS", true),
            ("macOS 14.7.1 (23H222)", false),
            ("Linux 6.1.0", false),
            ("", false),
        ] {
            assert_eq!(advised("http://192.168.0.103:4318", system), is_advised, "{system}");
        }
    }
}
