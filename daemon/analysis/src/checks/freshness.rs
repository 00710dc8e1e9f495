//! Freshness: for each target and kind of change, how long it takes until a change made elsewhere is visible.
//!
//! Times are the middles of the measured intervals. A change became visible at any time between the last poll that did not
//! show it and the first that did, so the upper end would be too long by half of the time between two polls, which is long on
//! a slow share. A change that was not seen is censored at the time until which it was looked for, and quantiles are those of
//! the Kaplan–Meier estimate: a quantile that lies beyond the censored times does not exist.

use std::collections::BTreeMap;
use std::time::Duration;

use longhaul_model::{ChangeKind, FreshnessOutcome, FreshnessSample, Protocol, TargetName};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use crate::stats::proportion_interval;

/// Error probability of the interval of the share that was not seen.
const ALPHA: f64 = 0.05;

/// Group of samples that are pooled.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
pub struct FreshnessKey {
    /// Target through which the changes were looked for.
    pub target: TargetName,
    /// Kind of the changes.
    pub kind: ChangeKind,
    /// Target through which they were made; `None`: on the NAS itself.
    pub changed_through: Option<TargetName>,
}

/// Freshness of a target for one kind of change, as `freshness --json` prints it.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct FreshnessCell {
    /// Target, kind of change and its origin.
    #[serde(flatten)]
    pub key: FreshnessKey,
    /// Protocol of the target in the newest sample.
    pub protocol: Option<Protocol>,
    /// True if both targets use one client of this machine: the cell says nothing about changes by other machines.
    pub shares_client: bool,
    /// Number of changes that count.
    pub n: u64,
    /// Number of these that were not seen.
    pub not_seen: u64,
    /// Lower end of the exact 95 % interval (Clopper–Pearson) of the share that is not seen.
    pub not_seen_share_low: f64,
    /// Upper end of this interval.
    pub not_seen_share_high: f64,
    /// Shortest time for which a change was looked for in vain; `None` if all were seen.
    #[serde(rename = "limit_seconds", serialize_with = "seconds")]
    #[schema(value_type = Option<f64>)]
    pub limit: Option<Duration>,
    /// Median time; `None` if it lies beyond the time for which changes were looked for.
    #[serde(rename = "median_seconds", serialize_with = "seconds")]
    #[schema(value_type = Option<f64>)]
    pub median: Option<Duration>,
    /// Time that 90 % of the changes did not exceed; `None` as for the median.
    #[serde(rename = "p90_seconds", serialize_with = "seconds")]
    #[schema(value_type = Option<f64>)]
    pub p90: Option<Duration>,
    /// Number of changes of which nothing is known, for example because the round was stopped.
    pub void: u64,
}

fn seconds<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.as_secs_f64()).serialize(to)
}

/// Returns the freshness in the newest epoch of each target, in the order of targets and kinds.
pub fn freshness(samples: &[FreshnessSample]) -> Vec<FreshnessCell> {
    let mut newest: BTreeMap<&TargetName, Option<i64>> = BTreeMap::new();
    for sample in samples {
        let epoch = newest.entry(&sample.target).or_default();
        *epoch = (*epoch).max(sample.epoch);
    }
    let mut groups: BTreeMap<FreshnessKey, Vec<&FreshnessSample>> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| newest.get(&sample.target) == Some(&sample.epoch)) {
        let FreshnessSample { target, kind, changed_through, .. } = sample.clone();
        groups.entry(FreshnessKey { target, kind, changed_through }).or_default().push(sample);
    }
    groups.into_iter().map(|(key, samples)| cell(key, &samples)).collect()
}

fn cell(key: FreshnessKey, samples: &[&FreshnessSample]) -> FreshnessCell {
    let (mut times, mut void) = (vec![], 0);
    for sample in samples {
        match &sample.outcome {
            FreshnessOutcome::Seen { earliest, latest } => {
                times.push(VisibilityTime { time: (*earliest + *latest) / 2, is_censored: false })
            }
            FreshnessOutcome::NotSeen { limit } => {
                times.push(VisibilityTime { time: *limit, is_censored: true })
            }
            FreshnessOutcome::Void { .. } => void += 1,
        }
    }
    times.sort();
    let censored = || times.iter().filter(|time| time.is_censored);
    let (n, not_seen) = (times.len() as u64, censored().count() as u64);
    let (not_seen_share_low, not_seen_share_high) = proportion_interval(not_seen, n, ALPHA);
    FreshnessCell {
        key,
        protocol: samples.last().and_then(|sample| sample.protocol.clone()),
        shares_client: samples.iter().any(|sample| sample.shares_client),
        n,
        not_seen,
        not_seen_share_low,
        not_seen_share_high,
        limit: censored().map(|time| time.time).min(),
        median: quantile(&times, 0.5),
        p90: quantile(&times, 0.9),
        void,
    }
}

