//! Pure parsers for the output of operating systems: bytes or text in, facts out. No system call, no `cfg`,
//! no panic.

mod bulk;
mod bytes;
mod cifs;
mod dirents;
mod entry;
mod facts;
mod first_line;
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
mod proc;
mod routes;
mod smbutil;
mod sockets;
mod statfs;
mod thermal;
mod volumes;

pub use bulk::{ERROR as BULK_ERROR, FINDER_INFO_BYTES, bulk, bulk_length, finder_info};
pub use cifs::{
    CifsConnection, CifsShare, CifsStatistics, cifs_connections, cifs_stats, directory_leases, is_same_share,
};
pub use dirents::dirents;
pub use entry::{Attributes, Entry, EntryKind};
pub use facts::{colon_separated, settings, tmutil_destinations};
pub use first_line::first_line;
pub use gvfs::protocol_at;
pub use host::{
    MachineIdFile, diskutil_spins, is_hot, link_kind, machine_id, pmset, pmset_dark_wake, pmset_low_power,
    pmset_percent, tmutil_running,
};
pub use interfaces::{InterfaceCounters, ifmib, net_dev, wireless_dbm};
pub use link::{HardwarePort, InterfaceInfo, hardware_ports, ifconfig, route_interface};
pub use mount_source::{percent_decode, server_name, server_of_source, share_option};
pub use mountinfo::{mountinfo, safe_to_statfs};
pub use mountstats::{NfsOperations, NfsStatistics, mountstats};
pub use multichannel::{SmbSession, multichannel};
pub use nfsstat::{NfsMount, nfsstat};
pub use options::with_negotiated_version;
pub use pcblist::pcblist;
pub use proc::{
    BatteryCharge, PowerSupply, batteries_percent, handles_answers, power_supplies, process_disk_bytes,
    scheduler_times, status_peak_bytes,
};
pub use routes::{default_route, route_interface_index, route_request};
pub use smbutil::smbutil;
pub use sockets::{Connection, SocketDump, socket_request, sockets};
pub use statfs::{is_guest_share, is_time_machine_mount, statfs};
pub use thermal::{ThermalState, is_heavy_pressure, is_too_hot, pmset_thermal_state};
pub use volumes::{binary_plist_text, with_data_volume};

#[cfg(test)]
mod tests;
