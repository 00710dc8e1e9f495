//! JSON form of freshness.

use std::time::Duration;

use longhaul_analysis::checks::FreshnessCell;
use longhaul_model::{ChangeKind, Protocol, TargetName};
use serde::Serialize;

/// Freshness of a target for one kind of change, as `freshness --json` prints it.
#[derive(Debug, Serialize)]
pub struct FreshnessJson {
    target: TargetName,
    protocol: Option<Protocol>,
    kind: ChangeKind,
    /// `null`: made on the NAS itself.
    changed_through: Option<TargetName>,
    shares_client: bool,
    n: u64,
    not_seen: u64,
    not_seen_share_low: f64,
    not_seen_share_high: f64,
    limit_seconds: Option<f64>,
    median_seconds: Option<f64>,
    p90_seconds: Option<f64>,
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
