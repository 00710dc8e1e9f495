//! The newest days with results, which tell what is still measured: metrics of a pair, and shares.

use std::collections::BTreeSet;

use serde::Serialize;
use utoipa::ToSchema;

use super::date_of_day;
use super::window::AnalysisWindow;
use longhaul_model::TargetName;

/// Number of days with results of others after which something without any is no longer measured. Calendar days would not do:
/// after a holiday, one short round would be enough.
const DAYS_WITHOUT_RESULT: usize = 7;

/// A share that is no longer measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct UnmeasuredShare {
    /// Name of the share.
    pub target: TargetName,
    /// Last day with a run on it, in days since 1970-01-01.
    #[serde(skip)]
    pub day: i64,
    /// Last day with a run on it, as an ISO date.
    pub last_day: String,
    /// True if no verdict, recommendation or score is about it, because two others are still measured.
    pub is_left_out: bool,
}

/// Returns the day from which on something must have had a result to be still measured. `days` are those with a result of
/// anything.
pub(super) fn recent_from(days: &BTreeSet<i64>) -> i64 {
    days.iter().nth_back(DAYS_WITHOUT_RESULT).copied().unwrap_or(i64::MIN)
}

/// Returns the shares that are no longer measured, by index. In the design of sequential weeks a share that waits for its next week
/// is not one of them: its rounds measured no other share.
pub(super) fn unmeasured_shares(scope: &AnalysisWindow<'_>) -> Vec<(usize, UnmeasuredShare)> {
    let shares = scope.shares();
    let days_of = |share: &usize| scope.run_days[*share].iter();
    let days: BTreeSet<i64> = shares.iter().flat_map(days_of).copied().collect();
    let from = recent_from(&days);
    // Leaving out one of the last two would leave no pair.
    let is_left_out = are_rounds_shared(&days, &scope.shared_days, i64::MAX);
    let describe = |share: usize| {
        let day = days_of(&share).next_back().copied().filter(|last| *last < from)?;
        // A share that was unavailable in rounds of two did not wait for a week of its own.
        if !is_left_out && !are_rounds_shared(&days, &scope.common_days, day) {
            return None;
        }
        let target = scope.history.targets[share].name.clone();
        let last_day = date_of_day(day).to_string();
        Some((share, UnmeasuredShare { target, day, last_day, is_left_out }))
    };
    shares.into_iter().filter_map(describe).collect()
}

/// Returns whether at least half of the newest days up to a day are among `shared_days`, those with a round of two shares. A single
/// one may be a round by hand in a design of sequential weeks.
fn are_rounds_shared(days: &BTreeSet<i64>, shared_days: &BTreeSet<i64>, last_day: i64) -> bool {
    let newest = || days.range(..=last_day).rev().take(DAYS_WITHOUT_RESULT + 1);
    2 * newest().filter(|day| shared_days.contains(*day)).count() >= newest().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holiday_makes_nothing_unmeasured() {
        let days = |from: i64| BTreeSet::from_iter((from..20).chain([40]));
        assert_eq!(recent_from(&days(0)), 13, "seven days with results, and the newest one");
        assert_eq!(recent_from(&days(15)), i64::MIN);
        assert_eq!(recent_from(&BTreeSet::new()), i64::MIN);
    }
}
