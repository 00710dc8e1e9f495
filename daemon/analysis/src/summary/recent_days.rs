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

/// A share that is no longer measured. No verdict, recommendation or score is about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct UnmeasuredShare {
    /// Name of the share.
    pub target: TargetName,
    /// Last day with a run on it, in days since 1970-01-01.
    #[serde(skip)]
    pub day: i64,
    /// Last day with a run on it, as an ISO date.
    pub last_day: String,
}

/// Returns the day from which on something must have had a result to be still measured. `days` are those with a result of
/// anything.
pub(super) fn recent_from(days: &BTreeSet<i64>) -> i64 {
    days.iter().nth_back(DAYS_WITHOUT_RESULT).copied().unwrap_or(i64::MIN)
}

/// Returns the shares that are no longer measured, while a recent round measured two others. Without these, leaving a share out would
/// leave no pair; in the design of sequential weeks each share has weeks without a run.
pub(super) fn unmeasured_shares(scope: &AnalysisWindow<'_>) -> Vec<usize> {
    let shares = scope.shares();
    let days = |share: &usize| scope.run_days[*share].iter();
    let from = recent_from(&shares.iter().flat_map(days).copied().collect());
    if scope.last_shared_day.is_none_or(|last| last < from) {
        return vec![];
    }
    shares.into_iter().filter(|share| days(share).next_back().is_some_and(|last| *last < from)).collect()
}

impl UnmeasuredShare {
    /// Describes a share by its index.
    pub(super) fn new(scope: &AnalysisWindow<'_>, share: usize) -> Option<Self> {
        let day = *scope.run_days[share].last()?;
        let target = scope.history.targets[share].name.clone();
        Some(Self { target, day, last_day: date_of_day(day).to_string() })
    }
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
