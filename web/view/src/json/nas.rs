//! JSON form of `longhaul nas check`.

use longhaul_model::{DiskUse, NasFigure, NasProblem, NasUse};
use serde::Serialize;

/// A NAS as it was seen, or the reason why it was not.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NasJson {
    /// The way in which it was read: `snmp`, `node-exporter` or `ssh`.
    pub kind: &'static str,
    /// Address in the configuration.
    pub address: String,
    /// Reason why it could not be read; null if it could.
    pub problem: Option<NasProblem>,
    /// Explanation of the problem with the next step; null if there is none.
    pub message: Option<String>,
    /// Milliseconds that a reading took; null if there was none.
    pub milliseconds: Option<f64>,
    /// Figures that it does not tell.
    pub missing: Vec<NasFigure>,
    /// Seconds between the two readings; null if the counters were reset in between.
    pub seconds: Option<f64>,
    /// Share of that time in which its processors worked, from 0 to 1; null if unknown.
    pub processor_share: Option<f64>,
    /// Disks, the busiest one first.
    pub disks: Vec<DiskUse>,
}

impl NasJson {
    /// Returns the form of a NAS without anything that was read.
    pub fn new(kind: &'static str, address: &str) -> Self {
        let (problem, message, milliseconds, seconds, processor_share) = (None, None, None, None, None);
        let (missing, disks) = (vec![], vec![]);
        let address = address.to_owned();
        Self { kind, address, problem, message, milliseconds, missing, seconds, processor_share, disks }
    }

    /// Adds the use between two readings.
    pub fn with_use(self, found: Option<NasUse>) -> Self {
        let Some(NasUse { seconds, processor_share, disks }) = found else { return self };
        Self { seconds: Some(seconds), processor_share, disks, ..self }
    }
}
