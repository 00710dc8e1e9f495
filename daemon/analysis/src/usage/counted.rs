//! Adds up counted requests, and converts them to openings of large folders and sessions with photos.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use longhaul_model::time::DAY;
use longhaul_model::{
    CounterSource, RequestCounts, RequestKind, SWITCHES_PER_SESSION, TargetName, UsageStep, median,
};

/// Number of days on which usage must have been counted before it is used: a week has seven different days.
pub const MIN_DAYS: usize = 7;
/// Number of weeks that are counted at most. Older usage says less about the next week.
pub const MAX_WEEKS: u32 = 8;
/// Counted time from which a day counts as covered, in seconds.
const MIN_SECONDS_PER_DAY: f64 = 3600.0;
/// Number of days without any counted time, one after the other, that count as days without use: a long weekend with
/// the machine off. Longer gaps are left out, because longhaul may not have run.
const MAX_DAYS_OFF: i64 = 3;

/// Usage as stored, and the requests of longhaul's own tasks in which it is expressed.
#[derive(Debug, Clone, Copy)]
pub struct UsageInput<'a> {
    /// Usage of each target by day.
    pub days: &'a [UsageStep],
    /// Requests for names that the opening of the large folder caused, of each run.
    pub listings: &'a [(TargetName, u64)],
    /// Number of photos in the batch of the photo task.
    pub photos: Option<u64>,
}

/// Usage counted on all targets.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct CountedUsage {
    /// Days from the first to the last counted day, without gaps of more than three days.
    pub days: usize,
    /// Days with at least an hour of counted time.
    pub covered_days: usize,
    /// Usage of each target.
    pub targets: Vec<TargetUsage>,
    /// Openings of a large folder a week, by the requests for names; `None` if they cannot be told.
    pub folder_openings: Option<f64>,
    /// Sessions with photos a week, by the files that were opened and read; `None` if they cannot be told.
    pub photo_sessions: Option<f64>,
}

/// Usage counted on one target.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TargetUsage {
    /// Name of the target.
    pub target: TargetName,
    /// Source of the counts.
    pub source: CounterSource,
    /// Counted time, in hours.
    pub counted_hours: f64,
    /// Time that is left out because longhaul itself measured, in hours.
    pub left_out_hours: f64,
    /// Requests by kind; kinds that the source does not count are missing.
    pub requests: BTreeMap<&'static str, u64>,
    /// About how many files were opened and read; `None` if unknown.
    pub files_read: Option<u64>,
    /// Bytes received; `None` if unknown.
    pub read_bytes: Option<u64>,
    /// Bytes sent; `None` if unknown.
    pub written_bytes: Option<u64>,
    /// Requests for names that the opening of a large folder takes on this target; `None` before the first round.
    pub requests_per_opening: Option<f64>,
}

impl TargetUsage {
    /// Returns the count of a kind of request; `None` if the source does not count it.
    pub fn request(&self, kind: RequestKind) -> Option<u64> {
        self.requests.get(kind.name()).copied()
    }

    /// Returns the factor from the counted time to all time in which the target was mounted and the machine awake.
    fn scale(&self) -> f64 {
        let all = self.counted_hours + self.left_out_hours;
        if self.counted_hours > 0.0 { all / self.counted_hours } else { 0.0 }
    }

    fn folder_openings(&self) -> Option<f64> {
        match (self.request(RequestKind::List)?, self.requests_per_opening) {
            (0, _) => Some(0.0),
            (listings, per_opening) => Some(listings as f64 / per_opening? * self.scale()),
        }
    }

    fn photo_sessions(&self, photos: Option<u64>) -> Option<f64> {
        match (self.files_read?, photos) {
            (0, _) => Some(0.0),
            (files, photos) => Some(files as f64 / (photos? as f64 + SWITCHES_PER_SESSION) * self.scale()),
        }
    }
}

