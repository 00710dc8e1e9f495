//! Facts about the machine: load, power, network and mounts. Never reads a disk,
//! because that can hang on a dead share.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;

use longhaul_measure::platform;
use longhaul_model::{MachineSnapshot, Mount, NetworkLink, Protocol};
use sysinfo::{CpuRefreshKind, Networks, System};

/// A source of facts about the machine, replaced by a simulated machine in tests.
pub trait Host: Send {
    /// Returns the current state of the machine and its network link to these servers.
    /// Rates cover the time since the last call.
    fn snapshot(&mut self, servers: &BTreeSet<ServerAddress>) -> MachineSnapshot;

    /// Returns whether a backup runs now; `None` if the system does not say.
    fn backup_running(&mut self) -> Option<bool>;

    /// Returns the mount table, without accessing any mount.
    ///
    /// # Errors
    ///
    /// If the operating system does not return the mount table.
    fn mounts(&mut self) -> io::Result<Vec<Mount>>;
}

/// Address of the server of a mounted target, as far as it leads to a network link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServerAddress {
    /// Address with a route.
    Known(IpAddr),
    /// Address that no worker has found yet. The mount table of a Mac has no addresses (xnu bsd/sys/mount.h:110,
    /// `struct statfs`), and an automount has none while it is idle.
    Pending,
    /// Server without a known route: one of AFP, for whose address longhaul has no source, or one with a link-local
    /// address, which has a route only together with its interface (network_cmds route.tproj/route.c:1077-1084),
    /// and that is not known.
    Unroutable,
}

impl ServerAddress {
    /// Returns the address of a mount's server. `None`: a local file system, or a protocol that mostly leads to
    /// the Internet, and so over the default route.
    pub fn of(mount: &Mount) -> Option<Self> {
        match (&mount.protocol, mount.server) {
            (_, Some(IpAddr::V6(address))) if address.is_unicast_link_local() => Some(Self::Unroutable),
            (_, Some(address)) => Some(Self::Known(address)),
            (Protocol::Nfs(_) | Protocol::Smb(_), None) => Some(Self::Pending),
            (protocol, None) if protocol.is_automount() => Some(Self::Pending),
            (Protocol::Afp, None) => Some(Self::Unroutable),
            (
                Protocol::Webdav
                | Protocol::Sftp
                | Protocol::Fuse(_)
                | Protocol::Local(_)
                | Protocol::Other(_),
                None,
            ) => None,
        }
    }
}

/// Bytes received and sent, by interface name.
type InterfaceBytes = BTreeMap<String, (u64, u64)>;

/// The machine that the service runs on.
#[derive(Default)]
pub struct SystemHost {
    metrics: Metrics,
    last_reading: Option<(u64, InterfaceBytes)>,
}

impl Host for SystemHost {
    fn backup_running(&mut self) -> Option<bool> {
        platform::backup_running()
    }

    fn snapshot(&mut self, servers: &BTreeSet<ServerAddress>) -> MachineSnapshot {
        let links = links_to(servers, platform::link_to);
        let now_ns = platform::monotonic_ns();
        let interfaces = self.metrics.interfaces();
        // Unknown in the first snapshot, because a rate needs two readings.
        let traffic = self.last_reading.as_ref().and_then(|(last_ns, last)| {
            let seconds = now_ns.saturating_sub(*last_ns) as f64 / 1e9;
            traffic_rate(last, &interfaces, &link_names(&links), seconds)
        });
        self.last_reading = Some((now_ns, interfaces));
        MachineSnapshot {
            load_average: platform::load_average(),
            processor_share: self.metrics.processor_share(),
            memory_available: memory_available(),
            power: platform::power(),
            battery_percent: platform::battery_percent(),
            low_power_mode: platform::low_power_mode(),
            is_dark_wake: platform::is_dark_wake(),
            is_hot: platform::is_hot(),
            backup_running: platform::backup_running(),
            link: NetworkLink::merged(links),
            traffic,
        }
    }

    fn mounts(&mut self) -> io::Result<Vec<Mount>> {
        platform::mounts()
    }
}

