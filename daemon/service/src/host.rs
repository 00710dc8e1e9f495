//! What the machine says about itself: never its disks, which can hang on a dead share.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;

use longhaul_measure::model::{Conditions, Link, Mount, Surroundings};
use longhaul_measure::platform;

/// What this process knows of memory and processors and a worker does not ask.
pub struct Memory {
    processors: Option<u32>,
    available: Option<u64>,
}

impl Memory {
    /// As it is now.
    pub fn now() -> Self {
        let processors = std::thread::available_parallelism().ok();
        Self {
            processors: processors.and_then(|count| u32::try_from(count.get()).ok()),
            available: metrics::memory().map(|(available, _)| available),
        }
    }

    /// Adds it to the conditions of a run.
    pub fn add_to(&self, conditions: &mut Conditions) {
        conditions.processors = self.processors;
        conditions.memory_available = self.available;
    }
}

/// Where facts about the machine come from.
pub trait Host: Send {
    /// The machine as it is now, with the way to these servers; rates are over the time since the last look.
    fn look(&mut self, servers: &BTreeSet<IpAddr>) -> Surroundings;

    /// The mount table, read without touching a mount.
    ///
    /// # Errors
    ///
    /// If the system does not give it.
    fn mounts(&mut self) -> io::Result<Vec<Mount>>;
}

/// Bytes received and sent by each interface.
type Counters = BTreeMap<String, (u64, u64)>;

/// This machine.
#[derive(Default)]
pub struct SystemHost {
    metrics: metrics::Metrics,
    last: Option<(u64, Counters)>,
}

impl Host for SystemHost {
    fn look(&mut self, servers: &BTreeSet<IpAddr>) -> Surroundings {
        let links = links_to(servers);
        let now_ns = platform::monotonic_ns();
        let interfaces = self.metrics.interfaces();
        let traffic = self.last.as_ref().and_then(|(then_ns, then)| {
            let seconds = now_ns.saturating_sub(*then_ns) as f64 / 1e9;
            rate((then, &interfaces), &names(&links), seconds)
        });
        self.last = Some((now_ns, interfaces.clone()));
        let memory = metrics::memory();
        Surroundings {
            load_average: platform::load_average(),
            processor_share: self.metrics.processor_share(),
            memory_available: memory.map(|(available, _)| available),
            memory_total: memory.map(|(_, total)| total),
            memory_pressure: platform::memory_pressure(),
            power: platform::power(),
            battery_percent: platform::battery_percent(),
            low_power_mode: platform::low_power_mode(),
            is_hot: platform::is_hot(),
            backup_running: platform::backup_running(),
            signal_dbm: platform::signal_dbm(),
            link: Link::joined(links),
            traffic,
            interfaces,
        }
    }

    fn mounts(&mut self) -> io::Result<Vec<Mount>> {
        platform::mounts()
    }
}

/// The interfaces that lead to these servers, or to the network by default.
fn links_to(servers: &BTreeSet<IpAddr>) -> Vec<Link> {
    let elsewhere = servers.iter().filter(|server| !server.is_loopback());
    let links: Vec<Link> = elsewhere.filter_map(|server| platform::link_to(Some(*server))).collect();
    if links.is_empty() { platform::link_to(None).into_iter().collect() } else { links }
}

fn names(links: &[Link]) -> BTreeSet<&str> {
    links.iter().map(|link| link.name.as_str()).collect()
}

/// Bytes a second that crossed the interfaces of these names; all but the loopback where there are none. Others are left out
/// because a bridge counts what its members do, and a tunnel what the interface below does. `None` after a moment that is
/// too short to say.
fn rate((then, now): (&Counters, &Counters), ways: &BTreeSet<&str>, seconds: f64) -> Option<f64> {
    let is_way = |name: &str| match ways.is_empty() {
        true => name != "lo" && name != "lo0",
        false => ways.contains(name),
    };
    let bytes = now.iter().filter(|(name, _)| is_way(name)).map(|(name, (received, sent))| {
        let (received_then, sent_then) = then.get(name).copied().unwrap_or((*received, *sent));
        received.saturating_sub(received_then) + sent.saturating_sub(sent_then)
    });
    (seconds >= 1.0).then(|| bytes.sum::<u64>() as f64 / seconds)
}

