//! One protocol a week, for people whose NAS can be mounted in one way at a time. Pure.
//!
//! Weeks alternate A B B A B A A B and so on, so that a slow drift of everything else falls on both alike
//! (knowledge: sequential weeks need at least four pairs; a single A-then-B switch says nothing).

/// The order within eight weeks: false is the first target, true the second.
const ABBA_BAAB: [bool; 8] = [false, true, true, false, true, false, false, true];

const DAY_SECONDS: i64 = 24 * 3600;

/// The week that a moment lies in, from 0: seven local days each, from the local day of the first round.
pub fn week(first_us: i64, now_us: i64, utc_offset_seconds: i32) -> u64 {
    let day = |us: i64| (us.div_euclid(1_000_000) + i64::from(utc_offset_seconds)).div_euclid(DAY_SECONDS);
    ((day(now_us) - day(first_us)).max(0) / 7).cast_unsigned()
}

/// Which of so many targets it is the turn of in a week. For two that is ABBA BAAB; more than two take turns forwards
/// and backwards, which is the same idea.
pub fn turn(week: u64, targets: usize) -> usize {
    if targets == 2 {
        return usize::from(ABBA_BAAB[(week % 8) as usize]);
    }
    let targets = targets.max(1) as u64;
    let (lap, place) = (week / targets, week % targets);
    (if lap.is_multiple_of(2) { place } else { targets - 1 - place }) as usize
}

/// What has to be said beside every result of this design.
pub const CAVEAT: &str = "Weeks with one protocol and weeks with another are different weeks: if anything else changed, \
    this design cannot tell it from the protocol.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_weeks_are_abba_baab_and_balanced() {
        let weeks: Vec<usize> = (0..8).map(|week| turn(week, 2)).collect();
        assert_eq!(weeks, [0, 1, 1, 0, 1, 0, 0, 1]);
        let three: Vec<usize> = (0..6).map(|week| turn(week, 3)).collect();
        assert_eq!(three, [0, 1, 2, 2, 1, 0]);
    }

    #[test]
    fn a_week_is_seven_local_days() {
        const HOUR: i64 = 3_600_000_000;
        let first = 22 * HOUR;
        assert_eq!(week(first, first + 7 * 24 * HOUR - 23 * HOUR, 0), 0);
        assert_eq!(week(first, first + 7 * 24 * HOUR - 22 * HOUR + 1, 0), 1);
        assert_eq!(week(first, 0, 0), 0, "a clock that was set back does not break it");
    }
}
