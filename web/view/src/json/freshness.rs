//! JSON form of freshness.

use std::time::Duration;

use longhaul_analysis::checks::FreshnessCell;
use longhaul_model::{ChangeKind, Protocol, TargetName};
use serde::Serialize;
use utoipa::ToSchema;

/// Freshness of a target for one kind of change, as `freshness --json` prints it.
#[derive(Debug, Serialize, ToSchema)]
pub struct FreshnessJson {
    /// Target through which the changes were looked for.
    target: TargetName,
    /// Protocol of the target; null if unknown.
    protocol: Option<Protocol>,
    /// Kind of the changes.
    kind: ChangeKind,
    /// Target through which the changes were made; null: on the NAS itself.
    changed_through: Option<TargetName>,
    /// True if both targets use one client of this machine: this says nothing about changes by other machines.
    shares_client: bool,
    /// Number of changes that count.
    n: u64,
    /// Number of these that were not seen.
    not_seen: u64,
    /// Lower end of the exact 95 % interval of the share that is not seen.
    not_seen_share_low: f64,
    /// Upper end of this interval.
    not_seen_share_high: f64,
    /// Shortest time in seconds for which a change was looked for in vain; null if all were seen.
    limit_seconds: Option<f64>,
    /// Median time in seconds until a change was visible; null if it lies beyond the limit.
    median_seconds: Option<f64>,
    /// Time in seconds that 90 % of the changes did not exceed; null as for the median.
    p90_seconds: Option<f64>,
    /// Number of changes of which nothing is known.
    void: u64,
}

impl From<FreshnessCell> for FreshnessJson {
    fn from(cell: FreshnessCell) -> Self {
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
        Self {
            target: cell.key.target,
            protocol: cell.protocol,
            kind: cell.key.kind,
            changed_through: cell.key.changed_through,
            shares_client: cell.shares_client,
            n: cell.n,
            not_seen: cell.not_seen,
            not_seen_share_low: cell.not_seen_share.0,
            not_seen_share_high: cell.not_seen_share.1,
            limit_seconds: seconds(cell.limit),
            median_seconds: seconds(cell.median),
            p90_seconds: seconds(cell.p90),
            void: cell.void,
        }
    }
}
