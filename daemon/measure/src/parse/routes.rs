//! Routes of Linux: the default route, as the kernel prints it, and the messages of rtnetlink(7) that tell the route to an
//! address.

use std::net::IpAddr;

use super::bytes::{u16_at, u32_at};
use super::sockets::{HEADER, attribute};

/// Flag `RTF_UP` of a route that is up (include/uapi/linux/route.h).
const UP: u32 = 1;

/// Returns the interface of the default route with the lowest metric, from `/proc/net/route` (route(8)), which has the main
/// table only. The kernel prints addresses as they are in memory, in network byte order.
pub fn default_route(table: &str) -> Option<String> {
    let hexadecimal = |text: &str| u32::from_str_radix(text, 16).ok();
    let routes = table.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [interface, to, _, flags, _, _, metric, mask, ..] = fields[..] else { return None };
        let is_default = (hexadecimal(to)?, hexadecimal(mask)?) == (0, 0) && hexadecimal(flags)? & UP != 0;
        Some((metric.parse::<u32>().ok()?, interface)).filter(|_| is_default)
    });
    routes.min_by_key(|(metric, _)| *metric).map(|(_, interface)| interface.to_owned())
}

/// Length of the fixed part of a message about a route (`struct rtmsg`, include/uapi/linux/rtnetlink.h).
const ROUTE: usize = 12;

/// Builds a request for the route to an address. The kernel follows its rules for policy routing and sends nothing.
pub fn route_request(address: IpAddr) -> Vec<u8> {
    const GET_ROUTE: u16 = 26;
    /// Netlink flag NLM_F_REQUEST.
    const FLAGS: u16 = 1;
    const DESTINATION: u16 = 1;
    let (family, octets) = match address {
        IpAddr::V4(address) => (2, address.octets().to_vec()),
        IpAddr::V6(address) => (10, address.octets().to_vec()),
    };
    let attribute_length = 4 + octets.len();
    let mut request = vec![0u8; HEADER + ROUTE];
    request[0..4].copy_from_slice(&((HEADER + ROUTE + attribute_length) as u32).to_ne_bytes());
    request[4..6].copy_from_slice(&GET_ROUTE.to_ne_bytes());
    request[6..8].copy_from_slice(&FLAGS.to_ne_bytes());
    request[HEADER] = family;
    request[HEADER + 1] = octets.len() as u8 * 8;
    request.extend((attribute_length as u16).to_ne_bytes());
    request.extend(DESTINATION.to_ne_bytes());
    request.extend(octets);
    request
}

/// Returns the index of the interface that leads to an address, from the answer to [`route_request`]; `None` if no route
/// leads there.
pub fn route_interface_index(answer: &[u8]) -> Option<u32> {
    const NEW_ROUTE: u16 = 24;
    const OUTPUT_INTERFACE: u16 = 4;
    /// Type of a route to an address of this machine (RTN_LOCAL).
    const LOCAL: u8 = 2;
    /// The loopback is the first interface of each network namespace (include/net/flow.h, `LOOPBACK_IFINDEX`).
    const LOOPBACK: u32 = 1;
    let length = u32_at(answer, 0)? as usize;
    let route = answer.get(HEADER..length).filter(|_| u16_at(answer, 4) == Some(NEW_ROUTE))?;
    match *route.get(7)? {
        LOCAL => Some(LOOPBACK),
        _ => u32_at(attribute(route.get(ROUTE..)?, OUTPUT_INTERFACE)?, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
        wlan0\t00000000\t0102A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n\
        eth0\t00000000\t0102A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
        eth1\t0002A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n\
        down\t00000000\t00000000\t0000\t0\t0\t0\t00000000\t0\t0\t0\n";

    /// Answers of Linux 6.18 in the byte order of x86-64. 100.64.0.9 lies behind a rule for the table 52, as Tailscale adds it.
    const TO_100_64_0_9: &str = "6800000018000000000000000822000002200000fe0000010002000008000f00fe0000000800010064400009\
        08000400030000000800070064400002080019000000000024000c00020000001e00000000000000000000000000000000000000000000000000\
        0000";
    const TO_127_0_0_5: &str = "6800000018000000000000005020000002200000fe0000020002008008000f00fe000000080001007f000005\
        0800040001000000080007007f000001080019000000000024000c0002000000b8172b0000000000000000000000000000000000000000000000\
        0000";
    const TO_2001_DB8_1: &str = "b00000001800000000000000502000000a808000fe0300010000000008000f00fe0000001400010020010db8\
        000000000000000000000001140002000000000000000000000000000000000014000700fd00000000000000000000000000000208000600\
        0004000014000500fd000000000000000000000000000001080004000400000024000c0002000000a3162b00000000000000000000000000\
        0000000000000000000000000500140000000000";
    /// Answer for 9.9.9.9 without a default route: the error ENETUNREACH, with the request.
    const UNREACHABLE: &str = "380000000200000000000000322200009bffffff240000001a000100000000000000000002200000000000000000\
        00000800010009090909";

    fn bytes(hexadecimal: &str) -> Vec<u8> {
        let pairs = (0..hexadecimal.len()).step_by(2).map(|at| &hexadecimal[at..at + 2]);
        pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
    }

    #[test]
    fn the_default_route_with_the_lowest_metric_wins() {
        assert_eq!(default_route(TABLE).as_deref(), Some("eth0"));
        assert_eq!(default_route("Iface\n"), None);
    }

    #[test]
    fn captured_answers_name_the_interface() {
        let index = |answer: &str| route_interface_index(&bytes(answer));
        assert_eq!((index(TO_100_64_0_9), index(TO_2001_DB8_1)), (Some(3), Some(4)));
        assert_eq!((index(TO_127_0_0_5), index(UNREACHABLE)), (Some(1), None));
    }

    #[test]
    fn an_own_address_leads_to_the_loopback() {
        let mut own = bytes(TO_100_64_0_9);
        own[HEADER + 7] = 2;
        assert_eq!(route_interface_index(&own), Some(1));
    }

    #[test]
    fn an_answer_that_is_cut_off_names_no_interface() {
        let whole = bytes(TO_100_64_0_9);
        assert!((0..whole.len()).all(|length| route_interface_index(&whole[..length]).is_none()));
        for length in [0u8, 15, 16, 23, 27, 28, 30] {
            let mut short = whole.clone();
            short[0] = length;
            assert_eq!(route_interface_index(&short), None, "{length}");
        }
    }

    #[test]
    fn a_request_has_the_layout_of_the_kernel() {
        let request = route_request("100.64.0.9".parse().unwrap());
        let expected = "240000001a00010000000000000000000220000000000000000000000800010064400009";
        assert_eq!(request, bytes(expected));
        assert_eq!(route_request("2001:db8::1".parse().unwrap()).len(), 48);
    }
}
