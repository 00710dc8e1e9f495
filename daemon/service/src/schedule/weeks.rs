//! The schedule that measures one target a week, for a NAS that can be mounted with one protocol at a time. Pure.
//!
//! Weeks alternate A B B A B A A B and so on, so that slow changes affect both targets alike
//! (docs/methodology.md#sequential-weeks: it takes half a year to find a difference of 20 %; a
//! single switch from A to B proves nothing).

use longhaul_model::Timestamp;

/// Order of two targets within eight weeks: false is the first target, true the second.
const ABBA_BAAB: [bool; 8] = [false, true, true, false, true, false, false, true];

/// Returns the number of the week of a moment, from 0. A week begins on Monday, as in the analysis; the first one is that of the
/// first round.
pub fn week_number(first: Timestamp, now: Timestamp, utc_offset_seconds: i32) -> u64 {
    // Day 0, 1970-01-01, was a Thursday, three days after a Monday.
    let week = |at: Timestamp| (at.local_day(utc_offset_seconds) + 3).div_euclid(7);
    (week(now) - week(first)).max(0).cast_unsigned()
}

/// Returns the index of the target that is measured in a week. Two targets follow ABBA BAAB; more than two take
/// turns forwards and then backwards, which also balances slow changes.
pub fn target_of_week(week: u64, targets: usize) -> usize {
    if targets == 2 {
        return usize::from(ABBA_BAAB[(week % 8) as usize]);
    }
    let targets = targets.max(1) as u64;
    let (pass, index) = (week / targets, week % targets);
    (if pass.is_multiple_of(2) { index } else { targets - 1 - index }) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::time::{DAY, HOUR};
    use std::time::Duration;

    #[test]
    fn eight_weeks_are_abba_baab_and_balanced() {
        let weeks: Vec<usize> = (0..8).map(|week| target_of_week(week, 2)).collect();
        assert_eq!(weeks, [0, 1, 1, 0, 1, 0, 0, 1]);
        let three: Vec<usize> = (0..6).map(|week| target_of_week(week, 3)).collect();
        assert_eq!(three, [0, 1, 2, 2, 1, 0]);
    }

    /// Returns a time on a day from 1970-01-05 on, a Monday.
    fn noon(day: u32) -> Timestamp {
        Timestamp::UNIX_EPOCH + (4 + day) * DAY + 12 * HOUR
    }

    #[test]
    fn weeks_begin_on_monday_on_whatever_day_the_first_round_is() {
        for first in 0..7 {
            let weeks: Vec<u64> = (first..21).map(|day| week_number(noon(first), noon(day), 0)).collect();
            let of_calendar: Vec<u64> = (first..21).map(|day| u64::from(day / 7)).collect();
            assert_eq!(weeks, of_calendar, "first round on day {first}");
        }
    }

    #[test]
    fn week_changes_at_local_midnight() {
        let (first, monday) = (noon(0), noon(7) - 12 * HOUR);
        assert_eq!(week_number(first, monday - Duration::from_micros(1), 0), 0);
        assert_eq!(week_number(first, monday, 0), 1);
        assert_eq!(week_number(first, monday, -3_600), 0, "it is still Sunday west of Greenwich");
        assert_eq!(week_number(first, Timestamp::UNIX_EPOCH, 0), 0, "a clock that was set back gives week 0");
    }
}
