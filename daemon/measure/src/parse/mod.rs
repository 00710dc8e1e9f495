//! Pure parsers for the output of operating systems: bytes or text in, facts out. No system call, no `cfg`,
//! no panic.

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
mod mount_source;
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
mod statfs;
mod thermal;
mod volumes;

pub use bulk::{ERROR as BULK_ERROR, bulk, bulk_length, finder_info};
pub use cifs::{CifsShare, CifsStatistics, cifs_dialects, cifs_stats};
pub use dirents::dirents;
pub use diskutil::diskutil_spins;
pub use facts::{colon_separated, settings, tmutil_destinations};
pub use gvfs::protocol_at;
pub use host::{is_hot, link_kind, memory_pressure, pmset_low_power, pmset_percent, tmutil_running};
pub use interfaces::{InterfaceCounters, ifmib, net_dev, wireless_dbm};
pub use link::{HardwarePort, InterfaceInfo, hardware_ports, ifconfig, route_interface};
pub use mount_source::{percent_decode, server_of_source};
pub use mountinfo::{is_statfs_local, mountinfo, safe_to_statfs};
pub use mountstats::{NfsOperations, NfsStatistics, mountstats};
pub use multichannel::{SmbSession, multichannel};
pub use nfsstat::{NfsMount, nfsstat, nfsstat_at};
pub use options::with_negotiated_version;
pub use pcblist::pcblist;
pub use pmset::pmset;
pub use proc::{power_supplies, process_disk_bytes, status_peak_bytes};
pub use routes::{default_route, ipv6_route_to, route_to};
pub use smbutil::smbutil;
pub use sockets::{Connection, SocketDump, socket_request, sockets};
pub use statfs::statfs;
pub use thermal::{ThermalState, is_heavy_pressure, is_too_hot, pmset_thermal_state};
pub use volumes::{binary_plist_text, with_data_volume};

use std::ffi::CStr;

/// Length of the Finder info of a file or folder, in bytes.
pub const FINDER_INFO_BYTES: usize = 32;

/// Maximum number of characters of a first line that are shown.
const MAX_LINE_CHARS: usize = 120;

/// Returns the first line that is not empty, which represents an unrecognized output in messages; `None` if
/// there is none.
pub fn first_line(output: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(output);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    Some(line.chars().take(MAX_LINE_CHARS).map(shown).collect())
}

/// Type of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Symlink,
    /// A device, socket or pipe.
    Other,
    /// Type that the file system did not report.
    Unknown,
}

/// Entry of a folder listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Name of the entry.
    pub name: &'a CStr,
    /// Type of the entry.
    pub kind: EntryKind,
    /// Attributes of the entry, if the listing contains them.
    pub attributes: Option<Attributes>,
}

/// Attributes of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// Type of the entry.
    pub kind: EntryKind,
    /// Size in bytes; 0 for a folder in a listing on macOS, which reports no size for folders.
    pub size: u64,
    /// Time at which the content last changed, in nanoseconds since 1970 UTC.
    pub modified_ns: i64,
    /// Permission bits of the entry.
    pub mode: u16,
}
