//! Hard limits on what measuring takes: bytes a day on each target, a share of the time, free space. Pure.

use std::collections::BTreeMap;

use longhaul_measure::model::{Target, TargetName};
use longhaul_store::Room;

use super::skip::Reason;

/// A day in microseconds: what budgets are counted over, always the last 24 hours.
pub const DAY_US: i64 = 24 * 3600 * 1_000_000;
/// For so long a target is taken to be as full as it was found.
const ROOM_KNOWN_US: i64 = DAY_US / 4;

/// What may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Budget {
    /// Bytes read and written on one target in 24 hours; `None`: as many as it takes.
    pub bytes_per_day: Option<u64>,
    /// Share of the last 24 hours that rounds may take, from 0 to 1; `None`: any.
    pub duty: Option<f64>,
    /// Share of a target that stays free, from 0 to 1.
    pub free_floor: f64,
}

/// What was taken, and what there is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Usage {
    /// Bytes on each target in the last 24 hours.
    pub bytes: BTreeMap<TargetName, u64>,
    /// The most that a round has taken on each target in that time: what the next one is expected to take.
    pub most_in_a_round: BTreeMap<TargetName, u64>,
    /// Microseconds of the last 24 hours that rounds took.
    pub busy_us: i64,
    /// The space on each target, as a worker last found it.
    pub rooms: BTreeMap<TargetName, Room>,
    /// When all this was counted, in microseconds since 1970 UTC.
    pub counted_us: i64,
}

/// Why the next round would break the budget; `None`: it would not.
pub fn reason(budget: &Budget, usage: &Usage, targets: &[Target]) -> Option<Reason> {
    let bytes = || targets.iter().find_map(|target| over_bytes(budget.bytes_per_day?, usage, &target.name));
    let free = || targets.iter().find_map(|target| too_full(budget.free_floor, usage, &target.name));
    bytes().or_else(|| over_duty(budget.duty?, usage.busy_us)).or_else(free)
}

fn over_bytes(most: u64, usage: &Usage, name: &TargetName) -> Option<Reason> {
    let used = usage.bytes.get(name).copied().unwrap_or(0);
    let next = usage.most_in_a_round.get(name).copied().unwrap_or(0);
    (used.saturating_add(next) > most).then(|| {
        let gigabytes = |bytes: u64| bytes as f64 / 1e9;
        let text = format!(
            "`{name}` had {:.2} GB read and written in 24 hours and a round takes {:.2} GB; {:.2} GB are allowed",
            gigabytes(used),
            gigabytes(next),
            gigabytes(most)
        );
        Reason::new("budget", text)
    })
}

fn over_duty(most: f64, busy_us: i64) -> Option<Reason> {
    let share = busy_us as f64 / DAY_US as f64;
    (share >= most).then(|| {
        let text = format!(
            "rounds took {:.1} % of the last 24 hours; {:.1} % are allowed",
            share * 100.0,
            most * 100.0
        );
        Reason::new("duty", text)
    })
}

/// Only a round finds out that there is room again, so what was found a while ago keeps none away.
fn too_full(floor: f64, usage: &Usage, name: &TargetName) -> Option<Reason> {
    let room = usage.rooms.get(name).filter(|room| usage.counted_us - room.found_us < ROOM_KNOWN_US)?;
    let least = (room.total_bytes? as f64 * floor) as u64;
    (room.free_bytes < least).then(|| {
        let gigabytes = |bytes: u64| bytes as f64 / 1e9;
        let text = format!(
            "`{name}` had {:.2} GB free when it was last asked; {:.2} GB have to stay free",
            gigabytes(room.free_bytes),
            gigabytes(least)
        );
        Reason::new("free-space", text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_measure::model::Role;

    fn smb() -> Target {
        Target { name: "smb".parse().unwrap(), path: "/x".into(), role: Role::Share }
    }

    fn word(budget: Budget, usage: &Usage) -> Option<&'static str> {
        reason(&budget, usage, &[smb()]).map(|reason| reason.word)
    }

    #[test]
    fn a_round_that_would_go_beyond_the_bytes_is_not_begun() {
        let budget = Budget { bytes_per_day: Some(100), ..Budget::default() };
        let usage = |used: u64, next: u64| Usage {
            bytes: BTreeMap::from([(smb().name, used)]),
            most_in_a_round: BTreeMap::from([(smb().name, next)]),
            ..Usage::default()
        };
        assert_eq!(word(budget, &usage(60, 40)), None);
        assert_eq!(word(budget, &usage(61, 40)), Some("budget"));
        assert_eq!(word(budget, &Usage::default()), None);
    }

    #[test]
    fn time_is_a_limit_too() {
        let busy = Usage { busy_us: DAY_US / 10, ..Usage::default() };
        assert_eq!(word(Budget { duty: Some(0.1), ..Budget::default() }, &busy), Some("duty"));
        assert_eq!(word(Budget { duty: Some(0.11), ..Budget::default() }, &busy), None);
    }

    #[test]
    fn a_target_that_was_too_full_is_asked_again_after_six_hours() {
        let budget = Budget { free_floor: 0.05, ..Budget::default() };
        let after = |hours: i64, free_bytes: u64| {
            let room = Room { free_bytes, total_bytes: Some(100), found_us: 0 };
            let rooms = BTreeMap::from([(smb().name, room)]);
            word(budget, &Usage { rooms, counted_us: hours * 3_600_000_000, ..Usage::default() })
        };
        assert_eq!((after(1, 4), after(1, 5)), (Some("free-space"), None));
        assert_eq!((after(5, 4), after(6, 4)), (Some("free-space"), None));
        assert_eq!(word(budget, &Usage::default()), None);
    }
}
