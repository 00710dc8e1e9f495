//! The results of the checks apart from speed, as the database has them now.

use longhaul_model::time::DAY;
use longhaul_model::{FreshnessDay, StoredMismatch, TargetFidelity, Timestamp, VerifiedTotal};
use longhaul_store::Reader;

/// Number of days whose changes count.
const FRESHNESS_DAYS: u32 = 28;

/// The results of the checks of all targets.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CheckResults {
    /// Changes made elsewhere in the last 28 days.
    pub freshness: Vec<FreshnessDay>,
    /// Data that was read back and compared since the beginning.
    pub verified: Vec<VerifiedTotal>,
    /// Wrong ranges since the beginning.
    pub mismatches: Vec<StoredMismatch>,
    /// Last check of the properties of files on each target.
    pub fidelity: Vec<TargetFidelity>,
}

impl CheckResults {
    /// Reads the results.
    pub fn read(reader: &Reader, now: Timestamp) -> longhaul_store::Result<Self> {
        Ok(Self {
            freshness: reader.freshness_days(now - FRESHNESS_DAYS * DAY)?,
            verified: reader.verified_totals()?,
            mismatches: reader.mismatches(None)?,
            fidelity: reader.fidelity()?,
        })
    }
}
