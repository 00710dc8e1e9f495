//! Estimates the cost of a plan: bytes, time, and weeks until a difference can be detected. Pure.

use longhaul_model::time::DAY;
use longhaul_model::{Outcome, Run, Scale, median};
use longhaul_presets::preset;
use longhaul_presets::profile::Profile;

/// Assumed share of the day in which a machine is awake: it sleeps for seven hours of most nights. The table in
/// docs/methodology.md#how-long-it-takes, which [`weeks_until_detectable`] uses, was made with the same share.
const ASSUMED_AWAKE_SHARE: f64 = 17.0 / 24.0;

/// Assumed duration of an operation over typical Wi-Fi, in seconds, for workloads without measurements.
const ASSUMED_OPERATION_SECONDS: f64 = 0.001;
/// Assumed throughput of typical Wi-Fi in bytes a second, for workloads without measurements.
const ASSUMED_BYTES_PER_SECOND: f64 = 30e6;

/// Traffic and duration of one round on one target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoundLoad {
    /// Number of bytes read and written.
    pub bytes: f64,
    /// Duration in seconds.
    pub seconds: f64,
}

impl std::iter::Sum for RoundLoad {
    fn sum<I: Iterator<Item = Self>>(loads: I) -> Self {
        loads.fold(Self { bytes: 0.0, seconds: 0.0 }, |sum, load| Self {
            bytes: sum.bytes + load.bytes,
            seconds: sum.seconds + load.seconds,
        })
    }
}

/// Measured traffic and operations of one workload in one round.
struct MeasuredCost {
    workload: &'static str,
    megabytes: f64,
    operations: f64,
    /// Time in seconds in which the simulated user looks at a picture and the target is idle.
    think_time_seconds: f64,
}

const fn measured_cost(
    workload: &'static str,
    megabytes: f64,
    operations: f64,
    think_time_seconds: f64,
) -> MeasuredCost {
    MeasuredCost { workload, megabytes, operations, think_time_seconds }
}

/// Cost of each workload at scale quick, as `longhaul run --json` reported it on a local ext4 disk in November
/// 2026. Mean of two rounds (scale large: one round). Bytes differ by up to a tenth
/// between rounds, because slices do.
const QUICK_COSTS: [MeasuredCost; 5] = [
    measured_cost("folder-index", 0.5, 6_845.0, 0.0),
    measured_cost("photo-batch", 33.9, 290.0, 4.0),
    measured_cost("incremental-backup", 0.6, 934.0, 0.0),
    measured_cost("time-machine", 99.5, 1_727.0, 0.0),
    measured_cost("time-machine-throttled", 99.5, 1_727.0, 0.0),
];
/// Cost of each workload at scale standard, measured like [`QUICK_COSTS`].
const STANDARD_COSTS: [MeasuredCost; 5] = [
    measured_cost("folder-index", 0.6, 11_474.0, 0.0),
    measured_cost("photo-batch", 135.0, 1_825.0, 76.0),
    measured_cost("incremental-backup", 2.0, 4_776.0, 0.0),
    measured_cost("time-machine", 232.1, 2_572.0, 0.0),
    measured_cost("time-machine-throttled", 232.1, 2_572.0, 0.0),
];
/// Cost of each workload at scale large, measured like [`QUICK_COSTS`].
const LARGE_COSTS: [MeasuredCost; 5] = [
    measured_cost("folder-index", 0.5, 113_949.0, 0.0),
    measured_cost("photo-batch", 188.4, 5_518.0, 76.0),
    measured_cost("incremental-backup", 15.7, 45_596.0, 0.0),
    measured_cost("time-machine", 694.1, 5_677.0, 0.0),
    measured_cost("time-machine-throttled", 694.1, 5_677.0, 0.0),
];

/// The source of an estimate: runs on this machine, or the built-in tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CostBasis {
    /// Every workload's cost comes from runs on this machine.
    Measured {
        /// Number of runs used.
        runs: usize,
    },
    /// At least one workload's cost comes from the built-in tables and an assumed network.
    Assumed,
}

