//! Parser for the TCP connections of a Mac: `sysctl net.inet.tcp.pcblist_n` (xnu bsd/netinet/in_pcblist.c;
//! the offsets are those of in_pcb.h, tcp_var.h and sys/socketvar.h with their packing of four bytes).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::bytes::{u32_at, u64_at};
use super::sockets::Connection;
use longhaul_model::TcpCounters;

/// Size in bytes of `xinpgen`, which is the header and the mark at the end.
const HEADER: usize = 24;
/// Kinds of records that are read, of the six that belong to each connection.
const ADDRESSES: u32 = 0x10;
const SOCKET: u32 = 0x1;
const STATISTICS: u32 = 0x8;
const PROTOCOL: u32 = 0x20;
const ALL_SIX: u32 = 0x3f;

/// Returns the established connections that no process opened: those of the kernel's own clients of SMB, NFS
/// and AFP, whose `so_last_pid` is 0. Unreadable records are left out.
pub fn pcblist(list: &[u8]) -> Vec<Connection> {
    let Some(generation) = u64_at(list, 8) else { return vec![] };
    let mut connections = vec![];
    let mut parts = ConnectionRecords::default();
    for record in records(list) {
        // Each connection starts with its addresses (xnu bsd/netinet/in_pcblist.c:292, `get_pcblist_n`). One
        // without a socket lacks other records, which would otherwise be taken from the next connection, and
        // so on to the end.
        if u32_at(record, 4) == Some(ADDRESSES) {
            parts = ConnectionRecords::default();
        }
        parts.add(record);
        if parts.kinds == ALL_SIX {
            connections.extend(std::mem::take(&mut parts).connection(generation));
        }
    }
    connections
}

/// Returns the records between the header and the mark at the end, each `{u32 length, u32 kind}` and aligned
/// to eight bytes.
fn records(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = list.get(HEADER..).unwrap_or_default();
    std::iter::from_fn(move || {
        let length = u32_at(rest, 0)? as usize;
        let record = rest.get(..length).filter(|_| length > HEADER)?;
        rest = rest.get(length.saturating_add(7) & !7..).unwrap_or_default();
        Some(record)
    })
}

/// Records of one connection, collected in any order: only the addresses are guaranteed to come first.
#[derive(Default)]
struct ConnectionRecords<'a> {
    kinds: u32,
    addresses: &'a [u8],
    socket: &'a [u8],
    statistics: &'a [u8],
    protocol: &'a [u8],
}

impl<'a> ConnectionRecords<'a> {
    fn add(&mut self, record: &'a [u8]) {
        let Some(kind) = u32_at(record, 4).filter(|kind| ALL_SIX & kind == *kind) else { return };
        self.kinds |= kind;
        match kind {
            ADDRESSES => self.addresses = record,
            SOCKET => self.socket = record,
            STATISTICS => self.statistics = record,
            PROTOCOL => self.protocol = record,
            _ => {}
        }
    }

    /// Returns the connection if it existed when the list was started, is established and belongs to the
    /// kernel.
    fn connection(self, generation: u64) -> Option<Connection> {
        let is_counted = u64_at(self.addresses, 28)? <= generation;
        let is_established = u32_at(self.protocol, 36)? == 4;
        let is_kernels = u32_at(self.socket, 68)? == 0;
        let port = |at: usize| Some(u16::from_be_bytes(self.addresses.get(at..at + 2)?.try_into().ok()?));
        (is_counted && is_established && is_kernels).then_some(())?;
        Some(Connection {
            server: self.server()?,
            port: port(16)?,
            local_port: port(18)?,
            received: u64_at(self.statistics, 16),
            sent: u64_at(self.statistics, 32),
            retransmits: None,
            round_trip_us: None,
            // The list has bytes only: `xsockstat_n` of bsd/sys/socketvar.h:549 (xnu).
            idle_ms: None,
            tcp: TcpCounters::default(),
        })
    }

    fn server(&self) -> Option<IpAddr> {
        let bytes: [u8; 16] = self.addresses.get(48..64)?.try_into().ok()?;
        match self.addresses.get(44)? & 3 {
            1 => Some(Ipv4Addr::new(bytes[12], bytes[13], bytes[14], bytes[15]).into()),
            2 => Some(IpAddr::from(Ipv6Addr::from(without_scope(bytes))).to_canonical()),
            _ => None,
        }
    }
}

