//! Whether the ratio of two targets changed, at an unknown time or at a recorded event.

use super::sequential::inflation_around_two_means;
use super::student::student_critical;

/// A split at an unknown time leaves at least this many days on either side.
const DAYS_FROM_THE_ENDS: usize = 7;
/// How many valid days on either side of an event are compared.
const DAYS_AROUND_AN_EVENT: usize = 14;
/// The chance of a false flag at an unknown time; low, because the question is asked again every week.
const ALPHA_UNKNOWN: f64 = 0.001;
/// The chance of a false flag at any of the recorded events.
const ALPHA_EVENT: f64 = 0.01;

/// A series of log ratios cut in two.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Split {
    /// The first day of the second part.
    pub first_day: i64,
    /// Days before and after.
    pub days: (usize, usize),
    /// Mean log ratio before and after.
    pub means: (f64, f64),
    /// Welch's t of the difference, divided by the root of the inflation by autocorrelation within the parts.
    pub t: f64,
    /// What `t` has to exceed in absolute value to be a change.
    pub critical: f64,
}

impl Split {
    /// Whether the ratio changed here.
    pub fn is_change(&self) -> bool {
        self.t.abs() > self.critical
    }
}

/// The split of `(day number, log ratio)` with the largest Welch t, at least seven days from both ends.
///
/// The critical value is Bonferroni's: the chance of a false flag, 0.001, is divided by the number of possible splits.
/// Neighbouring splits share their days, so that it is a bound. `None` below fourteen days and with a value that is not
/// finite.
pub fn best_split(by_day: &[(i64, f64)]) -> Option<Split> {
    let by_day = sorted(by_day)?;
    let last = by_day.len().checked_sub(DAYS_FROM_THE_ENDS)?;
    let places = DAYS_FROM_THE_ENDS..=last;
    let splits = places.end().checked_sub(*places.start())? + 1;
    let place = places.max_by(|a, b| welch(&by_day, *a).t.abs().total_cmp(&welch(&by_day, *b).t.abs()))?;
    Some(split(&by_day, place, ALPHA_UNKNOWN / splits as f64))
}

/// The split at an event: the fourteen valid days before its day against the fourteen after it. Its own day, of which
/// a part lies on either side, belongs to neither. `events` is how many events are asked about: the chance of a false
/// flag is divided by it.
///
/// `None` while there are fewer days on a side, and with a value that is not finite.
pub fn split_at_event(by_day: &[(i64, f64)], event_day: i64, events: usize) -> Option<Split> {
    let by_day = sorted(by_day)?;
    let before = by_day.partition_point(|(day, _)| *day < event_day);
    let after = by_day.partition_point(|(day, _)| *day <= event_day);
    let earlier = by_day.get(before.checked_sub(DAYS_AROUND_AN_EVENT)?..before)?;
    let later = by_day.get(after..after + DAYS_AROUND_AN_EVENT)?;
    Some(split(&[earlier, later].concat(), DAYS_AROUND_AN_EVENT, ALPHA_EVENT / events.max(1) as f64))
}

fn sorted(by_day: &[(i64, f64)]) -> Option<Vec<(i64, f64)>> {
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
        critical: student_critical(alpha, welch.freedom),
    }
}

/// Welch's comparison of two means.
struct Welch {
    means: (f64, f64),
    t: f64,
    freedom: f64,
}

fn welch(by_day: &[(i64, f64)], place: usize) -> Welch {
    let (before, after) = by_day.split_at(place);
    let (m1, e1) = mean_and_error(before);
    let (m2, e2) = mean_and_error(after);
    let (d1, d2) = (before.len() as f64 - 1.0, after.len() as f64 - 1.0);
    let freedom = (e1 + e2).powi(2) / (e1 * e1 / d1 + e2 * e2 / d2);
    let t = if m1 == m2 { 0.0 } else { (m2 - m1) / (e1 + e2).sqrt() };
    Welch { means: (m1, m2), t, freedom: if freedom.is_finite() { freedom } else { d1.min(d2) } }
}

/// The mean, and its squared standard error.
fn mean_and_error(days: &[(i64, f64)]) -> (f64, f64) {
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
    fn a_step_is_found_where_it_is() {
        let found = best_split(&with_step(noise(1, 56), 30, 0.25)).unwrap();
        assert!(found.is_change() && (29..=31).contains(&found.first_day), "{found:?}");
        assert!((found.means.1 - found.means.0 - 0.25).abs() < 0.06, "{found:?}");
    }

    #[test]
    fn quiet_days_are_flagged_no_oftener_than_promised() {
        let flagged = (0..4000).filter(|seed| best_split(&noise(*seed, 56)).unwrap().is_change()).count();
        assert!(flagged <= 12, "{flagged} of 4000, 4 are promised");
    }

    #[test]
    fn an_event_without_effect_is_flagged_no_oftener_than_promised() {
        let flagged =
            (0..4000).filter(|seed| split_at_event(&noise(*seed, 30), 15, 1).unwrap().is_change()).count();
        assert!((10..=60).contains(&flagged), "{flagged} of 4000, 40 are promised");
    }

    #[test]
    fn an_event_compares_fourteen_days_with_fourteen_and_leaves_its_own_out() {
        let days = with_step(noise(3, 60), 31, 0.2);
        let found = split_at_event(&days, 30, 1).unwrap();
        assert_eq!((found.first_day, found.days), (31, (14, 14)));
        assert!(found.is_change(), "{found:?}");
        assert_eq!((split_at_event(&days, 13, 1), split_at_event(&days, 46, 1)), (None, None));
        assert!(split_at_event(&days, 14, 1).is_some() && split_at_event(&days, 45, 1).is_some());
    }

    #[test]
    fn too_few_days_make_no_split() {
        assert_eq!(best_split(&noise(1, 13)), None);
        assert_eq!(best_split(&noise(1, 14)).unwrap().days, (7, 7));
        assert_eq!(best_split(&[]), None);
    }

    #[test]
    fn equal_days_are_no_change_and_a_clean_step_is_one() {
        let equal: Vec<_> = (0..20).map(|day| (day, 0.5)).collect();
        assert!(!best_split(&equal).unwrap().is_change());
        assert!(best_split(&with_step(equal, 9, 0.25)).unwrap().is_change());
    }

    proptest! {
        #[test]
        fn any_series_is_survived(by_day in proptest::collection::vec((any::<i64>(), any::<f64>()), 0..40), event: i64) {
            for split in [best_split(&by_day), split_at_event(&by_day, event, 1)].into_iter().flatten() {
                prop_assert!(!split.critical.is_nan());
            }
        }
    }
}