/// Returns the load of a round on one target: from stored runs, or from the built-in
/// tables for a workload without runs.
pub fn round_load(scale: Scale, workloads: &[String], runs: &[Run]) -> (RoundLoad, CostBasis) {
    let mut used = 0;
    let mut assumed = false;
    let loads = workloads.iter().map(|workload| {
        // A run of the whole corpus costs a multiple of a run of one slice, so only runs of
        // the same kind are used.
        let by_slices = preset(workload).is_some_and(|preset| preset.profile.scaled_to(scale).slices > 1);
        let fits = |run: &&Run| run.workload == *workload && run.scale == scale && run.outcome == Outcome::Ok;
        let found: Vec<&Run> = runs.iter().filter(fits).filter(|run| run.is_partial() == by_slices).collect();
        used += found.len();
        measured_load(&found).unwrap_or_else(|| {
            assumed = true;
            tabulated_load(scale, workload)
        })
    });
    let load = loads.sum();
    (load, if assumed || used == 0 { CostBasis::Assumed } else { CostBasis::Measured { runs: used } })
}

fn measured_load(runs: &[&Run]) -> Option<RoundLoad> {
    let bytes =
        |run: &&Run| run.phases.iter().map(|phase| (phase.bytes_read + phase.bytes_written) as f64).sum();
    Some(RoundLoad {
        bytes: median(&runs.iter().map(bytes).collect::<Vec<f64>>())?,
        seconds: median(&runs.iter().map(|run| run.seconds).collect::<Vec<f64>>())?,
    })
}

/// Returns the load of one run of a profile on a target, including its preparation.
pub fn profile_load(profile: &Profile) -> RoundLoad {
    let cost = profile.cost();
    let bytes = cost.setup_bytes as f64 + cost.bytes_written as f64 + cost.bytes_read as f64;
    RoundLoad {
        bytes,
        seconds: cost.seconds
            + cost.calls as f64 * ASSUMED_OPERATION_SECONDS
            + bytes / ASSUMED_BYTES_PER_SECOND,
    }
}

/// Returns a workload's load without any measurement: presets from their profile, others from the tables. A
/// workload missing in the tables counts as the last entry, the largest.
fn tabulated_load(scale: Scale, workload: &str) -> RoundLoad {
    if let Some(found) = preset(workload) {
        return profile_load(&found.round_profile(scale));
    }
    let table = match scale {
        Scale::Quick => &QUICK_COSTS,
        Scale::Standard => &STANDARD_COSTS,
        Scale::Large => &LARGE_COSTS,
    };
    let cost = table.iter().find(|cost| cost.workload == workload).unwrap_or(&table[4]);
    let bytes = cost.megabytes * 1e6;
    let seconds = cost.think_time_seconds
        + cost.operations * ASSUMED_OPERATION_SECONDS
        + bytes / ASSUMED_BYTES_PER_SECOND;
    RoundLoad { bytes, seconds }
}

/// The parts of a plan that determine its cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostRequest {
    /// Number of shares in the comparison.
    pub shares: usize,
    /// Mean number of targets in a round: baselines take part in some rounds only.
    pub targets_per_round: f64,
    /// Load of one round on each target.
    pub round_load: RoundLoad,
    /// Number of rounds that the schedule plans in 24 hours.
    pub rounds_per_day: f64,
    /// Bytes that may be read and written on one target within 24 hours. `None`: no limit.
    pub bytes_per_day: Option<u64>,
    /// Largest share of the time that rounds may take, from 0 to 1. `None`: no limit.
    pub max_time_share: Option<f64>,
}

/// The constraint that limits the number of rounds a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitingFactor {
    /// The schedule, on a machine that sleeps at night.
    Schedule,
    /// The limit for bytes a day.
    Bytes,
    /// The limit for the share of time.
    Time,
}

/// The cost of a plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostEstimate {
    /// Expected number of rounds in 24 hours.
    pub rounds_per_day: f64,
    /// The constraint that limits the number of rounds.
    pub limited_by: LimitingFactor,
    /// Bytes read and written on each target in 24 hours.
    pub bytes_per_day: f64,
    /// Minutes that rounds take in an hour in which the machine is awake.
    pub minutes_per_hour: f64,
    /// Weeks until a difference of 10 % is detected. `None`: this case was not simulated.
    pub weeks_until_detectable: Option<f64>,
}

/// Estimates the cost of a plan.
pub fn estimate_cost(request: &CostRequest) -> CostEstimate {
    let round_seconds = request.round_load.seconds * request.targets_per_round;
    let by_bytes = request.bytes_per_day.map(|bytes| (bytes as f64 / request.round_load.bytes).floor());
    let by_time = request.max_time_share.map(|share| (share * DAY.as_secs_f64() / round_seconds).floor());
    let bounds = [
        (Some(request.rounds_per_day * ASSUMED_AWAKE_SHARE), LimitingFactor::Schedule),
        (by_bytes, LimitingFactor::Bytes),
        (by_time, LimitingFactor::Time),
    ];
    let bounds = bounds.into_iter().filter_map(|(rounds, bound)| Some((rounds?, bound)));
    let (rounds_per_day, bound) =
        bounds.min_by(|a, b| a.0.total_cmp(&b.0)).expect("the schedule is always a bound");
    CostEstimate {
        rounds_per_day,
        limited_by: bound,
        bytes_per_day: rounds_per_day * request.round_load.bytes,
        minutes_per_hour: request.rounds_per_day.min(rounds_per_day / ASSUMED_AWAKE_SHARE) / 24.0
            * round_seconds
            / 60.0,
        weeks_until_detectable: weeks_until_detectable(rounds_per_day, request.shares),
    }
}