/// How busy the machine is, cheaply enough to be asked every few seconds.
#[derive(Default)]
pub struct Pulse {
    metrics: metrics::Metrics,
}

impl Pulse {
    /// The share of the processors' time that was used since this was last asked, from 0 to 1.
    pub fn processor_share(&mut self) -> Option<f64> {
        self.metrics.processor_share()
    }

    /// Bytes of memory that are not in use.
    pub fn memory_available(&self) -> Option<u64> {
        metrics::memory().map(|(available, _)| available)
    }
}

/// The machine's memory in bytes; `None` where it is not known.
pub fn memory_total() -> Option<u64> {
    metrics::memory().map(|(_, total)| total)
}

#[cfg(feature = "host-metrics")]
mod metrics {
    use std::collections::BTreeMap;

    use sysinfo::{CpuRefreshKind, Networks, System};

    /// Bytes of memory that are available, and in all.
    pub fn memory() -> Option<(u64, u64)> {
        let mut system = System::new().ok()?;
        system.refresh_memory();
        Some((system.available_memory(), system.total_memory())).filter(|(available, _)| *available > 0)
    }

    /// Counters that are kept from look to look.
    #[derive(Default)]
    pub struct Metrics {
        processors: Option<System>,
        networks: Option<Networks>,
    }

    impl Metrics {
        /// The share of the processors' time that was used since the last look.
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

        /// Bytes received and sent by each interface.
        pub fn interfaces(&mut self) -> BTreeMap<String, (u64, u64)> {
            if self.networks.is_none() {
                self.networks = Networks::new().ok();
            }
            let Some(networks) = self.networks.as_mut() else { return BTreeMap::new() };
            networks.refresh(true);
            let counts = networks.iter().map(|(name, data)| {
                (name.to_string_lossy().into_owned(), (data.total_received(), data.total_transmitted()))
            });
            counts.collect()
        }
    }
}

#[cfg(not(feature = "host-metrics"))]
mod metrics {
    use std::collections::BTreeMap;

    pub fn memory() -> Option<(u64, u64)> {
        None
    }

    /// Nothing is known.
    #[derive(Default)]
    pub struct Metrics;

    impl Metrics {
        pub fn processor_share(&mut self) -> Option<f64> {
            None
        }

        pub fn interfaces(&mut self) -> BTreeMap<String, (u64, u64)> {
            BTreeMap::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_is_what_crossed_the_network_and_not_the_loopback() {
        let counts =
            |eth: u64, lo: u64| BTreeMap::from([("eth0".to_owned(), (eth, 0)), ("lo".to_owned(), (lo, lo))]);
        let all = BTreeSet::new();
        let crossed = |then: &Counters, now: &Counters, seconds| rate((then, now), &all, seconds);
        assert_eq!(crossed(&counts(1000, 0), &counts(7000, 9_999_999), 2.0), Some(3000.0));
        assert_eq!(crossed(&counts(1000, 0), &counts(0, 0), 2.0), Some(0.0), "a counter that began anew");
        assert_eq!(crossed(&counts(0, 0), &counts(7000, 0), 0.5), None);
        assert_eq!(crossed(&BTreeMap::new(), &counts(7000, 0), 2.0), Some(0.0), "an interface that came up");
    }

    #[test]
    fn a_tunnel_and_the_cable_below_it_count_once() {
        let counts = |bytes| BTreeMap::from(["en0", "utun3"].map(|name| (name.to_owned(), (bytes, 0))));
        let ways = BTreeSet::from(["utun3"]);
        assert_eq!(rate((&counts(0), &counts(6000)), &ways, 2.0), Some(3000.0));
    }

    #[test]
    fn this_machine_can_be_looked_at() {
        let mut host = SystemHost::default();
        assert!(host.look(&BTreeSet::new()).traffic.is_none(), "one look gives no rate");
        assert!(host.mounts().is_ok());
    }
}
