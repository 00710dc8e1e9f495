//! The machine around a measurement, on Linux.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::parse;
use crate::model::{Link, Mount};

fn text(path: impl AsRef<Path>) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

fn number<T: std::str::FromStr>(path: impl AsRef<Path>) -> Option<T> {
    text(path)?.trim().parse().ok()
}

fn entries(folder: &str, prefix: &str) -> Vec<std::path::PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return vec![] };
    let paths = entries.flatten().map(|entry| entry.path());
    paths
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix)))
        .collect()
}

/// Charge of the first battery in percent, from `/sys/class/power_supply/*/capacity`.
pub fn battery_percent() -> Option<f64> {
    let supplies = entries("/sys/class/power_supply", "");
    let is_battery =
        |path: &&std::path::PathBuf| text(path.join("type")).is_some_and(|kind| kind.trim() == "Battery");
    supplies.iter().filter(is_battery).find_map(|path| number(path.join("capacity")))
}

/// Whether the person asked the machine to save energy: the ACPI platform profile `low-power` (sysfs-platform_profile).
pub fn low_power_mode() -> Option<bool> {
    text("/sys/firmware/acpi/platform_profile").map(|profile| profile.trim() == "low-power")
}

/// Whether a thermal zone has reached the point at which the machine slows down; `None` without zones.
pub fn is_hot() -> Option<bool> {
    let zones = entries("/sys/class/thermal", "thermal_zone");
    let hot = |zone: &std::path::PathBuf| {
        let degrees = number(zone.join("temp"))?;
        let trips = (0..12).filter_map(|trip| {
            let kind = text(zone.join(format!("trip_point_{trip}_type")))?;
            Some((kind, number(zone.join(format!("trip_point_{trip}_temp")))?))
        });
        Some(parse::is_hot(degrees, &trips.collect::<Vec<_>>()))
    };
    zones.iter().filter_map(hot).reduce(|any, one| any || one)
}

/// There is no Time Machine here to ask.
pub fn backup_running() -> Option<bool> {
    None
}

/// Share of the last ten seconds in which something waited for memory.
pub fn memory_pressure() -> Option<f64> {
    parse::memory_pressure(&text("/proc/pressure/memory")?)
}

/// The interface that leads to a server, or to the network by default, from `/proc/net/route`, `/proc/net/ipv6_route` and
/// `/sys/class/net`. No packet is sent.
pub fn link_to(server: Option<IpAddr>) -> Option<Link> {
    let name = match server.map(|server| server.to_canonical()) {
        None => parse::default_route(&text("/proc/net/route")?)?,
        Some(IpAddr::V4(server)) => parse::route_to(&text("/proc/net/route")?, server)?,
        Some(IpAddr::V6(server)) => parse::ipv6_route_to(&text("/proc/net/ipv6_route")?, server)?,
    };
    let folder = Path::new("/sys/class/net").join(&name);
    let is_wireless = folder.join("wireless").exists() || folder.join("phy80211").exists();
    Some(Link {
        kind: parse::link_kind(&name, number(folder.join("type")), Some(is_wireless)),
        mtu: number(folder.join("mtu")),
        megabits: number::<i64>(folder.join("speed"))
            .and_then(|speed| u64::try_from(speed).ok())
            .filter(|speed| *speed > 0),
        name,
    })
}

/// What of the kernel's settings may change numbers: the names below `/proc/sys` (Documentation/admin-guide/sysctl/).
const SETTINGS: [&str; 15] = [
    "net/core/rmem_max",
    "net/core/wmem_max",
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_mtu_probing",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_sack",
    "net/ipv4/tcp_slow_start_after_idle",
    "net/ipv4/tcp_timestamps",
    "net/ipv4/tcp_window_scaling",
    "net/ipv4/tcp_wmem",
    "sunrpc/tcp_max_slot_table_entries",
    "sunrpc/tcp_slot_table_entries",
    "vm/dirty_background_ratio",
    "vm/dirty_ratio",
    "vm/vfs_cache_pressure",
];
/// Files that say how shares are mounted: nfs.conf(5), nfsmount.conf(5).
const FILES: [&str; 2] = ["/etc/nfs.conf", "/etc/nfsmount.conf"];

/// What the machine is like, for the journal: facts that change seldom and may change numbers.
pub fn machine_facts() -> BTreeMap<String, String> {
    let mut facts = super::common_facts(link_to(None), &FILES.map(Into::into));
    for name in SETTINGS {
        facts.extend(text(Path::new("/proc/sys").join(name)).map(|value| {
            let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
            (name.replace('/', "."), value)
        }));
    }
    facts
}

/// Whether the disk below a local file system spins; `None` where that cannot be told. Asks the kernel, not the disk:
/// `queue/rotational` of Documentation/block/queue-sysfs.rst, of the disk or of the one that the partition is on.
pub fn spins(mount: &Mount) -> Option<bool> {
    let device = Path::new(&mount.source).file_name().filter(|_| mount.source.starts_with("/dev/"))?;
    let folder = Path::new("/sys/class/block").join(device);
    let rotational = |folder: &Path| number::<u8>(folder.join("queue/rotational"));
    let of_disk = || rotational(std::fs::canonicalize(&folder).ok()?.parent()?);
    rotational(&folder).or_else(of_disk).map(|flag| flag == 1)
}

/// The signal in dBm of the interface of the default route, from `/proc/net/wireless`, which drivers of today fill through
/// cfg80211; `None` if it is no radio.
pub fn signal_dbm() -> Option<i32> {
    let interface = parse::default_route(&text("/proc/net/route")?)?;
    parse::wireless_dbm(&text("/proc/net/wireless")?, &interface)
}

/// Wakes whenever the mount table changes, without a look at any mount.
pub struct MountWatch {
    table: File,
}

impl MountWatch {
    /// Watches from now on.
    ///
    /// # Errors
    ///
    /// If the mount table cannot be opened.
    pub fn new() -> io::Result<Self> {
        Ok(Self { table: File::open("/proc/self/mountinfo")? })
    }

    /// Waits for a change, this long at most (for ever for `None`), and says whether there was one. The kernel marks the
    /// table with POLLPRI and POLLERR until it has been polled once (fs/proc_namespace.c, `mounts_poll`).
    ///
    /// # Errors
    ///
    /// If the system does not let itself be asked.
    pub fn wait(&self, limit: Option<Duration>) -> io::Result<bool> {
        let limit = limit.map(|limit| Timespec {
            tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: limit.subsec_nanos().into(),
        });
        let mut table = [PollFd::new(&self.table, PollFlags::PRI)];
        match poll(&mut table, limit.as_ref()) {
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
            Ok(changed) => Ok(changed > 0),
        }
    }
}