/// Simulated waiting times on typical Wi-Fi (docs/methodology.md#how-long-it-takes).
const WAITING_TIMES: [WaitingTime; 3] = [
    WaitingTime { rounds_per_day: 4.25, two_targets: 49.0, three_targets: 58.0 },
    WaitingTime { rounds_per_day: 8.5, two_targets: 36.0, three_targets: 42.0 },
    WaitingTime { rounds_per_day: 17.0, two_targets: 31.0, three_targets: 33.0 },
];

/// Days after which four fifths of the simulated reports had claimed a true difference of 10 %.
struct WaitingTime {
    rounds_per_day: f64,
    two_targets: f64,
    three_targets: f64,
}

/// Returns the weeks until a difference of 10 % between two targets is claimed with a probability of 80 % on typical Wi-Fi.
/// Values between the simulated numbers of rounds are interpolated by a power law. `None` for fewer rounds a day and for more
/// than three targets, which were not simulated.
pub fn weeks_until_detectable(rounds_per_day: f64, targets: usize) -> Option<f64> {
    let weeks = |time: &WaitingTime| match targets {
        0..=2 => Some(time.two_targets / 7.0),
        3 => Some(time.three_targets / 7.0),
        _ => None,
    };
    let [first, .., last] = &WAITING_TIMES;
    if rounds_per_day < first.rounds_per_day {
        return None;
    }
    let rounds = rounds_per_day.min(last.rounds_per_day);
    let point = |time: &WaitingTime| Some(Point { x: time.rounds_per_day, y: weeks(time)? });
    WAITING_TIMES.windows(2).find_map(|pair| match pair {
        [low, high] if rounds <= high.rounds_per_day => Some(interpolate(rounds, point(low)?, point(high)?)),
        _ => None,
    })
}

/// A point of a curve.
#[derive(Clone, Copy)]
struct Point {
    x: f64,
    y: f64,
}

/// Interpolates between two points on a straight line in log-log space.
fn interpolate(x: f64, low: Point, high: Point) -> f64 {
    let share = (x / low.x).ln() / (high.x / low.x).ln();
    low.y * (high.y / low.y).powf(share)
}

#[cfg(test)]
mod tests {
    use longhaul_model::{CacheState, Phase, STANDARD_TASKS, Timestamp};

    use super::*;

    fn all() -> Vec<String> {
        STANDARD_TASKS.iter().map(|workload| workload.name().to_owned()).collect()
    }

    fn near(found: f64, wanted: f64) -> bool {
        (found - wanted).abs() < 0.03 * wanted
    }

    #[test]
    fn tables_contain_every_workload() {
        for name in all() {
            assert!(
                [&QUICK_COSTS, &STANDARD_COSTS, &LARGE_COSTS]
                    .iter()
                    .all(|table| table.iter().any(|cost| cost.workload == name)),
                "{name}"
            );
        }
    }

    #[test]
    fn round_load_equals_the_measured_tables() {
        let megabytes = |scale| round_load(scale, &all(), &[]).0.bytes / 1e6;
        assert!(near(megabytes(Scale::Quick), 234.0) && near(megabytes(Scale::Standard), 602.0));
        assert!(near(megabytes(Scale::Large), 1_593.0));
        assert_eq!(round_load(Scale::Quick, &all(), &[]).1, CostBasis::Assumed);
    }

    #[test]
    fn weeks_are_those_of_the_simulation() {
        for (rounds, weeks) in
            [(4.25, 7.0), (6.0, 6.0), (8.5, 5.14), (12.0, 4.78), (17.0, 4.43), (100.0, 4.43)]
        {
            let found = weeks_until_detectable(rounds, 2).unwrap();
            assert!(near(found, weeks), "{rounds} rounds: {found}");
        }
        assert!(near(weeks_until_detectable(17.0, 3).unwrap(), 4.71));
        assert_eq!(weeks_until_detectable(4.2, 2), None);
        assert_eq!(weeks_until_detectable(17.0, 4), None);
    }

