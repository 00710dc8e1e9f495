//! Description of the machine and the mounts, without private data.

use std::collections::BTreeMap;

use longhaul_analysis::summary::Week;
use longhaul_model::stored::StoredEpoch;
use longhaul_model::{EpochRecord, History, NegotiatedOptions, SHARE_KEYS, TargetName};

use crate::{redaction, units};

/// Facts about a machine that a reader of the report needs. It contains no machine name, user, path or server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Environment {
    /// Version of longhaul that measured.
    pub longhaul: String,
    /// Operating system with its version; `None` if unknown.
    pub system: Option<String>,
    /// Number of logical processors; `None` if unknown.
    pub processors: Option<u32>,
    /// Memory in bytes; `None` if unknown.
    pub memory_bytes: Option<u64>,
    /// Negotiated options of each target at the end of the reported week.
    pub negotiated: BTreeMap<TargetName, NegotiatedOptions>,
}

impl Environment {
    /// Describes this machine now. `negotiated`: options of each target, as [`negotiated_until`] returns them.
    pub fn of_this_machine(
        system: String,
        processors: Option<u32>,
        memory_bytes: Option<u64>,
        negotiated: BTreeMap<TargetName, NegotiatedOptions>,
    ) -> Self {
        let longhaul = env!("CARGO_PKG_VERSION").to_owned();
        Self { longhaul, system: Some(system), processors, memory_bytes, negotiated }
    }

    /// Returns a copy without private data. Every shared form of the report uses this copy.
    pub fn anonymised(&self) -> Self {
        let of_target = |(target, all): (&TargetName, &NegotiatedOptions)| {
            (target.clone(), redaction::redact_negotiated(all))
        };
        Self {
            longhaul: redaction::version(&self.longhaul).unwrap_or_default().to_owned(),
            system: self.system.as_deref().map(redaction::redact_system).filter(|system| !system.is_empty()),
            processors: self.processors,
            memory_bytes: self.memory_bytes,
            negotiated: self.negotiated.iter().map(of_target).collect(),
        }
    }

    /// Returns a description of the machine in one line: `macOS 26.1, 8 processors, 16.0 GB memory, longhaul 0.1.0`.
    pub fn summary(&self) -> String {
        let parts = [
            self.system.clone(),
            self.processors.map(|count| format!("{count} processors")),
            self.memory_bytes.map(|bytes| format!("{} memory", units::bytes(bytes as f64))),
            Some(format!("longhaul {}", self.longhaul)),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// Returns the negotiated options of a target in one line; `None` if none are known.
    pub fn negotiated_text(&self, target: &TargetName) -> Option<String> {
        let all = self.negotiated.get(target).filter(|all| !all.is_empty())?;
        Some(all.iter().map(|(key, value)| format!("{key} {value}")).collect::<Vec<_>>().join(", "))
    }
}

/// Returns what was negotiated on each target of a history in its newest epoch that began by the end of a week. `stored`: the epochs
/// with their options. The week ends at midnight UTC: an epoch that begins within hours of it can be taken for one of the other week.
pub fn negotiated_until(
    week: Week,
    history: &History,
    stored: &[StoredEpoch],
) -> BTreeMap<TargetName, NegotiatedOptions> {
    let began = history.epochs.iter().filter(|epoch| epoch.opened_us.local_day(0) <= week.last_day());
    let of_epoch = |epoch: &EpochRecord| {
        let stored = stored.iter().find(|stored| stored.number == epoch.number)?;
        // The tag of a share tells a reader nothing.
        let shown = stored.negotiated.iter().filter(|(key, _)| !SHARE_KEYS.contains(&key.as_str()));
        Some((epoch.target.clone(), shown.map(|(key, value)| (key.clone(), value.clone())).collect()))
    };
    // Epochs are sorted by number, so the newest one of each target overwrites the older ones.
    began.filter_map(of_epoch).collect()
}
