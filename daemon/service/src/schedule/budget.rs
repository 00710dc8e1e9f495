//! Limits on what measuring may use: bytes a day on each target, share of the time, free space. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use longhaul_model::time::DAY;
use longhaul_model::{FreeSpaceReserve, Target, TargetName, Timestamp};
use longhaul_store::FreeSpace;

use super::skip::SkipReason;

/// Age up to which a reading of free space is trusted.
const FREE_SPACE_VALID: Duration = Duration::from_hours(6);

/// Limits of what measuring may use.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Budget {
    /// Bytes that may be read and written on one target within 24 hours. `None`: no limit.
    pub bytes_per_day: Option<u64>,
    /// Largest share of the last 24 hours that rounds may take, from 0 to 1. `None`: no limit.
    pub max_time_share: Option<f64>,
    /// Space that must stay free on each target.
    pub reserve: FreeSpaceReserve,
}

/// Bytes and time that rounds used in the last 24 hours, and the free space of the targets.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Usage {
    /// Bytes read and written on each target in the last 24 hours.
    pub bytes: BTreeMap<TargetName, u64>,
    /// Largest number of bytes of one round on each target in the last 24 hours, used as
    /// the estimate for the next round.
    pub max_bytes_per_round: BTreeMap<TargetName, u64>,
    /// Time that rounds took in the last 24 hours.
    pub busy: Duration,
    /// Free space of each target, as last observed by a worker.
    pub free_space: BTreeMap<TargetName, FreeSpace>,
    /// Time at which the usage was read.
    pub measured: Timestamp,
}

/// Returns the reason why the next round would exceed the budget. `None`: it stays within it.
pub fn over_budget_reason(budget: &Budget, usage: &Usage, targets: &[Target]) -> Option<SkipReason> {
    let bytes =
        || targets.iter().find_map(|target| over_byte_budget(budget.bytes_per_day?, usage, &target.name));
    let free =
        || targets.iter().find_map(|target| too_little_free_space(budget.reserve, usage, &target.name));
    bytes().or_else(|| over_time_budget(budget.max_time_share?, usage.busy)).or_else(free)
}

fn over_byte_budget(limit: u64, usage: &Usage, name: &TargetName) -> Option<SkipReason> {
    let used = usage.bytes.get(name).copied().unwrap_or(0);
    let next = usage.max_bytes_per_round.get(name).copied().unwrap_or(0);
    (used.saturating_add(next) > limit).then(|| {
        let text = format!(
            "{} were read and written on `{name}` in the last 24 hours and a round takes {}; the limit is {}",
            amount(used),
            amount(next),
            amount(limit)
        );
        SkipReason::new("byte-budget", text)
    })
}

fn amount(bytes: u64) -> String {
    match bytes as f64 / 1e6 {
        megabytes if megabytes < 1e3 => format!("{megabytes:.1} MB"),
        megabytes => format!("{:.2} GB", megabytes / 1e3),
    }
}

fn over_time_budget(limit: f64, busy: Duration) -> Option<SkipReason> {
    let share = busy.div_duration_f64(DAY);
    (share >= limit).then(|| {
        let text = format!(
            "rounds took {:.1} % of the last 24 hours; the limit is {:.1} %",
            share * 100.0,
            limit * 100.0
        );
        SkipReason::new("time-budget", text)
    })
}

/// Returns the skip reason if a target has too little free space. Old readings are ignored: only a round takes
/// a new one, so they would block all rounds for ever.
fn too_little_free_space(reserve: FreeSpaceReserve, usage: &Usage, name: &TargetName) -> Option<SkipReason> {
    let space =
        usage.free_space.get(name).filter(|space| usage.measured.since(space.observed) < FREE_SPACE_VALID)?;
    let reserve_bytes = reserve.bytes_of(space.total_bytes?);
    (space.free_bytes < reserve_bytes).then(|| {
        let gigabytes = |bytes: u64| bytes as f64 / 1e9;
        let text = format!(
            "`{name}` had {:.2} GB free when last checked; {:.2} GB must stay free",
            gigabytes(space.free_bytes),
            gigabytes(reserve_bytes)
        );
        SkipReason::new("free-space", text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::Role;
    use longhaul_model::time::HOUR;

    fn smb() -> Target {
        Target { name: "smb".parse().unwrap(), path: "/x".into(), role: Role::Share }
    }

    fn code(budget: Budget, usage: &Usage) -> Option<&'static str> {
        over_budget_reason(&budget, usage, &[smb()]).map(|reason| reason.code)
    }

    #[test]
    fn round_that_would_exceed_the_byte_limit_is_skipped() {
        let budget = Budget { bytes_per_day: Some(100), ..Budget::default() };
        let usage = |used: u64, next: u64| Usage {
            bytes: BTreeMap::from([(smb().name, used)]),
            max_bytes_per_round: BTreeMap::from([(smb().name, next)]),
            ..Usage::default()
        };
        assert_eq!(code(budget, &usage(60, 40)), None);
        assert_eq!(code(budget, &usage(61, 40)), Some("byte-budget"));
        assert_eq!(code(budget, &Usage::default()), None);
    }

    #[test]
    fn round_is_skipped_when_the_time_limit_is_reached() {
        let busy = Usage { busy: DAY / 10, ..Usage::default() };
        assert_eq!(
            code(Budget { max_time_share: Some(0.1), ..Budget::default() }, &busy),
            Some("time-budget")
        );
        assert_eq!(code(Budget { max_time_share: Some(0.11), ..Budget::default() }, &busy), None);
    }

    #[test]
    fn full_target_is_tried_again_after_six_hours() {
        let budget = Budget { reserve: FreeSpaceReserve::share(0.05), ..Budget::default() };
        let after = |hours: u32, free_bytes: u64| {
            let space = FreeSpace { free_bytes, total_bytes: Some(100), observed: Timestamp::UNIX_EPOCH };
            let free_space = BTreeMap::from([(smb().name, space)]);
            let measured = Timestamp::UNIX_EPOCH + hours * HOUR;
            code(budget, &Usage { free_space, measured, ..Usage::default() })
        };
        assert_eq!((after(1, 4), after(1, 5)), (Some("free-space"), None));
        assert_eq!((after(5, 4), after(6, 4)), (Some("free-space"), None));
        assert_eq!(code(budget, &Usage::default()), None);
    }
}
