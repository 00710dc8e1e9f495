//! Routing tables of Linux, as the kernel prints them: the interface that leads to an address. Policy routing
//! is not considered.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Flag `RTF_UP` of a route that is up (include/uapi/linux/route.h).
const UP: u32 = 1;

/// Route: the length of its prefix, its metric, and its interface.
struct Route {
    prefix: u32,
    metric: u32,
    interface: String,
}

/// Returns the interface of the best route: the longest prefix wins, then the lowest metric.
fn best(routes: impl Iterator<Item = Route>) -> Option<String> {
    let best = routes.min_by_key(|route| (u32::MAX - route.prefix, route.metric));
    best.map(|route| route.interface)
}

/// Returns the interface of the default route with the lowest metric, from `/proc/net/route` (route(8)).
pub fn default_route(table: &str) -> Option<String> {
    best(ipv4_routes(table, Ipv4Addr::UNSPECIFIED).filter(|route| route.prefix == 0))
}

/// Returns the interface that leads to an IPv4 address, from `/proc/net/route`.
pub fn route_to(table: &str, address: Ipv4Addr) -> Option<String> {
    best(ipv4_routes(table, address))
}

/// Returns the routes of a table that match an address. The kernel prints the numbers as they are in memory,
/// in network byte order.
fn ipv4_routes(table: &str, address: Ipv4Addr) -> impl Iterator<Item = Route> {
    let address = u32::from_ne_bytes(address.octets());
    let hexadecimal = |text: &str| u32::from_str_radix(text, 16).ok();
    table.lines().skip(1).filter_map(move |line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [interface, to, _, flags, _, _, metric, mask, ..] = fields[..] else { return None };
        let (to, mask, metric) = (hexadecimal(to)?, hexadecimal(mask)?, metric.parse().ok()?);
        let leads_there = hexadecimal(flags)? & UP != 0 && address & mask == to;
        leads_there.then(|| Route { prefix: mask.count_ones(), metric, interface: interface.to_owned() })
    })
}

/// Returns the interface that leads to an IPv6 address, from `/proc/net/ipv6_route` (net/ipv6/route.c,
/// `rt6_info_route`).
pub fn ipv6_route_to(table: &str, address: Ipv6Addr) -> Option<String> {
    let routes = table.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [to, prefix, _, _, _, metric, _, _, flags, interface] = fields[..] else { return None };
        let to = u128::from_str_radix(to, 16).ok()?;
        let prefix = u32::from_str_radix(prefix, 16).ok().filter(|prefix| *prefix <= 128)?;
        let metric = u32::from_str_radix(metric, 16).ok()?;
        let flags = u32::from_str_radix(flags, 16).ok()?;
        let mask = u128::MAX.checked_shl(128 - prefix).unwrap_or(0);
        let leads_there = flags & UP != 0 && u128::from(address) & mask == to & mask;
        leads_there.then(|| Route { prefix, metric, interface: interface.to_owned() })
    });
    best(routes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
        eth0\t00000000\t0102A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
        wlan0\t00000000\t0102A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n\
        eth1\t0002A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n\
        down\t0502A8C0\t00000000\t0000\t0\t0\t0\tFFFFFFFF\t0\t0\t0\n";
    const TABLE_6: &str = "\
        fe800000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0\n\
        fd000000000000000000000000000000 08 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth1\n\
        00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003    wlan0\n";

    #[test]
    fn the_longest_prefix_and_then_the_lowest_metric_win() {
        let to = |address: &str| route_to(TABLE, address.parse().unwrap());
        assert_eq!(default_route(TABLE).as_deref(), Some("eth0"));
        assert_eq!(to("192.168.2.5").as_deref(), Some("eth1"));
        assert_eq!(to("192.168.3.5").as_deref(), Some("eth0"));
        assert_eq!(route_to("Iface\n", "192.168.2.5".parse().unwrap()), None);
    }

    #[test]
    fn ipv6_routes_are_matched_by_their_prefix() {
        let to = |address: &str| ipv6_route_to(TABLE_6, address.parse().unwrap());
        assert_eq!(to("fd12::5").as_deref(), Some("eth1"));
        assert_eq!(to("fe80::1").as_deref(), Some("eth0"));
        assert_eq!(to("2001:db8::1").as_deref(), Some("wlan0"));
    }
}
