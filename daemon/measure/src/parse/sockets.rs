//! Parser for the TCP connections that sock_diag(7) returns: `inet_diag_msg` of
//! include/uapi/linux/inet_diag.h with `tcp_info` of include/uapi/linux/tcp.h, which grows with the kernel.
//! Values are in host byte order, except for ports and addresses in network byte order.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::bytes::{u16_at, u32_at, u64_at};
use longhaul_model::TcpCounters;

/// TCP connection to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// Address of the server.
    pub server: IpAddr,
    /// Port of the server.
    pub port: u16,
    /// Local port, which distinguishes the connection from its successor.
    pub local_port: u16,
    /// Payload bytes received; `None` before Linux 4.1.
    pub received: Option<u64>,
    /// Payload bytes that the server has confirmed.
    pub sent: Option<u64>,
    /// Number of retransmitted segments, counted in 32 bits.
    pub retransmits: Option<u64>,
    /// Smoothed round-trip time, in microseconds.
    pub round_trip_us: Option<u64>,
    /// Time since data was last sent, in milliseconds.
    pub idle_ms: Option<u64>,
    /// Times and segments of the connection.
    pub tcp: TcpCounters,
}

/// Contents of one datagram of a dump.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SocketDump {
    /// Connections in the datagram.
    pub connections: Vec<Connection>,
    /// True if the datagram ends the dump: with its end mark, with an error, or because it is not part of a
    /// dump.
    pub is_last: bool,
    /// Error number of the system; `None` if the datagram contains no error.
    pub error: Option<i32>,
}

/// Length of the header of a netlink message (`struct nlmsghdr`, netlink(7)).
pub(super) const HEADER: usize = 16;
const MESSAGE: usize = 72;
const DONE: u16 = 3;
const ERROR: u16 = 2;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const INET_DIAG_INFO: u16 = 2;

/// Builds a request for the TCP connections of a family (2: IPv4, 10: IPv6) to a port of the server, with
/// their `tcp_info`.
pub fn socket_request(family: u8, port: u16) -> [u8; HEADER + 56] {
    /// Netlink flags: NLM_F_REQUEST and NLM_F_DUMP.
    const FLAGS: u16 = 0x1 | 0x300;
    const TCP: u8 = 6;
    /// TCP states that are requested: from ESTABLISHED to LAST_ACK and CLOSING, without SYN_SENT, SYN_RECV,
    /// TIME_WAIT, CLOSE and LISTEN (include/net/tcp_states.h).
    const STATES: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;
    let mut request = [0; HEADER + 56];
    let length = request.len() as u32;
    request[0..4].copy_from_slice(&length.to_ne_bytes());
    request[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    request[6..8].copy_from_slice(&FLAGS.to_ne_bytes());
    request[HEADER] = family;
    request[HEADER + 1] = TCP;
    request[HEADER + 2] = 1 << (INET_DIAG_INFO - 1);
    request[HEADER + 4..HEADER + 8].copy_from_slice(&STATES.to_ne_bytes());
    request[HEADER + 10..HEADER + 12].copy_from_slice(&port.to_be_bytes());
    request
}

/// Returns the connections in one datagram of the answer. An incomplete record is left out.
pub fn sockets(mut datagram: &[u8]) -> SocketDump {
    let mut dumped = SocketDump::default();
    while let Some((length, kind)) = u32_at(datagram, 0).zip(u16_at(datagram, 4)) {
        let length = length as usize;
        let Some(body) = datagram.get(HEADER..length) else { break };
        match kind {
            SOCK_DIAG_BY_FAMILY => dumped.connections.extend(connection(body)),
            DONE => dumped.is_last = true,
            ERROR => {
                (dumped.is_last, dumped.error) =
                    (true, u32_at(body, 0).map(|code| code.cast_signed().wrapping_neg()));
            }
            _ => {}
        }
        datagram = datagram.get(aligned(length)..).unwrap_or_default();
    }
    // A datagram without connections ends the dump: otherwise the caller would wait for more again and again.
    dumped.is_last |= dumped.connections.is_empty();
    dumped
}

fn connection(body: &[u8]) -> Option<Connection> {
    let server = address(*body.first()?, body.get(24..40)?)?;
    let info = attribute(body.get(MESSAGE..)?, INET_DIAG_INFO).unwrap_or_default();
    Some(Connection {
        server,
        local_port: u16::from_be_bytes(body.get(4..6)?.try_into().ok()?),
        port: u16::from_be_bytes(body.get(6..8)?.try_into().ok()?),
        received: u64_at(info, 128),
        sent: u64_at(info, 120),
        retransmits: u32_at(info, 100).map(u64::from),
        round_trip_us: microseconds_at(info, 68),
        idle_ms: u32_at(info, 44).map(u64::from),
        tcp: tcp_counters(info),
    })
}

/// Returns the values of a `tcp_info`. A kernel that is older than a value sends a shorter one. The offsets are those of
/// Linux 4.9 (`tcpi_delivery_rate`); the structure only grows at its end.
fn tcp_counters(info: &[u8]) -> TcpCounters {
    let count = |at: usize| u32_at(info, at).map(u64::from);
    // The first bit of this byte, `tcpi_delivery_rate_app_limited`, says that the sender had nothing more to send, so that
    // the rate is not one of the network.
    let is_full = info.get(7).is_some_and(|flags| flags & 1 == 0);
    TcpCounters {
        segments_sent: count(156),
        // Before the first measurement the kernel reports the largest number.
        min_rtt_us: microseconds_at(info, 148).filter(|time| *time < u64::from(u32::MAX)),
        timeout_us: microseconds_at(info, 8),
        delivery_rate: u64_at(info, 160).filter(|rate| is_full && *rate > 0),
    }
}

/// Reads a time that is zero if the kernel has not measured it yet.
fn microseconds_at(info: &[u8], at: usize) -> Option<u64> {
    u32_at(info, at).map(u64::from).filter(|time| *time > 0)
}

/// Parses an address. IPv4 (family 2) has it in the first four bytes; an IPv6 socket (family 10) may be
/// connected to an IPv4 address.
fn address(family: u8, bytes: &[u8]) -> Option<IpAddr> {
    let bytes: [u8; 16] = bytes.try_into().ok()?;
    match family {
        2 => Some(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]).into()),
        10 => Some(IpAddr::from(Ipv6Addr::from(bytes)).to_canonical()),
        _ => None,
    }
}

