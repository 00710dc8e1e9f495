//! The number of changes made elsewhere that a target showed, and whether that is so few that it shows stale data
//! (docs/methodology.md#freshness).

use longhaul_model::{ChangeKind, FreshnessDay, TargetName};
use serde::Serialize;
use utoipa::ToSchema;

use super::verdict::ALPHA;
use super::window::AnalysisWindow;

/// Share of changes that a target may fail to show in time without being called stale.
pub const TOLERATED_SHARE: f64 = 0.05;
/// Share of missed changes at which the test finds staleness soonest. It decides the power, not the error rate.
const STALE_SHARE: f64 = 0.5;

/// Freshness of a target in its newest epoch.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Freshness {
    /// Target through which the changes were looked for.
    pub target: TargetName,
    /// Counts of each kind of change that was made.
    pub kinds: Vec<KindFreshness>,
}

/// Freshness of a target for one kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct KindFreshness {
    /// Kind of the change.
    pub kind: ChangeKind,
    /// Number of changes that were made elsewhere.
    pub changes: u64,
    /// Number of changes that were not visible when the check ended.
    pub not_seen: u64,
    /// Number of changes that became visible after more than a second.
    pub slow: u64,
    /// Shortest time after which a change that was not visible was given up, in seconds; `None` if all were visible.
    pub limit_seconds: Option<f64>,
    /// True if more than [`TOLERATED_SHARE`] of the changes are not shown in time, at an error rate of 5 % for all
    /// kinds of a target together, however often it is read.
    pub is_stale: bool,
}

impl Freshness {
    /// Returns the kind of change of which the target shows the least, if it is stale for any.
    pub fn stalest(&self) -> Option<&KindFreshness> {
        let stale = self.kinds.iter().filter(|kind| kind.is_stale);
        stale.max_by(|one, other| one.missed_share().total_cmp(&other.missed_share()))
    }

    /// Returns the counts of one kind of change; `None` if none was made.
    pub fn of_kind(&self, kind: ChangeKind) -> Option<&KindFreshness> {
        self.kinds.iter().find(|counts| counts.kind == kind)
    }
}

impl KindFreshness {
    fn new(kind: ChangeKind, days: &[&FreshnessDay]) -> Option<Self> {
        let total =
            |count: fn(&FreshnessDay) -> u64| days.iter().map(|day| count(day)).fold(0, u64::saturating_add);
        let (changes, not_seen) = (total(|day| day.changes), total(|day| day.not_seen));
        let limits = days.iter().filter_map(|day| day.limit).map(|limit| limit.as_secs_f64());
        let limit_seconds = limits.reduce(f64::min);
        (changes > 0).then(|| Self {
            kind,
            changes,
            not_seen,
            slow: total(|day| day.slow),
            limit_seconds,
            is_stale: shows_old_state(changes, not_seen),
        })
    }

    fn missed_share(&self) -> f64 {
        self.not_seen as f64 / self.changes as f64
    }
}

/// Returns whether more than [`TOLERATED_SHARE`] of the changes are not shown in time. The likelihood ratio of
/// [`STALE_SHARE`] against [`TOLERATED_SHARE`] is a test martingale for any share up to the tolerated one, so the error
/// rate holds at every look (Ville's inequality); it is split over the kinds (Bonferroni).
pub fn shows_old_state(changes: u64, not_seen: u64) -> bool {
    let seen = (changes - not_seen) as f64;
    let ln_e = not_seen as f64 * (STALE_SHARE / TOLERATED_SHARE).ln()
        + seen * ((1.0 - STALE_SHARE) / (1.0 - TOLERATED_SHARE)).ln();
    ln_e >= (ChangeKind::ALL.len() as f64 / ALPHA).ln()
}

/// Returns the freshness of every target whose newest epoch had changes up to the end of the window.
pub(super) fn freshness(scope: &AnalysisWindow<'_>) -> Vec<Freshness> {
    let of_target = |(place, active): (usize, &Option<super::window::ActiveEpoch>)| {
        let target = &scope.history.targets[place].name;
        let epoch = active.as_ref()?.epoch;
        let days: Vec<&FreshnessDay> = scope
            .history
            .freshness
            .iter()
            .filter(|day| day.target == *target && day.epoch == epoch && day.day <= scope.last_day)
            .collect();
        let of_kind = |kind: ChangeKind| {
            let days: Vec<&FreshnessDay> = days.iter().copied().filter(|day| day.kind == kind).collect();
            KindFreshness::new(kind, &days)
        };
        let kinds: Vec<KindFreshness> = ChangeKind::ALL.into_iter().filter_map(of_kind).collect();
        (!kinds.is_empty()).then(|| Freshness { target: target.clone(), kinds })
    };
    scope.active_epochs.iter().enumerate().filter_map(of_target).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn three_missed_changes_in_a_row_are_stale_and_two_are_not() {
        assert!(!shows_old_state(2, 2) && shows_old_state(3, 3));
        assert!(shows_old_state(25, 25));
        assert!(!shows_old_state(1_000, 0) && !shows_old_state(1_000, 50));
    }

    #[test]
    fn impossible_counts_of_an_import_do_not_overflow() {
        let day = FreshnessDay {
            target: "nas".parse().unwrap(),
            epoch: 1,
            kind: ChangeKind::ALL[0],
            day: 0,
            changes: u64::MAX,
            not_seen: 0,
            slow: 0,
            limit: None,
        };
        assert_eq!(KindFreshness::new(day.kind, &[&day, &day]).unwrap().changes, u64::MAX);
    }

    /// The error rate over 4,000 looks, one after each change, where the tolerated share is missed.
    #[test]
    fn false_staleness_stays_rare_at_every_look() {
        let (mut false_calls, epochs) = (0, 2_000);
        for epoch in 0..epochs {
            let mut missed = 0;
            let is_called = (1..=400).any(|change| {
                let draw = longhaul_model::draw::draw(0x6672_6573, epoch, change) as f64 / u64::MAX as f64;
                missed += u64::from(draw < TOLERATED_SHARE);
                shows_old_state(change, missed)
            });
            false_calls += u32::from(is_called);
        }
        // One kind of six: at most 0.05 / 6, and the standard error of 2,000 epochs.
        assert!(f64::from(false_calls) / epochs as f64 <= 0.05 / 6.0 + 0.004, "{false_calls}");
        assert!(false_calls > 0, "the test must be able to find one");
    }

    proptest! {
        #[test]
        fn another_visible_change_never_makes_a_target_stale(changes in 0u64..500, share in 0.0..=1.0f64) {
            let missed = (changes as f64 * share) as u64;
            prop_assert!(shows_old_state(changes, missed) || !shows_old_state(changes + 1, missed));
        }
    }
}