/// Adds up the usage of all targets. Pure.
pub fn count_usage(input: &UsageInput<'_>) -> CountedUsage {
    let targets: Vec<TargetUsage> =
        summed(input.days).into_iter().map(|sum| target_usage(&sum, input)).collect();
    let days = elapsed_days(input.days);
    let listing = targets.iter().filter(|target| target.request(RequestKind::List).is_some());
    let openings: Vec<Option<f64>> = listing.map(TargetUsage::folder_openings).collect();
    let reading = targets.iter().filter(|target| target.files_read.is_some());
    let sessions: Vec<Option<f64>> = reading.map(|target| target.photo_sessions(input.photos)).collect();
    let a_week = |times: Vec<Option<f64>>| {
        let counts_all = !times.is_empty() && times.len() == targets.len();
        // While the unit of one target is not known, the sum of the others would be too small.
        let sum: f64 = times.into_iter().sum::<Option<f64>>()?;
        // A sum of zero says nothing if a target does not count this kind of request.
        ((sum > 0.0 || counts_all) && days > 0).then(|| sum * 7.0 / days as f64)
    };
    CountedUsage {
        days,
        covered_days: covered_days(input.days),
        folder_openings: a_week(openings),
        photo_sessions: a_week(sessions),
        targets,
    }
}

/// Returns the sums of each target and source. Where a source counts requests, those that only count bytes are left out.
fn summed(days: &[UsageStep]) -> Vec<UsageStep> {
    let mut sums: BTreeMap<(&TargetName, &CounterSource), UsageStep> = BTreeMap::new();
    for day in days {
        let sum = sums.entry((&day.target, &day.source));
        sum.and_modify(|sum| sum.merge(day)).or_insert_with(|| day.clone());
    }
    let counting: BTreeSet<&TargetName> =
        days.iter().filter(|day| !day.requests.is_empty()).map(|day| &day.target).collect();
    let is_best = |sum: &UsageStep| !sum.requests.is_empty() || !counting.contains(&sum.target);
    sums.into_values().filter(is_best).collect()
}

fn target_usage(sum: &UsageStep, input: &UsageInput<'_>) -> TargetUsage {
    let of_target = input.listings.iter().filter(|(target, _)| *target == sum.target);
    let listings: Vec<f64> = of_target.map(|(_, requests)| *requests as f64).collect();
    TargetUsage {
        target: sum.target.clone(),
        source: sum.source.clone(),
        counted_hours: sum.counted_seconds / 3600.0,
        left_out_hours: sum.left_out_seconds / 3600.0,
        requests: by_name(&sum.requests),
        files_read: sum.files_read,
        read_bytes: sum.read_bytes,
        written_bytes: sum.written_bytes,
        requests_per_opening: median(&listings).filter(|requests| *requests > 0.0),
    }
}

fn by_name(requests: &RequestCounts) -> BTreeMap<&'static str, u64> {
    RequestKind::ALL.into_iter().filter_map(|kind| Some((kind.name(), requests.get(kind)?))).collect()
}

/// Returns the days on which something was counted, with the longest counted time of a target in seconds.
fn counted_days(days: &[UsageStep]) -> BTreeMap<i64, f64> {
    let mut counted: BTreeMap<i64, f64> = BTreeMap::new();
    for day in days.iter().filter(|day| day.counted_seconds > 0.0) {
        let longest = counted.entry(day.at.as_us().div_euclid(DAY.as_micros() as i64)).or_default();
        *longest = longest.max(day.counted_seconds);
    }
    counted
}

fn covered_days(days: &[UsageStep]) -> usize {
    counted_days(days).values().filter(|seconds| **seconds >= MIN_SECONDS_PER_DAY).count()
}

