//! State of the machine during a measurement, on Linux, and the processor times of this process and of the threads of
//! the kernel that work for mounts. The mount table is watched with poll(2) on `/proc/self/mountinfo`, because
//! `notify` watches only files and folders.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::ClockId;

use super::common_facts::common_facts;
use super::keep_awake::KeepAwake;
use super::linux::{clock_ns, power_supply};
use super::linux_counters::open_netlink_socket;
use super::types::{MountEvent, ProcessorTimes, System, Tool};
use crate::parse::{self, BatteryCharge, MachineIdFile};
use longhaul_model::{Mount, NetworkLink};

/// Operating system of this build: Linux.
pub const SYSTEM: System = System::Linux;

/// Tools that the self-check runs: none on Linux, where files contain what the tools of a Mac print.
pub const TOOLS: &[Tool] = &[];

/// Runs no tool and returns `None`: see [`TOOLS`].
pub fn run_tool(_tool: &Tool) -> Option<Vec<u8>> {
    None
}

fn text(path: impl AsRef<Path>) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

fn number<T: std::str::FromStr>(path: impl AsRef<Path>) -> Option<T> {
    text(path)?.trim().parse().ok()
}

fn entries(folder: &str, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return vec![] };
    let paths = entries.flatten().map(|entry| entry.path());
    paths
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix)))
        .collect()
}

/// Files that Podman and Docker put into their containers.
const CONTAINER_FILES: [&str; 2] = ["/run/.containerenv", "/.dockerenv"];

/// Returns the id of this installation of the system, from `/etc/machine-id`; `None` if there is none that stays the same after a
/// restart. It is confidential: only a salted digest of it may be stored (machine-id(5)).
pub fn host_id() -> Option<String> {
    let (text, table) = (text(MachineIdFile::PATH)?, std::fs::read("/proc/self/mountinfo").ok()?);
    let mounts = parse::mountinfo(&table);
    let file = MachineIdFile {
        text: &text,
        mounts: &mounts,
        is_in_container: CONTAINER_FILES.iter().any(|path| Path::new(path).exists()),
    };
    file.lasting_id()
}

/// Returns the charge of the machine's batteries in percent, from `/sys/class/power_supply`.
pub fn battery_percent() -> Option<f64> {
    let supplies = entries("/sys/class/power_supply", "");
    let batteries = supplies.iter().filter(|path| power_supply(path).is_battery_of_machine());
    let charges: Vec<BatteryCharge> = batteries.map(|path| battery_charge(path)).collect();
    parse::batteries_percent(&charges)
}

fn battery_charge(battery: &Path) -> BatteryCharge {
    let value = |name: &str| number(battery.join(name));
    BatteryCharge {
        energy_now: value("energy_now"),
        energy_full: value("energy_full"),
        charge_now: value("charge_now"),
        charge_full: value("charge_full"),
        capacity: value("capacity"),
    }
}

/// Returns `None`: a Linux desktop does not sleep on mains power by default, and the way to prevent sleep
/// differs between desktops.
pub fn keep_awake() -> Option<KeepAwake> {
    None
}

/// Returns `None`: only a Mac wakes up for some work without its display.
pub fn is_dark_wake() -> Option<bool> {
    None
}

/// Returns whether the user enabled power saving: the ACPI platform profile is `low-power`
/// (sysfs-platform_profile).
pub fn low_power_mode() -> Option<bool> {
    text("/sys/firmware/acpi/platform_profile").map(|profile| profile.trim() == "low-power")
}

/// Returns whether a thermal zone has reached the temperature at which the machine throttles; `None` without
/// thermal zones.
pub fn is_hot() -> Option<bool> {
    let zones = entries("/sys/class/thermal", "thermal_zone");
    let hot = |zone: &PathBuf| {
        let degrees = number(zone.join("temp"))?;
        let trips = (0..12).filter_map(|trip| {
            let kind = text(zone.join(format!("trip_point_{trip}_type")))?;
            Some((kind, number(zone.join(format!("trip_point_{trip}_temp")))?))
        });
        Some(parse::is_hot(degrees, &trips.collect::<Vec<_>>()))
    };
    zones.iter().filter_map(hot).reduce(|any, one| any || one)
}

/// Returns `None`: Linux has no Time Machine.
pub fn backup_running() -> Option<bool> {
    None
}

