//! The results of merging, as data.

use longhaul_model::Scale;
use serde::Serialize;

use crate::family::{LinkClass, MachineFamily, NasFamily, ProtocolLabel, RoundTripClass, SystemName};
use crate::share::SharedResults;

/// Two protocols and the size of the test data.
pub(super) type PairKey = (ProtocolLabel, ProtocolLabel, &'static str);

/// Property that the machines of a group share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case", tag = "by")]
pub enum GroupKind {
    /// None: all machines.
    All,
    /// Vendor and class of the NAS.
    Nas {
        /// Vendor and class.
        nas: NasFamily,
    },
    /// Operating system with its major version.
    System {
        /// Name of the system.
        name: SystemName,
        /// Major version.
        major: Option<u16>,
    },
    /// Class of the network link.
    Link {
        /// The class.
        link: LinkClass,
    },
    /// Class of the round trip time.
    RoundTrip {
        /// The class.
        class: RoundTripClass,
    },
}

impl GroupKind {
    /// Returns the groups that a machine of a family belongs to.
    pub(super) fn of(family: &MachineFamily) -> [Self; 5] {
        let MachineFamily { nas, system, system_major, link, round_trip } = *family;
        [
            Self::All,
            Self::Nas { nas },
            Self::System { name: system, major: system_major },
            Self::Link { link },
            Self::RoundTrip { class: round_trip },
        ]
    }
}

/// A file that was given to merge, with its content or the reason why it cannot be used.
#[derive(Debug, Clone)]
pub struct SharedFile {
    /// Name of the file, for messages.
    pub name: String,
    /// Content, or the reason as the continuation of a sentence that names the file.
    pub content: Result<SharedResults, String>,
}

/// Results of many machines together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Merged {
    /// Version of the JSON form.
    pub schema: u32,
    /// Number of machines that are merged.
    pub machines: usize,
    /// Results for each pair of protocols, most machines first.
    pub pairs: Vec<MergedPair>,
    /// Files that are left out, with the reason.
    pub refused: Vec<RefusedFile>,
}

/// A file that is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RefusedFile {
    /// Name of the file.
    pub file: String,
    /// Reason, as the continuation of a sentence that names the file.
    pub reason: String,
}

/// Results for two protocols at one size of the test data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MergedPair {
    /// First protocol.
    pub a: ProtocolLabel,
    /// Second protocol.
    pub b: ProtocolLabel,
    /// Size of the test data.
    pub scale: Scale,
    /// Number of machines that compare the two, including those with too few days.
    pub machines: usize,
    /// All machines together, then each family with at least two machines; all tasks together.
    pub groups: Vec<MergedGroup>,
    /// All machines together, for each metric.
    pub metrics: Vec<MergedResult>,
    /// Ratio of each machine over all tasks together, sorted.
    pub each: Vec<MachineRatio>,
}

/// Ratio of one machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MachineRatio {
    /// First 8 digits of the label of the machine.
    pub machine: String,
    /// Time on the second protocol divided by that on the first.
    pub ratio: f64,
    /// Lower end of the interval of the machine; `None` while it is infinite.
    pub low: Option<f64>,
    /// Upper end of the interval of the machine; `None` while it is infinite.
    pub high: Option<f64>,
    /// Number of valid days.
    pub days: usize,
}

/// A group of machines.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MergedGroup {
    /// Property that its machines share.
    pub kind: GroupKind,
    /// Their result over all tasks together.
    pub result: MergedResult,
}

/// Result of a group of machines on one metric, or on all tasks together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MergedResult {
    /// `overall`, or the metric as `task/name`.
    pub key: String,
    /// Number of machines with enough days.
    pub machines: usize,
    /// Mean over machines of the time on the second protocol divided by that on the first.
    pub ratio: f64,
    /// Lower end of its interval for one look; `None` for one machine.
    pub low: Option<f64>,
    /// Upper end of its interval for one look; `None` for one machine.
    pub high: Option<f64>,
    /// Standard deviation of the true log ratios between machines.
    pub between: f64,
    /// Machines whose ratio is on the same side of 1 as the mean.
    pub agreement: Agreement,
    /// Logarithm of the e-value against "no machine has a difference": the product of all machines.
    pub ln_e_all_in: f64,
    /// Logarithm of the e-value for a difference in the direction of `ratio`, averaged over machines.
    pub ln_e_machines: f64,
    /// True if a difference over machines is shown, at a false discovery rate of 5 % over the results of the pair.
    pub is_shown: bool,
}

/// Number of machines that agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Agreement {
    /// Machines on the same side as the mean.
    pub agree: usize,
    /// All machines.
    pub of: usize,
}
