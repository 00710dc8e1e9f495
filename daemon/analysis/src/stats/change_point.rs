//! Detects a change of the ratio of two targets, at an unknown time or at a recorded event
//! (docs/methodology.md#changes-of-the-ratio).

use super::confidence_sequence::inflation_around_two_means;
use super::student::student_critical;

/// Minimum number of days on either side of a split at an unknown time.
const MIN_DAYS_EACH_SIDE: usize = 7;
/// Number of valid days compared on either side of an event.
const DAYS_AROUND_EVENT: usize = 14;
/// Chance of a false flag at an unknown time. The value is low because the test is repeated with every report.
const ALPHA_UNKNOWN_TIME: f64 = 0.001;
/// Chance of a false flag at any of the recorded events.
const ALPHA_EVENT: f64 = 0.01;

/// A series of daily log ratios split in two parts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Split {
    /// First day of the second part, as a day number.
    pub first_day: i64,
    /// Number of days before and after the split.
    pub days: (usize, usize),
    /// Mean log ratio before and after the split.
    pub means: (f64, f64),
    /// Welch's t of the difference, divided by the square root of the variance inflation that results from the
    /// autocorrelation within the parts.
    pub t: f64,
    /// Critical value: the split is a change if the absolute value of `t` exceeds it.
    pub critical: f64,
}

impl Split {
    /// Returns true if the ratio changed significantly at the split.
    pub fn is_change(&self) -> bool {
        self.t.abs() > self.critical
    }
}

/// Returns the split of `(day number, log ratio)` pairs with the largest Welch t, at least seven days from both ends.
///
/// The critical value is Bonferroni's: the chance of a false flag, 0.001, is divided by the number of possible splits.
/// This is an upper bound, because neighbouring splits share most of their days. `None` below fourteen days or with a
/// value that is not finite.
pub fn best_split(by_day: &[(i64, f64)]) -> Option<Split> {
    let by_day = sorted_by_day(by_day)?;
    let last = by_day.len().checked_sub(MIN_DAYS_EACH_SIDE)?;
    let places = MIN_DAYS_EACH_SIDE..=last;
    let splits = places.end().checked_sub(*places.start())? + 1;
    let sizes = places.map(|place| (place, welch(&by_day, place).t.abs()));
    let (place, _) = sizes.max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    Some(split(&by_day, place, ALPHA_UNKNOWN_TIME / splits as f64))
}

/// Returns the split at an event: the fourteen valid days before the event's day against the fourteen after it. The day
/// itself belongs to neither side, because the event happened during it. The chance of a false flag is divided by
/// `events`, the number of tested events.
///
/// `None` with fewer days on either side or with a value that is not finite.
pub fn split_at_event(by_day: &[(i64, f64)], event_day: i64, events: usize) -> Option<Split> {
    let by_day = sorted_by_day(by_day)?;
    let before = by_day.partition_point(|(day, _)| *day < event_day);
    let after = by_day.partition_point(|(day, _)| *day <= event_day);
    let earlier = by_day.get(before.checked_sub(DAYS_AROUND_EVENT)?..before)?;
    let later = by_day.get(after..after + DAYS_AROUND_EVENT)?;
    Some(split(&[earlier, later].concat(), DAYS_AROUND_EVENT, ALPHA_EVENT / events.max(1) as f64))
}

fn sorted_by_day(by_day: &[(i64, f64)]) -> Option<Vec<(i64, f64)>> {
    let mut sorted = by_day.to_vec();
    sorted.sort_by_key(|(day, _)| *day);
    sorted.iter().all(|(_, value)| value.is_finite()).then_some(sorted)
}

fn split(by_day: &[(i64, f64)], place: usize, alpha: f64) -> Split {
    let welch = welch(by_day, place);
    let deviations: Vec<(i64, f64)> = by_day
        .iter()
        .enumerate()
        .map(|(index, (day, value))| {
            (*day, value - if index < place { welch.means.0 } else { welch.means.1 })
        })
        .collect();
    Split {
        first_day: by_day[place].0,
        days: (place, by_day.len() - place),
        means: welch.means,
        t: welch.t / inflation_around_two_means(&deviations).sqrt(),
        critical: student_critical(alpha, welch.degrees_of_freedom),
    }
}

