//! The schedule that measures one target a week, for a NAS that can be mounted with one protocol at a time. Pure.
//!
//! Weeks alternate A B B A B A A B and so on, so that slow changes affect both targets alike
//! (docs/methodology.md#sequential-weeks: it takes half a year to find a difference of 20 %; a
//! single switch from A to B proves nothing).

use longhaul_model::Timestamp;

/// Order of two targets within eight weeks: false is the first target, true the second.
const ABBA_BAAB: [bool; 8] = [false, true, true, false, true, false, false, true];

/// Returns the number of the week of a moment, from 0. A week is seven local days,
/// counted from the local day of the first round.
pub fn week_number(first: Timestamp, now: Timestamp, utc_offset_seconds: i32) -> u64 {
    let day = |at: Timestamp| at.local_day(utc_offset_seconds);
    ((day(now) - day(first)).max(0) / 7).cast_unsigned()
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

    #[test]
    fn a_week_has_seven_local_days() {
        let first = Timestamp::UNIX_EPOCH + 22 * HOUR;
        assert_eq!(week_number(first, first + 7 * DAY - 23 * HOUR, 0), 0);
        assert_eq!(week_number(first, first + 7 * DAY - 22 * HOUR + Duration::from_micros(1), 0), 1);
        assert_eq!(week_number(first, Timestamp::UNIX_EPOCH, 0), 0, "a clock that was set back gives week 0");
    }
}
