//! Layers, and the result of an attribution.

use std::collections::BTreeMap;

use longhaul_model::{RunNasUse, TargetName};
use serde::Serialize;
use utoipa::ToSchema;

/// Layer in which time is spent, from the user to the disk of the NAS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// This machine: its processor, and waiting for it.
    Client,
    /// Requests that wait in this machine before they are sent.
    Queue,
    /// The network: round trips, transfer of bytes, and retransmissions.
    Wire,
    /// The NAS, with its disk if that is not known separately.
    Server,
    /// The disk of the NAS.
    ServerDisk,
}

impl Layer {
    /// All layers, from the user to the disk.
    pub const ALL: [Layer; 5] = [Self::Client, Self::Queue, Self::Wire, Self::Server, Self::ServerDisk];

    /// Returns the name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Queue => "queue",
            Self::Wire => "wire",
            Self::Server => "server",
            Self::ServerDisk => "server-disk",
        }
    }
}

/// Part of a metric's time that is spent in one layer, in seconds. All values are `None` if the part is not known.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct Part {
    /// Layer of the part.
    pub layer: Layer,
    /// Median over the rounds.
    pub seconds: Option<f64>,
    /// Lower end of the interval: what is certain of each round, and the spread of the rounds (95 %).
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
}

/// Attribution of the time of one metric on one target.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Attribution {
    /// Name of the target.
    pub target: TargetName,
    /// Protocol of the target, as users read it; `None` if it is unknown.
    pub protocol: Option<String>,
    /// Name of the task.
    pub task: &'static str,
    /// Name of the metric.
    pub metric: &'static str,
    /// Number of rounds.
    pub rounds: usize,
    /// Median time of the metric, in seconds.
    pub seconds: f64,
    /// Parts of the time, one for each layer, in the order of [`Layer::ALL`].
    pub parts: Vec<Part>,
    /// Layer that stands out: the one with most time above what it takes with a good network, NAS or computer, if that is much.
    /// Another one may take more time. `None` if none stands out, or if too little is known.
    pub largest: Option<Layer>,
    /// Median number of round trips; `None` if no source counts them.
    pub round_trips: Option<f64>,
}

impl Attribution {
    /// Returns the seconds of a layer; `None` if they are unknown.
    pub fn seconds_of(&self, layer: Layer) -> Option<f64> {
        self.parts.iter().find(|part| part.layer == layer)?.seconds
    }
}

/// Returns the seconds in which the disk of the NAS that holds the share had something to do, by the number of the run. Runs for
/// which the NAS does not report it are left out.
pub fn disk_seconds(found: &[RunNasUse]) -> BTreeMap<i64, f64> {
    let of_run = |found: &RunNasUse| {
        let known = found.found.as_ref().ok()?;
        Some((found.run, known.busiest_disk()?.busy_share? * known.seconds))
    };
    found.iter().filter_map(of_run).collect()
}