/// Result of Welch's t-test for the means of two parts.
struct Welch {
    means: (f64, f64),
    t: f64,
    degrees_of_freedom: f64,
}

fn welch(by_day: &[(i64, f64)], place: usize) -> Welch {
    let (before, after) = by_day.split_at(place);
    let (m1, e1) = mean_and_squared_error(before);
    let (m2, e2) = mean_and_squared_error(after);
    let (d1, d2) = (before.len() as f64 - 1.0, after.len() as f64 - 1.0);
    let freedom = (e1 + e2).powi(2) / (e1 * e1 / d1 + e2 * e2 / d2);
    let t = if m1 == m2 { 0.0 } else { (m2 - m1) / (e1 + e2).sqrt() };
    Welch { means: (m1, m2), t, degrees_of_freedom: if freedom.is_finite() { freedom } else { d1.min(d2) } }
}

/// Returns the mean and its squared standard error.
fn mean_and_squared_error(days: &[(i64, f64)]) -> (f64, f64) {
    let n = days.len() as f64;
    let mean = days.iter().map(|(_, value)| value).sum::<f64>() / n;
    let squares = days.iter().map(|(_, value)| (value - mean).powi(2)).sum::<f64>();
    (mean, squares / (n - 1.0) / n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::normal_days;
    use proptest::prelude::*;

    fn noise(seed: u64, days: i64) -> Vec<(i64, f64)> {
        normal_days(days, seed).into_iter().map(|(day, value)| (day, 0.08 * value)).collect()
    }

    fn with_step(mut by_day: Vec<(i64, f64)>, first_day: i64, step: f64) -> Vec<(i64, f64)> {
        by_day.iter_mut().filter(|(day, _)| *day >= first_day).for_each(|(_, value)| *value += step);
        by_day
    }

    #[test]
    fn step_is_found_on_the_right_day() {
        let found = best_split(&with_step(noise(1, 56), 30, 0.25)).unwrap();
        assert!(found.is_change() && (29..=31).contains(&found.first_day), "{found:?}");
        assert!((found.means.1 - found.means.0 - 0.25).abs() < 0.06, "{found:?}");
    }

    #[test]
    fn false_flags_at_unknown_time_stay_within_alpha() {
        let flagged = (0..4000).filter(|seed| best_split(&noise(*seed, 56)).unwrap().is_change()).count();
        assert!(flagged <= 12, "{flagged} of 4000 flagged, at most 4 expected");
    }

    #[test]
    fn false_flags_at_event_stay_within_alpha() {
        let flagged =
            (0..4000).filter(|seed| split_at_event(&noise(*seed, 30), 15, 1).unwrap().is_change()).count();
        assert!((10..=60).contains(&flagged), "{flagged} of 4000 flagged, 40 expected");
    }

    #[test]
    fn event_compares_fourteen_days_on_each_side() {
        let days = with_step(noise(3, 60), 31, 0.2);
        let found = split_at_event(&days, 30, 1).unwrap();
        assert_eq!((found.first_day, found.days), (31, (14, 14)));
        assert!(found.is_change(), "{found:?}");
        assert_eq!((split_at_event(&days, 13, 1), split_at_event(&days, 46, 1)), (None, None));
        assert!(split_at_event(&days, 14, 1).is_some() && split_at_event(&days, 45, 1).is_some());
    }

    #[test]
    fn fewer_than_fourteen_days_give_no_split() {
        assert_eq!(best_split(&noise(1, 13)), None);
        assert_eq!(best_split(&noise(1, 14)).unwrap().days, (7, 7));
        assert_eq!(best_split(&[]), None);
    }

    #[test]
    fn days_without_noise_give_correct_changes() {
        let equal: Vec<_> = (0..20).map(|day| (day, 0.5)).collect();
        assert!(!best_split(&equal).unwrap().is_change());
        assert!(best_split(&with_step(equal, 9, 0.25)).unwrap().is_change());
    }

    proptest! {
        #[test]
        fn any_series_gives_no_nan(by_day in proptest::collection::vec((any::<i64>(), any::<f64>()), 0..40), event: i64) {
            for split in [best_split(&by_day), split_at_event(&by_day, event, 1)].into_iter().flatten() {
                prop_assert!(!split.critical.is_nan());
            }
        }
    }
}
