//! State of the machine before a round.

use serde::{Deserialize, Serialize};

use super::Power;

/// State of the machine just before a round. These values explain and stratify results; they
/// never enter a comparison.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct MachineSnapshot {
    /// One-minute load average.
    pub load_average: Option<f64>,
    /// Share of the processors' time that was used since the previous reading, from 0 to 1.
    pub processor_share: Option<f64>,
    /// Available memory, in bytes.
    pub memory_available: Option<u64>,
    /// Power source of the machine.
    pub power: Option<Power>,
    /// Battery charge in percent; `None` without a battery.
    pub battery_percent: Option<f64>,
    /// True if the user enabled a power-saving mode; `None` if unknown.
    pub low_power_mode: Option<bool>,
    /// True if a Mac is awake only for some work and about to sleep again (DarkWake); `None` if unknown, as on Linux.
    #[serde(default)]
    pub is_dark_wake: Option<bool>,
    /// True if the machine throttles itself because it is too hot; `None` if unknown.
    pub is_hot: Option<bool>,
    /// True if a Time Machine backup is running; `None` if unknown, as on Linux.
    pub backup_running: Option<bool>,
    /// Network interface that leads to the targets' servers, or that of the default route if no target is on a file server of another
    /// machine. `None` without such an interface, or while the address of a server is unknown. For several interfaces see
    /// [`NetworkLink::merged`].
    pub link: Option<NetworkLink>,
    /// Traffic over the network interfaces since the previous reading, in bytes per second.
    pub traffic: Option<f64>,
}

/// Network interface and the properties of its link.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NetworkLink {
    /// Name of the interface, or several names separated by commas after [`NetworkLink::merged`].
    pub name: String,
    /// Kind of link.
    pub kind: LinkKind,
    /// Largest packet size (MTU), in bytes.
    pub mtu: Option<u64>,
    /// Link speed in megabits per second; `None` if the driver does not report it.
    pub megabits: Option<u64>,
}

impl NetworkLink {
    /// Merges several interfaces into one entry, for targets that are reached over different interfaces. The
    /// result has all names in order, the smallest MTU and speed, and the kind if all kinds are equal. It is
    /// a tunnel if any of the interfaces is one.
    pub fn merged(links: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut links: Vec<Self> = links.into_iter().collect();
        links.sort_by(|one, other| one.name.cmp(&other.name));
        links.dedup_by(|one, other| one.name == other.name);
        links.into_iter().reduce(|one, other| Self {
            name: format!("{}, {}", one.name, other.name),
            kind: match (one.kind, other.kind) {
                (LinkKind::Tunnel, _) | (_, LinkKind::Tunnel) => LinkKind::Tunnel,
                (one, other) if one == other => one,
                _ => LinkKind::Unknown,
            },
            mtu: min_of_both(one.mtu, other.mtu),
            megabits: min_of_both(one.megabits, other.megabits),
        })
    }
}

fn min_of_both(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.zip(other).map(|(one, other)| one.min(other))
}

/// Kind of a network link, derived from routes and interface names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkKind {
    /// Wired link.
    Wired,
    /// Wireless link.
    Wireless,
    /// Tunnel, such as a VPN.
    Tunnel,
    /// Unknown kind of link.
    #[default]
    Unknown,
}

impl LinkKind {
    /// Returns the name that is shown to users.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wired => "wired",
            Self::Wireless => "wireless",
            Self::Tunnel => "tunnel",
            Self::Unknown => "kind not known",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(name: &str, kind: LinkKind) -> NetworkLink {
        NetworkLink { name: name.to_owned(), kind, mtu: Some(1500), megabits: None }
    }

    #[test]
    fn links_to_several_servers_are_merged_into_one() {
        let (cable, radio) = (link("en5", LinkKind::Wired), link("en0", LinkKind::Wireless));
        assert_eq!(NetworkLink::merged([]), None);
        assert_eq!(NetworkLink::merged([cable.clone(), cable.clone()]), Some(cable.clone()));
        let both = NetworkLink::merged([cable.clone(), radio]).unwrap();
        assert_eq!((both.name.as_str(), both.kind, both.mtu), ("en0, en5", LinkKind::Unknown, Some(1500)));
        let tunnel = NetworkLink::merged([cable, link("utun3", LinkKind::Tunnel)]).unwrap();
        assert_eq!(tunnel.kind, LinkKind::Tunnel);
    }
}
