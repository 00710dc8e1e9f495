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
    /// The interface that leads to the network by default; `None` without one.
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
