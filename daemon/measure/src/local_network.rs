//! Advice for a server in the local network that macOS does not let the service reach.
//!
//! Since macOS 15 a program needs a permission to connect to the local network. A program started in Terminal
//! or over SSH does not need it, but an agent of launchd does (Apple TN3179, "macOS considerations"). Without
//! the permission `connect` fails with EHOSTUNREACH, as if the host were off (public report:
//! cdzombak/runner#4).

use std::net::IpAddr;

/// First major version of macOS that requires the permission.
const FIRST_MACOS: u32 = 15;
/// Message with the setting to change.
const ADVICE: &str = "macOS may be blocking longhauld from the local network: allow it in \
    System Settings > Privacy & Security > Local Network, and check again after every update of longhaul";

/// Returns the reason for EHOSTUNREACH, with advice if the permission may be its cause. `system` is the result of
/// [`system_version`](crate::platform::system_version).
pub fn no_route(system: &str) -> String {
    let advice = if can_block(system) { format!(". {ADVICE}") } else { String::new() };
    format!("no route to the host (EHOSTUNREACH){advice}")
}

fn can_block(system: &str) -> bool {
    let Some(version) = system.strip_prefix("macOS") else { return false };
    let major = version.trim_start().split(|c: char| !c.is_ascii_digit()).next().map(str::parse::<u32>);
    major.is_some_and(|major| major.map_or(true, |major| major >= FIRST_MACOS))
}

/// Returns true for a private or link-local address: no other address needs the permission.
pub fn is_local(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => address.is_private() || address.is_link_local(),
        IpAddr::V6(address) => address.is_unique_local() || address.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_local_network_are_local() {
        let is = |address: &str| is_local(address.parse().unwrap());
        for local in ["192.168.0.103", "10.1.2.3", "172.31.0.1", "169.254.7.7", "fe80::1", "fd00::7"] {
            assert!(is(local), "{local}");
        }
        assert!(is("::ffff:192.168.0.1"));
        for other in ["127.0.0.1", "203.0.113.9", "172.32.0.1", "2001:db8::1"] {
            assert!(!is(other), "{other}");
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
            let reason = no_route(system);
            assert!(reason.starts_with("no route to the host (EHOSTUNREACH)"), "{reason}");
            assert_eq!(reason.ends_with("after every update of longhaul"), is_advised, "{system}");
        }
    }
}
