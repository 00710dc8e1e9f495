//! Pure parsers of what operating systems say: bytes or text in, facts out. No system call, no `cfg`, no panic.

mod bulk;
mod bytes;
mod cifs;
mod dirents;
mod diskutil;
mod facts;
mod gvfs;
mod host;
mod interfaces;
mod link;
mod mountinfo;
mod mountstats;
mod multichannel;
mod nfsstat;
mod options;
mod pcblist;
mod pmset;
mod proc;
mod routes;
mod smbutil;
mod sockets;
mod source;
mod statfs;
mod thermal;
mod volumes;

pub use bulk::{ERROR as BULK_ERROR, bulk, bulk_length, finder_info};
pub use cifs::{CifsShare, CifsStatistics, cifs_dialects, cifs_stats};
pub use dirents::dirents;
pub use diskutil::diskutil_spins;
pub use facts::{named_lines, settings, tmutil_destinations};
pub use gvfs::protocol_below;
pub use host::{is_hot, link_kind, memory_pressure, pmset_low_power, pmset_percent, tmutil_running};
pub use interfaces::{InterfaceCounters, ifmib, net_dev, wireless_dbm};
pub use link::{HardwarePort, Interface, hardware_ports, ifconfig, route_interface};
pub use mountinfo::{askable, asking_is_local, mountinfo};
pub use mountstats::{NfsOperations, NfsStatistics, mountstats};
pub use multichannel::{SmbSession, multichannel};
pub use nfsstat::{NfsClient, NfsMount, nfsstat, nfsstat_at, nfsstat_client};
pub use options::protocol_with;
pub use pcblist::pcblist;
pub use pmset::pmset;
pub use proc::{power_supplies, process_disk_bytes, status_peak_bytes};
pub use routes::{default_route, ipv6_route_to, route_to};
pub use smbutil::smbutil;
pub use sockets::{Connection, Dumped, socket_request, sockets};
pub use source::{percent_decoded, server};
pub use statfs::statfs;
pub use thermal::{Heat, is_heavy_pressure, is_too_hot, pmset_heat};
pub use volumes::{binary_plist_text, with_data_volume};

use std::ffi::CStr;

/// Length of the Finder info of a file or folder, in bytes.
pub const FINDER_INFO_BYTES: usize = 32;

/// Characters of a first line that are shown.
const LONGEST_LINE: usize = 120;

/// The first line that says something, by which an output that is not known is shown; `None` where none does.
pub fn first_line(output: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(output);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    Some(line.chars().take(LONGEST_LINE).map(shown).collect())
}

/// What kind of thing a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A device, socket or pipe.
    Other,
    /// The file system did not say.
    Unknown,
}

/// One name of a folder listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The name.
    pub name: &'a CStr,
    /// What it stands for.
    pub kind: EntryKind,
    /// Its attributes, where the listing brings them along.
    pub attributes: Option<Attributes>,
}

/// What a name stands for, in full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// Its kind.
    pub kind: EntryKind,
    /// Its size in bytes; 0 for a folder in a listing on macOS, which gives folders no size.
    pub size: u64,
    /// When its content last changed, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// Its permission bits.
    pub mode: u16,
}