/// Returns the interface that leads to a server, as the kernel tells it, or that of the default route, from `/proc/net/route`.
/// No packet is sent.
pub fn link_to(server: Option<IpAddr>) -> Option<NetworkLink> {
    let name = match server {
        None => parse::default_route(&text("/proc/net/route")?)?,
        Some(server) => interface_name(interface_index_to(server.to_canonical()).ok()??)?,
    };
    let folder = Path::new("/sys/class/net").join(&name);
    let is_wireless = folder.join("wireless").exists() || folder.join("phy80211").exists();
    Some(NetworkLink {
        kind: parse::link_kind(&name, number(folder.join("type")), Some(is_wireless)),
        mtu: number(folder.join("mtu")),
        // An unknown speed is reported as zero or a negative number.
        megabits: number::<i64>(folder.join("speed"))
            .and_then(|speed| u64::try_from(speed).ok())
            .filter(|speed| *speed > 0),
        name,
    })
}

/// Returns the index of the interface that leads to a server; `None` without a route. `/proc/net/route` would not do: it has the
/// main table only (net/ipv4/fib_trie.c, `fib_route_seq_start`), but VPNs such as Tailscale add rules for tables of their own.
fn interface_index_to(server: IpAddr) -> io::Result<Option<u32>> {
    let mut socket = open_netlink_socket(libc::NETLINK_ROUTE)?;
    socket.write_all(&parse::route_request(server))?;
    // An answer takes less than 200 bytes.
    let mut answer = [0; 4096];
    let length = socket.read(&mut answer)?;
    Ok(parse::route_interface_index(&answer[..length]))
}

/// Returns the name of the interface with this index, from `/sys/class/net`.
fn interface_name(index: u32) -> Option<String> {
    let interfaces = entries("/sys/class/net", "");
    let folder = interfaces.iter().find(|folder| number::<u32>(folder.join("ifindex")) == Some(index))?;
    Some(folder.file_name()?.to_string_lossy().into_owned())
}

