//! Builds the value of `net.inet.tcp.pcblist_n` from Apple's structs (xnu bsd/netinet/in_pcblist.c, `get_pcblist_n`). The
//! headers pack them to four bytes.

#![allow(missing_docs, reason = "the fields are those of Apple's headers, which each struct names")]

use std::mem::{offset_of, size_of};
use std::net::IpAddr;

/// Begin and end of the list (bsd/netinet/in_pcb.h:572).
#[derive(Clone, Copy, Default)]
#[repr(C, packed(4))]
pub struct xinpgen {
    pub xig_len: u32,
    pub xig_count: u32,
    pub xig_gen: u64,
    pub xig_sogen: u64,
}

/// Addresses of a connection (bsd/netinet/in_pcb.h:537).
#[derive(Clone, Copy, Default)]
#[repr(C, packed(4))]
pub struct xinpcb_n {
    pub xi_len: u32,
    pub xi_kind: u32,
    pub xi_inpp: u64,
    pub inp_fport: [u8; 2],
    pub inp_lport: [u8; 2],
    pub inp_ppcb: u64,
    pub inp_gencnt: u64,
    pub inp_flags: i32,
    pub inp_flow: u32,
    pub inp_vflag: u8,
    pub inp_ip_ttl: u8,
    pub inp_ip_p: u8,
    /// `inp_dependfaddr`, a union of an `in6_addr`, which C aligns to four bytes.
    pub foreign: [u32; 4],
    pub local: [u32; 4],
    pub inp4_ip_tos: u8,
    pub inp_depend6: [u32; 3],
    pub inp_flowhash: u32,
    pub inp_flags2: u32,
}

/// Socket of a connection (bsd/sys/socketvar.h:500).
#[derive(Clone, Copy, Default)]
#[repr(C, packed(4))]
pub struct xsocket_n {
    pub xso_len: u32,
    pub xso_kind: u32,
    pub xso_so: u64,
    pub so_type: i16,
    pub so_options: u32,
    pub so_linger: i16,
    pub so_state: i16,
    pub so_pcb: u64,
    pub xso_protocol: i32,
    pub xso_family: i32,
    pub so_queues: [i16; 4],
    pub so_error: u16,
    pub so_pgid: i32,
    pub so_oobmark: u32,
    pub so_uid: u32,
    pub so_last_pid: i32,
    pub so_e_pid: i32,
    pub so_gencnt: u64,
    pub so_flags: u32,
    pub so_flags1: u32,
    pub so_usecount: i32,
    pub so_retaincnt: i32,
    pub xso_filter_flags: u32,
}

/// Traffic of a socket in four classes: packets and bytes received, packets and bytes sent (bsd/sys/socketvar.h:549).
#[derive(Clone, Copy, Default)]
#[repr(C, packed(4))]
pub struct xsockstat_n {
    pub xst_len: u32,
    pub xst_kind: u32,
    pub xst_tc_stats: [[u64; 4]; 4],
}

/// Beginning of the state of a TCP connection (bsd/netinet/tcp_var.h:1615).
#[derive(Clone, Copy, Default)]
#[repr(C, packed(4))]
pub struct xtcpcb_n {
    pub xt_len: u32,
    pub xt_kind: u32,
    pub t_segq: u64,
    pub t_dupacks: i32,
    pub t_timer: [i32; 4],
    pub t_state: i32,
}

// Offsets that the parser of longhaul uses.
const _: () = assert!(size_of::<xinpgen>() == 24 && offset_of!(xinpgen, xig_gen) == 8);
const _: () = assert!(size_of::<xinpcb_n>() == 104 && size_of::<xsocket_n>() == 104);
const _: () = assert!(offset_of!(xinpcb_n, inp_fport) == 16 && offset_of!(xinpcb_n, inp_lport) == 18);
const _: () = assert!(offset_of!(xinpcb_n, inp_gencnt) == 28 && offset_of!(xinpcb_n, inp_vflag) == 44);
const _: () = assert!(offset_of!(xinpcb_n, foreign) == 48 && offset_of!(xsocket_n, so_last_pid) == 68);
const _: () = assert!(size_of::<xsockstat_n>() == 136 && offset_of!(xtcpcb_n, t_state) == 36);

/// Generation of the list; a newer connection is not counted.
const GENERATION: u64 = 100;
/// Length of `xtcpcb_n` as a whole, and of `xsockbuf_n`.
const TCPCB_BYTES: usize = 204;
const SOCKBUF_BYTES: usize = 32;

/// Connection in the list.
#[derive(Debug, Clone, Copy)]
pub struct ListedConnection {
    /// Address and port of the server.
    pub server: (IpAddr, u16),
    /// Bytes received and sent.
    pub bytes: [u64; 2],
    /// Process that used the socket last; 0 for the kernel.
    pub process: i32,
    /// State: 4 is established.
    pub state: i32,
}

/// Returns the value of the sysctl for these connections.
pub fn pcblist(connections: &[ListedConnection]) -> Vec<u8> {
    let count = connections.len() as u32;
    let mark = xinpgen { xig_len: 24, xig_count: count, xig_gen: GENERATION, xig_sogen: 1 };
    let mut list = vec![];
    add(&mut list, &mark, size_of::<xinpgen>());
    for connection in connections {
        add_connection(&mut list, connection);
    }
    add(&mut list, &mark, size_of::<xinpgen>());
    list
}

fn add_connection(list: &mut Vec<u8>, connection: &ListedConnection) {
    let (address, port) = connection.server;
    let mut inpcb = xinpcb_n { xi_len: 104, xi_kind: 0x10, inp_gencnt: 7, ..Default::default() };
    inpcb.inp_fport = port.to_be_bytes();
    inpcb.inp_lport = 51_515u16.to_be_bytes();
    (inpcb.inp_vflag, inpcb.foreign) = match address {
        IpAddr::V4(address) => (1, [0, 0, 0, u32::from_ne_bytes(address.octets())]),
        IpAddr::V6(address) => (2, words(address.octets())),
    };
    add(list, &inpcb, 104);
    add(
        list,
        &xsocket_n { xso_len: 104, xso_kind: 1, so_last_pid: connection.process, ..Default::default() },
        104,
    );
    for kind in [0x2u32, 0x4] {
        add(list, &[SOCKBUF_BYTES as u32, kind], SOCKBUF_BYTES);
    }
    let [received, sent] = connection.bytes;
    let traffic = [[1, received, 1, sent], [0; 4], [0; 4], [0; 4]];
    add(list, &xsockstat_n { xst_len: 136, xst_kind: 8, xst_tc_stats: traffic }, 136);
    let state = connection.state;
    add(list, &xtcpcb_n { xt_len: 204, xt_kind: 0x20, t_state: state, ..Default::default() }, TCPCB_BYTES);
}

fn words(bytes: [u8; 16]) -> [u32; 4] {
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    words
}

/// Adds a record, filled up to its length and then to eight bytes.
fn add<T: Copy>(list: &mut Vec<u8>, record: &T, length: usize) {
    let begin = list.len();
    list.resize(begin + length.next_multiple_of(8), 0);
    let copied = size_of::<T>().min(length);
    // SAFETY: both parts have this many bytes. Padding between fields may be uninitialized, so the bytes of the record are
    // copied without being read as numbers.
    unsafe {
        std::ptr::copy_nonoverlapping((&raw const *record).cast(), list.as_mut_ptr().add(begin), copied)
    };
}
