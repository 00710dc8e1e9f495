//! Where the figures come from, without saying whose they are.

use std::collections::BTreeMap;

use longhaul_measure::model::{Negotiated, TargetName};
use serde::{Deserialize, Serialize};

use crate::{private, units};

/// What a reader needs to know of the machine. Not: its name, its user, its paths, its servers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Environment {
    /// Version of longhaul.
    pub longhaul: String,
    /// Operating system with its version.
    pub system: Option<String>,
    /// Logical processors.
    pub processors: Option<u32>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// What was negotiated on each target in its newest epoch.
    pub negotiated: BTreeMap<TargetName, Negotiated>,
}

impl Environment {
    /// The same without whatever names somebody. Everything that leaves goes through here.
    pub fn anonymised(&self) -> Self {
        let of_target =
            |(target, all): (&TargetName, &Negotiated)| (target.clone(), private::negotiated(all));
        Self {
            longhaul: private::version(&self.longhaul).unwrap_or_default().to_owned(),
            system: self.system.as_deref().map(private::system).filter(|system| !system.is_empty()),
            processors: self.processors,
            memory_bytes: self.memory_bytes,
            negotiated: self.negotiated.iter().map(of_target).collect(),
        }
    }

    /// The machine in one line: `macOS 26.1, 8 processors, 16.0 GB memory, longhaul 0.1.0`.
    pub fn in_one_line(&self) -> String {
        let parts = [
            self.system.clone(),
            self.processors.map(|count| format!("{count} processors")),
            self.memory_bytes.map(|bytes| format!("{} memory", units::bytes(bytes as f64))),
            Some(format!("longhaul {}", self.longhaul)),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// What was negotiated on a target, in one line; `None` where nothing is known.
    pub fn negotiated_on(&self, target: &TargetName) -> Option<String> {
        let all = self.negotiated.get(target).filter(|all| !all.is_empty())?;
        Some(all.iter().map(|(key, value)| format!("{key} {value}")).collect::<Vec<_>>().join(", "))
    }
}