/// Clears the scope of a link-local address: the kernel stores the interface in its third and fourth byte
/// (KAME).
fn without_scope(mut bytes: [u8; 16]) -> [u8; 16] {
    if bytes[0] == 0xfe && bytes[1] & 0xc0 == 0x80 {
        (bytes[2], bytes[3]) = (0, 0);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(kind: u32, length: usize, fields: &[(usize, &[u8])]) -> Vec<u8> {
        let mut record = vec![0u8; length.next_multiple_of(8)];
        record[0..4].copy_from_slice(&(length as u32).to_ne_bytes());
        record[4..8].copy_from_slice(&kind.to_ne_bytes());
        for (at, field) in fields {
            record[*at..at + field.len()].copy_from_slice(field);
        }
        record
    }

    /// Builds a connection as the kernel lists it. Process 0 stands for the kernel itself.
    fn connection(process: u32, state: u32, generation: u64) -> Vec<u8> {
        let (port, local) = (445u16.to_be_bytes(), 51_515u16.to_be_bytes());
        let addresses = [
            (16, &port[..]),
            (18, &local),
            (28, &generation.to_ne_bytes()),
            (44, &[1]),
            (60, &[192, 168, 1, 5]),
        ];
        let (received, sent) = (91_234_567u64.to_ne_bytes(), 1_234_567u64.to_ne_bytes());
        [
            record(ADDRESSES, 104, &addresses),
            record(SOCKET, 104, &[(68, &process.to_ne_bytes())]),
            record(0x2, 32, &[]),
            record(0x4, 32, &[]),
            record(STATISTICS, 136, &[(16, &received), (32, &sent)]),
            record(PROTOCOL, 204, &[(36, &state.to_ne_bytes())]),
        ]
        .concat()
    }

    fn list(connections: &[Vec<u8>]) -> Vec<u8> {
        let mut mark = record(0, HEADER, &[]);
        mark[8..16].copy_from_slice(&100u64.to_ne_bytes());
        [mark.clone(), connections.concat(), mark].concat()
    }

    #[test]
    fn a_connection_of_the_kernel_has_server_and_bytes() {
        let found = pcblist(&list(&[connection(0, 4, 7)]));
        let expected = Connection {
            server: "192.168.1.5".parse().unwrap(),
            port: 445,
            local_port: 51_515,
            received: Some(91_234_567),
            sent: Some(1_234_567),
            retransmits: None,
            round_trip_us: None,
            idle_ms: None,
            tcp: TcpCounters::default(),
        };
        assert_eq!(found, [expected]);
    }

    #[test]
    fn other_processes_closed_and_newer_connections_are_left_out() {
        let all = [connection(501, 4, 7), connection(0, 1, 7), connection(0, 4, 101), connection(0, 4, 100)];
        assert_eq!(pcblist(&list(&all)).len(), 1);
    }

    #[test]
    fn a_record_of_an_unknown_kind_is_skipped() {
        let newer = record(0x40, 64, &[]);
        assert_eq!(pcblist(&list(&[newer.clone(), connection(0, 4, 7), newer])).len(), 1);
        assert_eq!(pcblist(&[]), []);
    }

    #[test]
    fn a_connection_without_a_socket_shifts_no_statistics() {
        let mut without_socket = connection(0, 4, 7);
        // As the kernel writes it: records of kind 0 in place of the socket's buffers.
        let buffers = 104 + 104;
        for at in [buffers, buffers + 32] {
            without_socket[at + 4..at + 8].copy_from_slice(&0u32.to_ne_bytes());
        }
        let mut second = connection(0, 4, 8);
        let statistics = buffers + 2 * 32;
        second[statistics + 16..statistics + 24].copy_from_slice(&7u64.to_ne_bytes());
        let received: Vec<_> =
            pcblist(&list(&[without_socket, second])).iter().map(|found| found.received).collect();
        assert_eq!(received, [Some(7)], "only the second connection has statistics");
    }

    proptest! {
        #[test]
        fn a_list_cut_anywhere_is_read_up_to_there(cut in 0usize..1400) {
            let whole = list(&[connection(0, 4, 7), connection(0, 4, 8)]);
            prop_assert!(pcblist(&whole[..cut.min(whole.len())]).len() <= 2);
        }
    }
}