/// Returns the number of days from the first to the last counted day, without long gaps.
fn elapsed_days(days: &[UsageStep]) -> usize {
    let counted: Vec<i64> = counted_days(days).into_keys().collect();
    let steps = counted.windows(2).map(|pair| pair[1] - pair[0]);
    let elapsed: i64 = steps.map(|step| if step - 1 <= MAX_DAYS_OFF { step } else { 1 }).sum();
    if counted.is_empty() { 0 } else { 1 + elapsed as usize }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::Timestamp;
    use proptest::prelude::*;

    fn name(text: &str) -> TargetName {
        text.parse().unwrap()
    }

    /// Returns a day with 20 counted hours and 5 that were left out.
    fn day(target: &str, day: u32, lists: u64, files: Option<u64>) -> UsageStep {
        let requests = RequestCounts::default().with(RequestKind::List, Some(lists));
        UsageStep {
            counted_seconds: 20.0 * 3600.0,
            left_out_seconds: 5.0 * 3600.0,
            requests,
            files_read: files,
            ..UsageStep::new(name(target), CounterSource::Mountstats, Timestamp::UNIX_EPOCH + day * DAY)
        }
    }

    fn counted(days: &[UsageStep], photos: Option<u64>) -> CountedUsage {
        count_usage(&UsageInput {
            days,
            listings: &[(name("nas"), 8), (name("nas"), 10), (name("nas"), 9)],
            photos,
        })
    }

    #[test]
    fn requests_become_openings_and_sessions_a_week() {
        let days: Vec<UsageStep> = (0..14).map(|at| day("nas", at, 90, Some(40))).collect();
        let usage = counted(&days, Some(20));
        assert_eq!((usage.days, usage.covered_days), (14, 14));
        // 70 openings a week in the counted time, which is four fifths of all.
        assert!((usage.folder_openings.unwrap() - 70.0 * 1.25).abs() < 1e-9);
        assert!((usage.photo_sessions.unwrap() - 7.0 * 1.25).abs() < 1e-9);
        assert_eq!(usage.targets[0].request(RequestKind::Open), None);
    }

    #[test]
    fn unknown_units_and_kinds_give_no_number() {
        let days = [day("other", 0, 90, None)];
        let usage = counted(&days, Some(20));
        assert_eq!((usage.folder_openings, usage.photo_sessions), (None, None));
        assert_eq!(counted(&[day("nas", 0, 9, Some(1))], None).photo_sessions, None);
        assert_eq!(counted(&[day("other", 0, 0, Some(0))], None).folder_openings, Some(0.0));
        let one_unknown = [day("other", 0, 90, None), day("nas", 0, 0, None)];
        assert_eq!(counted(&one_unknown, None).folder_openings, None);
        let without_a_round = [day("other", 0, 90, None), day("nas", 0, 90, None)];
        assert_eq!(counted(&without_a_round, None).folder_openings, None, "more than those of one target");
    }

    #[test]
    fn long_gaps_are_left_out_and_short_ones_are_days_without_use() {
        let days = |days: &[u32]| -> usize {
            let days: Vec<UsageStep> = days.iter().map(|at| day("nas", *at, 1, None)).collect();
            counted(&days, None).days
        };
        assert_eq!([days(&[]), days(&[5]), days(&[0, 1, 5]), days(&[0, 1, 30, 31])], [0, 1, 6, 4]);
    }

    #[test]
    fn sources_that_count_only_bytes_stand_back() {
        let bytes = UsageStep {
            source: CounterSource::Connections,
            requests: RequestCounts::default(),
            ..day("nas", 0, 0, None)
        };
        let found = |days: &[UsageStep]| -> Vec<CounterSource> {
            counted(days, None).targets.into_iter().map(|target| target.source).collect()
        };
        assert_eq!(found(&[day("nas", 0, 9, None), bytes.clone()]), [CounterSource::Mountstats]);
        assert_eq!(found(&[bytes]), [CounterSource::Connections]);
    }

    proptest! {
        #[test]
        fn any_counts_give_finite_times_that_are_not_negative(
            days in proptest::collection::vec((0u32..90, 0u64..1 << 40, 0u64..1 << 40, 0f64..90_000.0, 0f64..90_000.0), 0..90),
        ) {
            let days: Vec<UsageStep> = days
                .into_iter()
                .map(|(at, lists, files, counted_seconds, left_out_seconds)| UsageStep {
                    counted_seconds,
                    left_out_seconds,
                    ..day("nas", at, lists, Some(files))
                })
                .collect();
            let usage = counted(&days, Some(17));
            let is_valid = |times: Option<f64>| times.is_none_or(|times| times.is_finite() && times >= 0.0);
            prop_assert!(is_valid(usage.folder_openings) && is_valid(usage.photo_sessions));
            prop_assert!(usage.covered_days <= usage.days.max(1));
        }
    }
}