/// Kernel settings that may change results, as names below `/proc/sys` (Documentation/admin-guide/sysctl/).
const KERNEL_SETTINGS: [&str; 15] = [
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
/// Configuration files for mounting shares: nfs.conf(5), nfsmount.conf(5).
const MOUNT_CONFIG_FILES: [&str; 2] = ["/etc/nfs.conf", "/etc/nfsmount.conf"];

/// Returns facts about the machine for the event log: values that change seldom and may change results.
pub fn machine_facts() -> BTreeMap<String, String> {
    let mut facts = common_facts(link_to(None), &MOUNT_CONFIG_FILES.map(Into::into));
    for name in KERNEL_SETTINGS {
        facts.extend(text(Path::new("/proc/sys").join(name)).map(|value| {
            let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
            (name.replace('/', "."), value)
        }));
    }
    facts
}

/// Returns whether the disk of a local file system is rotational; `None` if unknown. Queries the kernel, not
/// the disk.
pub fn is_rotational(mount: &Mount) -> Option<bool> {
    let by_number = mount.device.as_ref().map(|number| Path::new("/sys/dev/block").join(number));
    // A file system that can have several disks, such as btrfs, has a number of its own: only the name leads to a disk.
    by_number
        .and_then(|device| device_is_rotational(&device))
        .or_else(|| device_is_rotational(&Path::new("/sys/class/block").join(device_name(&mount.source)?)))
}

/// Returns the kernel's name of a device below `/dev`. Names in `/dev/mapper` are links to it.
fn device_name(source: &str) -> Option<OsString> {
    let path = Some(Path::new(source)).filter(|path| path.starts_with("/dev"))?;
    std::fs::canonicalize(path).as_deref().unwrap_or(path).file_name().map(OsStr::to_owned)
}

/// Returns `queue/rotational` (Documentation/block/queue-sysfs.rst) of a device, or of the disk that holds the partition.
fn device_is_rotational(device: &Path) -> Option<bool> {
    let rotational = |folder: &Path| number::<u8>(folder.join("queue/rotational"));
    let of_disk = || rotational(std::fs::canonicalize(device).ok()?.parent()?);
    rotational(device).or_else(of_disk).map(|flag| flag == 1)
}

/// Returns the signal strength in dBm of the interface of the default route, from `/proc/net/wireless`, which
/// current drivers fill through cfg80211; `None` if the interface is not wireless.
pub fn signal_dbm() -> Option<i32> {
    let interface = parse::default_route(&text("/proc/net/route")?)?;
    parse::wireless_dbm(&text("/proc/net/wireless")?, &interface)
}

/// Returns the threads of the kernel that handle answers of file servers. Reads the names of all processes, so it is called
/// once before a run.
pub fn answer_threads() -> Vec<u32> {
    let number = |process: PathBuf| process.file_name()?.to_str()?.parse::<u32>().ok();
    let handles = |process: &u32| {
        text(format!("/proc/{process}/comm")).is_some_and(|name| parse::handles_answers(&name))
    };
    entries("/proc", "").into_iter().filter_map(number).filter(handles).collect()
}

/// Returns the processor times until now. `kernel_threads` are those of [`answer_threads`]; one that has ended has no
/// further times.
pub fn processor_times(kernel_threads: &[u32]) -> ProcessorTimes {
    let used_ns = clock_ns(ClockId::ProcessCPUTime);
    let kernel: Option<u64> = kernel_threads
        .iter()
        .map(|thread| scheduler_times(Path::new(&format!("/proc/{thread}"))))
        .try_fold(0u64, |sum, times| {
            times.map(|(used, waited)| sum.saturating_add(used).saturating_add(waited))
        });
    ProcessorTimes {
        used_us: Some(used_ns / 1000),
        waited_us: waited_ns().map(|time| time / 1000),
        kernel_us: kernel.filter(|_| !kernel_threads.is_empty()).map(|time| time / 1000),
    }
}

/// Returns the time that the threads which this process has now waited for a processor: less than before if one ended. `None` if
/// the kernel does not count it.
fn waited_ns() -> Option<u64> {
    let threads = entries("/proc/self/task", "");
    threads
        .iter()
        .filter_map(|thread| scheduler_times(thread))
        .map(|(_, waited)| waited)
        .reduce(u64::saturating_add)
}

fn scheduler_times(thread: &Path) -> Option<(u64, u64)> {
    parse::scheduler_times(&text(thread.join("schedstat"))?)
}

/// Watch that reports changes of the mount table without accessing any mount.
pub struct MountWatch {
    table: File,
}

impl MountWatch {
    /// Starts to watch the mount table.
    ///
    /// # Errors
    ///
    /// If the mount table cannot be opened.
    pub fn new() -> io::Result<Self> {
        Ok(Self { table: File::open("/proc/self/mountinfo")? })
    }

    /// Waits for a change, at most for this time (without a limit for `None`), and returns it; `None` if there was
    /// none. After a change the kernel marks the table with POLLPRI and POLLERR until it has been polled once
    /// (fs/proc_namespace.c, `mounts_poll`).
    ///
    /// # Errors
    ///
    /// If the `poll` call fails.
    pub fn wait(&self, limit: Option<Duration>) -> io::Result<Option<MountEvent>> {
        let limit = limit.map(|limit| Timespec {
            tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: limit.subsec_nanos().into(),
        });
        let mut table = [PollFd::new(&self.table, PollFlags::PRI)];
        match poll(&mut table, limit.as_ref()) {
            Err(rustix::io::Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
            Ok(changed) => Ok((changed > 0).then_some(MountEvent::Changed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::Protocol;

    #[test]
    fn disk_is_found_by_its_number_and_by_its_name() {
        for disk in entries("/sys/class/block", "") {
            // A path to a disk with several paths has no number.
            let Some(number) = text(disk.join("dev")) else { continue };
            let known = device_is_rotational(&disk);
            let with = |source: &str| Mount::new("/", source, Protocol::Local("ext4".to_owned()));
            let device = Some(number.trim().to_owned());
            let by_number = is_rotational(&Mount { device, ..with("/dev/root") });
            let name = disk.file_name().unwrap().to_string_lossy();
            assert_eq!((by_number, is_rotational(&with(&format!("/dev/{name}")))), (known, known), "{name}");
        }
    }

    #[test]
    fn an_own_address_is_reached_through_the_loopback() {
        let link = link_to(Some("127.0.0.5".parse().unwrap())).unwrap();
        assert_eq!(link.name, "lo");
    }

    #[test]
    fn partition_is_as_rotational_as_its_disk() {
        let folder = tempfile::tempdir().unwrap();
        let (disk, number) = (folder.path().join("sda"), folder.path().join("8:1"));
        std::fs::create_dir_all(disk.join("queue")).unwrap();
        std::fs::create_dir(disk.join("sda1")).unwrap();
        std::fs::write(disk.join("queue/rotational"), "0\n").unwrap();
        std::os::unix::fs::symlink(disk.join("sda1"), &number).unwrap();
        assert_eq!((device_is_rotational(&number), device_is_rotational(&disk)), (Some(false), Some(false)));
    }

    #[test]
    fn a_busy_process_uses_processor_time() {
        let before = processor_times(&[]);
        std::hint::black_box((0..5_000_000u64).fold(1, |a, b| std::hint::black_box(a ^ b)));
        let after = processor_times(&[]);
        assert!(after.used_us > before.used_us);
        // Other tests end their threads meanwhile, so that the sum may have become smaller.
        assert!(before.waited_us.is_some() && after.waited_us.is_some());
        assert_eq!(after.kernel_us, None, "no thread of the kernel is known");
    }

    #[test]
    fn a_thread_that_does_not_exist_makes_the_sum_unknown() {
        assert!(processor_times(&[std::process::id()]).kernel_us.is_some());
        assert_eq!(processor_times(&[std::process::id(), u32::MAX]).kernel_us, None);
    }
}
