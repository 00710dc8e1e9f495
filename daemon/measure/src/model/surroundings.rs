//! What the machine around a round was like.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Power;

/// The machine just before or just after a round. It explains and stratifies; it never enters a comparison.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Surroundings {
    /// One-minute load average.
    pub load_average: Option<f64>,
    /// Share of the processors' time that was used since the last look, from 0 to 1.
    pub processor_share: Option<f64>,
    /// Bytes of memory that are not in use.
    pub memory_available: Option<u64>,
    /// Bytes of memory in all.
    pub memory_total: Option<u64>,
    /// Share of the last ten seconds in which something waited for memory (Linux: `/proc/pressure/memory`, `some`).
    pub memory_pressure: Option<f64>,
    /// What the machine runs on.
    pub power: Option<Power>,
    /// Charge of the battery in percent; `None` without one.
    pub battery_percent: Option<f64>,
    /// Whether the person asked the machine to save energy.
    pub low_power_mode: Option<bool>,
    /// Whether the machine slows itself down because it is too hot.
    pub is_hot: Option<bool>,
    /// Whether Time Machine makes a backup just now; `None` where there is no such thing to ask.
    pub backup_running: Option<bool>,
    /// The interface that leads to the servers of the targets, or to the network by default where no address is known;
    /// `None` without one. See [`Link::joined`].
    pub link: Option<Link>,
    /// The strength of its radio signal in dBm; `None` for a cable, and on macOS, where only a framework tells it.
    #[serde(default)]
    pub signal_dbm: Option<i32>,
    /// Bytes a second that crossed the interfaces since the last look.
    pub traffic: Option<f64>,
    /// Bytes received and sent by each interface since it came up.
    #[serde(default)]
    pub interfaces: BTreeMap<String, (u64, u64)>,
}

/// An interface.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: LinkKind,
    /// Its largest packet, in bytes.
    pub mtu: Option<u64>,
    /// Its speed in megabits a second, where the driver says.
    pub megabits: Option<u64>,
}

impl Link {
    /// Several interfaces as one, for targets that are reached over different ones: the names in order, the smallest packet
    /// and speed, the kind if it is the same, and a tunnel if one of them is.
    pub fn joined(links: impl IntoIterator<Item = Self>) -> Option<Self> {
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
            mtu: least(one.mtu, other.mtu),
            megabits: least(one.megabits, other.megabits),
        })
    }
}

fn least(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.zip(other).map(|(one, other)| one.min(other))
}

/// What an interface is, as far as routes and names tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkKind {
    /// A cable.
    Wired,
    /// Radio.
    Wireless,
    /// A tunnel: a VPN.
    Tunnel,
    /// Not known.
    #[default]
    Unknown,
}

impl LinkKind {
    /// The name that is shown.
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

    fn link(name: &str, kind: LinkKind) -> Link {
        Link { name: name.to_owned(), kind, mtu: Some(1500), megabits: None }
    }

    #[test]
    fn links_to_several_servers_are_told_as_one() {
        let (cable, radio) = (link("en5", LinkKind::Wired), link("en0", LinkKind::Wireless));
        assert_eq!(Link::joined([]), None);
        assert_eq!(Link::joined([cable.clone(), cable.clone()]), Some(cable.clone()));
        let both = Link::joined([cable.clone(), radio]).unwrap();
        assert_eq!((both.name.as_str(), both.kind, both.mtu), ("en0, en5", LinkKind::Unknown, Some(1500)));
        let tunnel = Link::joined([cable, link("utun3", LinkKind::Tunnel)]).unwrap();
        assert_eq!(tunnel.kind, LinkKind::Tunnel);
    }
}