/// Returns the attribute of this type. Attributes have the form `{u16 length, u16 type}` and are aligned to
/// four bytes (rtnetlink(7)).
pub(super) fn attribute(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let (length, kind) = (usize::from(u16_at(attributes, 0)?), u16_at(attributes, 2)?);
        let content = attributes.get(4..length)?;
        if kind == wanted {
            return Some(content);
        }
        attributes = attributes.get(aligned(length)..)?;
    }
}

fn aligned(length: usize) -> usize {
    length.saturating_add(3) & !3
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Builds a message as a kernel with a `tcp_info` of this length writes it.
    fn message(family: u8, remote: &[u8], info_bytes: usize) -> Vec<u8> {
        let mut info = vec![0u8; 240];
        info[8..12].copy_from_slice(&204_000u32.to_ne_bytes());
        info[44..48].copy_from_slice(&77u32.to_ne_bytes());
        info[68..72].copy_from_slice(&321u32.to_ne_bytes());
        info[100..104].copy_from_slice(&7u32.to_ne_bytes());
        info[120..128].copy_from_slice(&1_000_000u64.to_ne_bytes());
        info[128..136].copy_from_slice(&(5u64 << 32).to_ne_bytes());
        for (at, value) in [(148, 250u32), (152, 12), (156, 34)] {
            info[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        for (at, value) in [(160, 2_500_000u64), (168, 9_000), (176, 800), (184, 70)] {
            info[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        }
        let mut body = vec![0u8; MESSAGE];
        body[0] = family;
        body[4..6].copy_from_slice(&795u16.to_be_bytes());
        body[6..8].copy_from_slice(&2049u16.to_be_bytes());
        body[24..24 + remote.len()].copy_from_slice(remote);
        for (kind, content) in [(8u16, &[0u8][..]), (INET_DIAG_INFO, &info[..info_bytes])] {
            body.extend(((content.len() + 4) as u16).to_ne_bytes());
            body.extend(kind.to_ne_bytes());
            body.extend(content);
            body.resize(aligned(body.len()), 0);
        }
        framed(SOCK_DIAG_BY_FAMILY, &body)
    }

    fn framed(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut message = vec![0u8; HEADER];
        message[0..4].copy_from_slice(&((HEADER + body.len()) as u32).to_ne_bytes());
        message[4..6].copy_from_slice(&kind.to_ne_bytes());
        message.extend(body);
        message
    }

    #[test]
    fn a_connection_has_server_bytes_and_round_trip_time() {
        let dumped = sockets(&[message(2, &[10, 77, 0, 2], 232), framed(DONE, &[0; 4])].concat());
        let expected = Connection {
            server: "10.77.0.2".parse().unwrap(),
            port: 2049,
            local_port: 795,
            received: Some(5 << 32),
            sent: Some(1_000_000),
            retransmits: Some(7),
            round_trip_us: Some(321),
            idle_ms: Some(77),
            tcp: TcpCounters {
                segments_sent: Some(34),
                min_rtt_us: Some(250),
                timeout_us: Some(204_000),
                delivery_rate: Some(2_500_000),
            },
        };
        assert_eq!(dumped, SocketDump { connections: vec![expected], is_last: true, error: None });
    }

    #[test]
    fn values_that_an_older_kernel_lacks_are_not_zero() {
        let linux_3 = &sockets(&message(2, &[10, 77, 0, 2], 104)).connections[0];
        assert_eq!((linux_3.received, linux_3.sent, linux_3.retransmits), (None, None, Some(7)));
        let none = &sockets(&message(2, &[10, 77, 0, 2], 0)).connections[0];
        assert_eq!((none.retransmits, none.round_trip_us), (None, None));
        assert_eq!(none.tcp, TcpCounters::default());
        let linux_4_8 = sockets(&message(2, &[10, 77, 0, 2], 160)).connections[0].tcp;
        assert_eq!((linux_4_8.min_rtt_us, linux_4_8.delivery_rate), (Some(250), None));
    }

    #[test]
    fn a_rate_of_a_sender_with_nothing_to_send_is_unknown() {
        let mut idle = message(2, &[10, 77, 0, 2], 232);
        let info = idle.len() - 232;
        idle[info + 7] = 1;
        let tcp = sockets(&idle).connections[0].tcp;
        assert_eq!((tcp.delivery_rate, tcp.min_rtt_us), (None, Some(250)));
    }

    #[test]
    fn a_round_trip_time_that_was_not_measured_is_unknown() {
        let mut new = message(2, &[10, 77, 0, 2], 232);
        let info = new.len() - 232;
        new[info + 148..info + 152].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert_eq!(sockets(&new).connections[0].tcp.min_rtt_us, None);
    }

    #[test]
    fn a_mapped_ipv4_address_is_read_as_ipv4() {
        let server = |bytes: &[u8]| sockets(&message(10, bytes, 0)).connections[0].server.to_string();
        let mut mapped = [0; 16];
        mapped[10..].copy_from_slice(&[255, 255, 10, 77, 0, 2]);
        assert_eq!(server(&mapped), "10.77.0.2");
        let mut local = [0; 16];
        (local[0], local[1], local[15]) = (0xfe, 0x80, 1);
        assert_eq!(server(&local), "fe80::1");
    }

    #[test]
    fn an_error_ends_the_dump_with_its_number() {
        let dumped = sockets(&framed(ERROR, &(-2i32).to_ne_bytes()));
        assert_eq!((dumped.is_last, dumped.error), (true, Some(2)));
        assert!(sockets(&[]).is_last, "an empty datagram ends the dump");
        assert!(!sockets(&message(2, &[1, 1, 1, 1], 0)).is_last);
    }

    #[test]
    fn a_request_has_the_layout_of_the_kernel() {
        let request = socket_request(2, 2049);
        assert_eq!((request.len(), request[16], request[17], request[18]), (72, 2, 6, 2));
        assert_eq!(request[26..28], [8, 1], "the port of the server in network order");
    }

    proptest! {
        #[test]
        fn a_datagram_cut_anywhere_is_read_up_to_there(cut in 0usize..400) {
            let whole = [message(2, &[10, 0, 0, 1], 232), message(10, &[1; 16], 104)].concat();
            let found = sockets(&whole[..cut.min(whole.len())]).connections;
            prop_assert!(found.len() <= 2);
            let firsts = sockets(&whole).connections;
            prop_assert!(found.iter().zip(&firsts).all(|(one, other)| one == other));
        }
    }
}