/// Returns the network links to the servers of these that have a known address; empty if none has. Without a remote server, returns
/// the default link: the answer of `link_to` without an address.
pub fn links_to(
    servers: &BTreeSet<ServerAddress>,
    link_to: impl Fn(Option<IpAddr>) -> Option<NetworkLink>,
) -> Vec<NetworkLink> {
    let is_remote = |server: &&ServerAddress| match server {
        ServerAddress::Known(address) => !address.is_loopback(),
        ServerAddress::Pending | ServerAddress::Unroutable => true,
    };
    let mut remote = servers.iter().filter(is_remote).peekable();
    // The default route may lead elsewhere, such as into a VPN, while the server is in the local network.
    if remote.peek().is_none() {
        return link_to(None).into_iter().collect();
    }
    let known = remote.filter_map(|server| match server {
        ServerAddress::Known(address) => Some(*address),
        ServerAddress::Pending | ServerAddress::Unroutable => None,
    });
    known.filter_map(|address| link_to(Some(address))).collect()
}

fn link_names(links: &[NetworkLink]) -> BTreeSet<&str> {
    links.iter().map(|link| link.name.as_str()).collect()
}

/// Returns the traffic over the interfaces of these names in bytes a second. If no name is given, returns that of
/// the interface with the most traffic, except for the loopback. Not all interfaces are added up because a bridge
/// counts its members' traffic again, and a tunnel that of the interface below (xnu bsd/net/if_bridge.c:5361,
/// if_utun.c:2692). `None`: less than a second has passed, too short for a rate.
fn traffic_rate(
    last: &InterfaceBytes,
    now: &InterfaceBytes,
    names: &BTreeSet<&str>,
    seconds: f64,
) -> Option<f64> {
    let is_counted = |name: &str| match names.is_empty() {
        true => name != "lo" && name != "lo0",
        false => names.contains(name),
    };
    let bytes = now.iter().filter(|(name, _)| is_counted(name)).map(|(name, (received, sent))| {
        let (last_received, last_sent) = last.get(name).copied().unwrap_or((*received, *sent));
        received.saturating_sub(last_received) + sent.saturating_sub(last_sent)
    });
    let bytes: u64 = if names.is_empty() { bytes.max().unwrap_or_default() } else { bytes.sum() };
    (seconds >= 1.0).then(|| bytes as f64 / seconds)
}

/// Returns the number of logical processors. `None`: unknown.
pub fn processors() -> Option<u32> {
    std::thread::available_parallelism().ok().and_then(|count| u32::try_from(count.get()).ok())
}

/// Returns the size of the machine's memory in bytes. `None`: unknown.
pub fn memory_total() -> Option<u64> {
    memory().map(|(_, total)| total)
}

/// Returns the available memory in bytes. `None`: unknown.
pub fn memory_available() -> Option<u64> {
    memory().map(|(available, _)| available)
}

/// Returns the available and the total memory in bytes.
fn memory() -> Option<(u64, u64)> {
    let mut system = System::new().ok()?;
    system.refresh_memory();
    Some((system.available_memory(), system.total_memory())).filter(|(available, _)| *available > 0)
}

/// System counters that are kept between calls, because rates need the previous values. Cheap enough to read every few
/// seconds.
#[derive(Default)]
pub struct Metrics {
    processors: Option<System>,
    networks: Option<Networks>,
}

impl Metrics {
    /// Returns the share of processor time used since the last call, from 0 to 1. `None` in the first call.
    pub fn processor_share(&mut self) -> Option<f64> {
        let first = self.processors.is_none();
        if first {
            self.processors = System::new().ok();
        }
        let system = self.processors.as_mut()?;
        system.refresh_cpu_specifics(CpuRefreshKind::nothing().with_usage());
        let share = f64::from(system.global_cpu_usage()) / 100.0;
        (!first && share.is_finite()).then(|| share.clamp(0.0, 1.0))
    }