/// Time until a change was visible. If it is censored, the change was not visible until then. Of two equal times, the
/// censored one is the later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct VisibilityTime {
    time: Duration,
    is_censored: bool,
}

/// Returns the first time at which the Kaplan–Meier estimate of the share that is visible reaches `share`. The times
/// must be sorted.
fn quantile(times: &[VisibilityTime], share: f64) -> Option<Duration> {
    let mut unseen = 1.0;
    for (place, time) in times.iter().enumerate().filter(|(_, time)| !time.is_censored) {
        unseen *= 1.0 - 1.0 / (times.len() - place) as f64;
        if 1.0 - unseen >= share - 1e-9 {
            return Some(time.time);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use longhaul_model::Timestamp;

    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    fn sample(epoch: i64, outcome: FreshnessOutcome) -> FreshnessSample {
        FreshnessSample {
            target: "smb".parse().unwrap(),
            protocol: None,
            epoch: Some(epoch),
            changed_through: None,
            shares_client: false,
            round: None,
            kind: ChangeKind::NewFile,
            at: Timestamp::UNIX_EPOCH,
            outcome,
        }
    }

    fn seen(seconds: u64) -> FreshnessSample {
        sample(2, FreshnessOutcome::Seen { earliest: S(seconds - 1), latest: S(seconds + 1) })
    }

    fn not_seen(seconds: u64) -> FreshnessSample {
        sample(2, FreshnessOutcome::NotSeen { limit: S(seconds) })
    }

    fn only_cell(samples: &[FreshnessSample]) -> FreshnessCell {
        let mut cells = freshness(samples);
        assert_eq!(cells.len(), 1);
        cells.remove(0)
    }

    #[test]
    fn quantiles_without_censoring_are_order_statistics() {
        let cell = only_cell(&(1..=10).map(seen).collect::<Vec<_>>());
        assert_eq!((cell.n, cell.not_seen, cell.limit), (10, 0, None));
        assert_eq!((cell.median, cell.p90), (Some(S(5)), Some(S(9))));
    }

    #[test]
    fn time_of_a_change_is_the_middle_of_its_interval() {
        let change = sample(2, FreshnessOutcome::Seen { earliest: S(1), latest: S(2) });
        assert_eq!(only_cell(&[change]).median, Some(Duration::from_millis(1500)));
    }

    #[test]
    fn changes_never_seen_have_no_median() {
        let cell = only_cell(&[not_seen(60), not_seen(55), not_seen(58)]);
        assert_eq!((cell.n, cell.not_seen, cell.limit), (3, 3, Some(S(55))));
        assert_eq!((cell.median, cell.p90), (None, None));
        let (low, high) = (cell.not_seen_share_low, cell.not_seen_share_high);
        assert!((low - 0.2924).abs() < 1e-4 && high == 1.0, "{low} to {high}");
    }

    #[test]
    fn censored_times_count_as_unseen_only_until_their_end() {
        // Kaplan-Meier: 1 - 3/4 * 1/2: the change censored at 2 s leaves the set before 3 s.
        let cell = only_cell(&[seen(1), not_seen(2), seen(3), not_seen(9)]);
        assert_eq!((cell.median, cell.p90), (Some(S(3)), None));
    }

    #[test]
    fn older_epochs_and_void_samples_are_not_pooled() {
        let older = sample(1, FreshnessOutcome::NotSeen { limit: S(60) });
        let void = sample(2, FreshnessOutcome::Void { reason: "stopped".to_owned() });
        let cell = only_cell(&[older, seen(1), void]);
        assert_eq!((cell.n, cell.not_seen, cell.void), (1, 0, 1));
    }

    #[test]
    fn kinds_and_origins_are_separate() {
        let elsewhere = FreshnessSample { changed_through: Some("nfs".parse().unwrap()), ..seen(1) };
        let deleted = FreshnessSample { kind: ChangeKind::Deletion, ..seen(1) };
        assert_eq!(freshness(&[seen(1), elsewhere, deleted]).len(), 3);
    }
}