    #[test]
    fn more_rounds_are_not_slower_nor_three_targets_faster() {
        let rounds: Vec<f64> = (9..=60).map(|half| f64::from(half) / 2.0).collect();
        for targets in [2, 3] {
            let weeks: Vec<f64> =
                rounds.iter().map(|rounds| weeks_until_detectable(*rounds, targets).unwrap()).collect();
            assert!(weeks.is_sorted_by(|a, b| a >= b), "{weeks:?}");
        }
        for rounds in rounds {
            assert!(weeks_until_detectable(rounds, 3) >= weeks_until_detectable(rounds, 2));
        }
    }

    fn run(workload: &str, bytes: u64, outcome: Outcome) -> Run {
        let phase = Phase {
            seconds: 3.0,
            bytes_read: bytes,
            bytes_written: 1,
            ..Phase::new("cold", CacheState::Cold)
        };
        Run {
            outcome,
            seconds: 5.0,
            phases: vec![phase],
            ..Run::new(1, "nas".parse().unwrap(), workload, Timestamp::UNIX_EPOCH)
        }
    }

    #[test]
    fn runs_on_this_machine_replace_the_tables() {
        let one = ["folder-index".to_owned()];
        let runs = [100, 300, 200].map(|bytes| run("folder-index", bytes, Outcome::Ok));
        let (load, basis) = round_load(Scale::Quick, &one, &runs);
        assert_eq!((load.bytes, load.seconds, basis), (201.0, 5.0, CostBasis::Measured { runs: 3 }));
        assert_eq!(
            round_load(Scale::Standard, &one, &runs).1,
            CostBasis::Assumed,
            "runs of another scale are not used"
        );
        let failed = [run("folder-index", 100, Outcome::Hung)];
        assert_eq!(round_load(Scale::Quick, &one, &failed).1, CostBasis::Assumed, "failed runs are not used");
        assert_eq!(
            round_load(Scale::Quick, &all(), &runs).1,
            CostBasis::Assumed,
            "runs of one workload do not replace the tables of the others"
        );
    }

    fn request() -> CostRequest {
        let load = RoundLoad { bytes: 600e6, seconds: 120.0 };
        CostRequest {
            shares: 2,
            targets_per_round: 2.0,
            round_load: load,
            rounds_per_day: 24.0,
            bytes_per_day: None,
            max_time_share: None,
        }
    }

    #[test]
    fn runs_of_a_whole_preset_do_not_count_for_its_slices() {
        let stibium = ["stibium".to_owned()];
        let mut whole = run("stibium", 106_000_000_000, Outcome::Ok);
        whole.scale = Scale::Standard;
        let (load, basis) = round_load(Scale::Standard, &stibium, &[whole.clone()]);
        assert!(near(load.bytes / 1e9, 10.66) && basis == CostBasis::Assumed, "{load:?}");
        whole.facts.insert(Run::SLICE_FACT.to_owned(), "1 of 10".to_owned());
        assert_eq!(round_load(Scale::Standard, &stibium, &[whole]).1, CostBasis::Measured { runs: 1 });
    }

    #[test]
    fn plan_without_limits_is_limited_by_the_schedule() {
        let cost = estimate_cost(&request());
        assert_eq!(cost.limited_by, LimitingFactor::Schedule);
        assert!(near(cost.rounds_per_day, 17.0) && near(cost.bytes_per_day, 10.2e9));
        assert!(near(cost.minutes_per_hour, 4.0), "two targets with two minutes each, every hour");
    }

    #[test]
    fn estimate_stays_within_the_byte_limit() {
        let cost = estimate_cost(&CostRequest { bytes_per_day: Some(5_000_000_000), ..request() });
        assert_eq!((cost.limited_by, cost.rounds_per_day), (LimitingFactor::Bytes, 8.0));
        assert!(cost.bytes_per_day <= 5e9 && cost.weeks_until_detectable.is_some());
        let none = super::estimate_cost(&CostRequest { bytes_per_day: Some(1), ..request() });
        assert_eq!((none.rounds_per_day, none.bytes_per_day, none.weeks_until_detectable), (0.0, 0.0, None));
    }

    #[test]
    fn estimate_stays_within_the_time_limit() {
        let cost = estimate_cost(&CostRequest { max_time_share: Some(0.01), ..request() });
        assert_eq!((cost.limited_by, cost.rounds_per_day), (LimitingFactor::Time, 3.0));
    }
}
