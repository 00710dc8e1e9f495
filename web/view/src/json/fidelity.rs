//! JSON form of fidelity: one object for each property of each target.

use longhaul_model::{Finding, KeepResult, Property, ReadBack, TargetFidelity, TargetName, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

/// Result of one property on one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FidelityJson {
    /// Target that was checked.
    pub target: TargetName,
    /// Property that was checked.
    pub property: Property,
    /// Result of the check.
    pub result: KeepResult,
    /// Explanation of the result; empty if there is none.
    pub detail: String,
    /// Place from which the value was read back.
    pub read_back: ReadBack,
    /// Protocol of the target with its version; null if unknown.
    pub protocol: Option<String>,
    /// Wall-clock time of the check, in microseconds since 1970 UTC.
    #[schema(value_type = i64)]
    pub at_us: Timestamp,
}

impl FidelityJson {
    /// Returns the findings of all targets.
    pub fn new(checks: &[TargetFidelity]) -> Vec<Self> {
        let of = |check: &TargetFidelity| {
            let to_json = |finding: &Finding| Self {
                target: check.target.clone(),
                property: finding.property,
                result: finding.result,
                detail: finding.detail.clone(),
                read_back: finding.read_back,
                protocol: check.protocol.clone(),
                at_us: check.at,
            };
            check.findings.iter().map(to_json).collect::<Vec<_>>()
        };
        checks.iter().flat_map(of).collect()
    }
}