    /// Returns the bytes received and sent by each interface.
    fn interfaces(&mut self) -> InterfaceBytes {
        if self.networks.is_none() {
            self.networks = Networks::new().ok();
        }
        let Some(networks) = self.networks.as_mut() else { return InterfaceBytes::new() };
        networks.refresh(true);
        let counts = networks.iter().map(|(name, data)| {
            (name.to_string_lossy().into_owned(), (data.total_received(), data.total_transmitted()))
        });
        counts.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_counts_the_network_but_not_the_loopback() {
        let counts =
            |eth: u64, lo: u64| BTreeMap::from([("eth0".to_owned(), (eth, 0)), ("lo".to_owned(), (lo, lo))]);
        let all = BTreeSet::new();
        let rate =
            |last: &InterfaceBytes, now: &InterfaceBytes, seconds| traffic_rate(last, now, &all, seconds);
        assert_eq!(rate(&counts(1000, 0), &counts(7000, 9_999_999), 2.0), Some(3000.0));
        assert_eq!(rate(&counts(1000, 0), &counts(0, 0), 2.0), Some(0.0), "a counter that was reset");
        assert_eq!(rate(&counts(0, 0), &counts(7000, 0), 0.5), None);
        assert_eq!(rate(&BTreeMap::new(), &counts(7000, 0), 2.0), Some(0.0), "an interface that came up");
    }

    #[test]
    fn tunnel_and_the_interface_below_it_count_once() {
        let counts = |bytes| BTreeMap::from(["en0", "utun3"].map(|name| (name.to_owned(), (bytes, 0))));
        let names = BTreeSet::from(["utun3"]);
        assert_eq!(traffic_rate(&counts(0), &counts(6000), &names, 2.0), Some(3000.0));
    }

    #[test]
    fn busiest_interface_counts_if_no_name_is_known() {
        let counts = |share: u64| {
            let bytes = [("lo0", 9000), ("en0", 6000), ("bridge0", 6000), ("utun3", 5000)];
            BTreeMap::from(bytes.map(|(name, bytes)| (name.to_owned(), (bytes * share, 0))))
        };
        assert_eq!(traffic_rate(&counts(0), &counts(1), &BTreeSet::new(), 2.0), Some(3000.0));
    }

    /// Returns the names of the links to these servers. The default route leads into a VPN, 192.0.2.5 is on a cable.
    fn names_of_links_to(servers: &[ServerAddress]) -> Vec<String> {
        let link_to = |server: Option<IpAddr>| {
            let name = match server.map(|address| address.to_string()).as_deref() {
                Some("192.0.2.5") => "en7",
                Some(_) => return None,
                None => "utun4",
            };
            Some(NetworkLink { name: name.to_owned(), ..NetworkLink::default() })
        };
        let links = links_to(&servers.iter().copied().collect(), link_to);
        links.into_iter().map(|link| link.name).collect()
    }

    #[test]
    fn default_link_is_not_taken_for_that_to_an_unknown_server() {
        let [nas, this_machine] =
            ["192.0.2.5", "127.0.0.1"].map(|address| ServerAddress::Known(address.parse().unwrap()));
        assert_eq!(names_of_links_to(&[nas, this_machine]), ["en7"]);
        let none: [&str; 0] = [];
        let without_route = ServerAddress::Known("192.0.2.99".parse().unwrap());
        assert_eq!(names_of_links_to(&[without_route]), none);
        assert_eq!(names_of_links_to(&[ServerAddress::Pending]), none);
        assert_eq!(names_of_links_to(&[ServerAddress::Unroutable]), none);
        assert_eq!(names_of_links_to(&[nas, ServerAddress::Pending]), ["en7"]);
        assert_eq!(names_of_links_to(&[nas, ServerAddress::Unroutable]), ["en7"]);
        assert_eq!(names_of_links_to(&[]), ["utun4"]);
        assert_eq!(names_of_links_to(&[this_machine]), ["utun4"]);
    }

    #[test]
    fn link_local_address_is_no_way_to_a_server() {
        let of = |protocol: Protocol, server: &str| {
            ServerAddress::of(&Mount { server: server.parse().ok(), ..Mount::new("/m", "nas:/x", protocol) })
        };
        let known = |address: &str| Some(ServerAddress::Known(address.parse().unwrap()));
        assert_eq!(of(Protocol::Smb(None), "fe80::1"), Some(ServerAddress::Unroutable));
        assert_eq!(of(Protocol::Smb(None), "fd00::1"), known("fd00::1"));
        assert_eq!(of(Protocol::Nfs(None), ""), Some(ServerAddress::Pending));
        assert_eq!(of(Protocol::Other("autofs".into()), ""), Some(ServerAddress::Pending));
        assert_eq!(of(Protocol::Afp, ""), Some(ServerAddress::Unroutable));
        assert_eq!(of(Protocol::Local("apfs".into()), ""), None);
    }

    #[test]
    fn snapshot_and_mounts_of_this_machine_can_be_read() {
        let mut host = SystemHost::default();
        assert!(host.snapshot(&BTreeSet::new()).traffic.is_none(), "a rate needs two snapshots");
        assert!(host.mounts().is_ok());
    }
}
