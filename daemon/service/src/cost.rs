//! What a plan costs: bytes and time, and how long it takes until a difference can be seen. Pure estimates, each with
//! where it comes from.

use longhaul_measure::model::{Outcome, Run, Scale};
use longhaul_measure::profile::Profile;
use longhaul_measure::stats::median;
use longhaul_measure::workloads::classic::classic;

/// The rounds of 24 hours that are made on a machine that is asleep for seven hours of most nights: what the tables of
/// [`weeks_until_visible`] were made with.
const AWAKE: f64 = 17.0 / 24.0;

/// How a share over typical Wi-Fi is assumed to answer, where nothing was measured yet: seconds an operation takes, and
/// bytes a second.
const OPERATION_SECONDS: f64 = 0.001;
const BYTES_PER_SECOND: f64 = 30e6;

/// One round of a workload on one target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// Bytes read and written.
    pub bytes: f64,
    /// How long it takes.
    pub seconds: f64,
}

impl std::iter::Sum for Load {
    fn sum<I: Iterator<Item = Self>>(loads: I) -> Self {
        loads.fold(Self { bytes: 0.0, seconds: 0.0 }, |sum, load| Self {
            bytes: sum.bytes + load.bytes,
            seconds: sum.seconds + load.seconds,
        })
    }
}

/// What one round of a workload was seen to do.
struct Seen {
    workload: &'static str,
    megabytes: f64,
    operations: f64,
    /// Time in which somebody looks at a picture and nothing is asked of the target.
    viewing_seconds: f64,
}

const fn seen(workload: &'static str, megabytes: f64, operations: f64, viewing_seconds: f64) -> Seen {
    Seen { workload, megabytes, operations, viewing_seconds }
}

/// Measured on a local ext4 disk in November 2026: the bytes and operations that `longhaul run --json` reports for a
/// round, mean of two rounds (large: one). Bytes differ by up to a tenth between rounds, as slices do.
const QUICK: [Seen; 5] = [
    seen("folder-index", 0.5, 6_845.0, 0.0),
    seen("photo-batch", 33.9, 290.0, 4.0),
    seen("incremental-backup", 0.6, 934.0, 0.0),
    seen("time-machine", 99.5, 1_727.0, 0.0),
    seen("time-machine-throttled", 99.5, 1_727.0, 0.0),
];
const STANDARD: [Seen; 5] = [
    seen("folder-index", 0.6, 11_474.0, 0.0),
    seen("photo-batch", 135.0, 1_825.0, 76.0),
    seen("incremental-backup", 2.0, 4_776.0, 0.0),
    seen("time-machine", 232.1, 2_572.0, 0.0),
    seen("time-machine-throttled", 232.1, 2_572.0, 0.0),
];
const LARGE: [Seen; 5] = [
    seen("folder-index", 0.5, 113_949.0, 0.0),
    seen("photo-batch", 188.4, 5_518.0, 76.0),
    seen("incremental-backup", 15.7, 45_596.0, 0.0),
    seen("time-machine", 694.1, 5_677.0, 0.0),
    seen("time-machine-throttled", 694.1, 5_677.0, 0.0),
];

/// Where the figures of a load come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// All from runs on this machine.
    Measured {
        /// How many.
        runs: usize,
    },
    /// Some or all from a table, and times from an assumed network.
    Assumed,
}

/// What a round asks of one target: from the runs that there are, and where a workload has none, from the tables.
pub fn round_load(scale: Scale, workloads: &[String], runs: &[Run]) -> (Load, Basis) {
    let mut used = 0;
    let mut assumed = false;
    let loads = workloads.iter().map(|workload| {
        let by_slices = classic(workload).is_some_and(|classic| classic.profile.at(scale).slices > 1);
        let fits = |run: &&Run| run.workload == *workload && run.scale == scale && run.outcome == Outcome::Ok;
        let found: Vec<&Run> =
            runs.iter().filter(fits).filter(|run| run.did_a_slice() == by_slices).collect();
        used += found.len();
        measured(&found).unwrap_or_else(|| {
            assumed = true;
            tabled(scale, workload)
        })
    });
    let load = loads.sum();
    (load, if assumed || used == 0 { Basis::Assumed } else { Basis::Measured { runs: used } })
}

fn measured(runs: &[&Run]) -> Option<Load> {
    let bytes =
        |run: &&Run| run.phases.iter().map(|phase| (phase.bytes_read + phase.bytes_written) as f64).sum();
    Some(Load {
        bytes: median(&runs.iter().map(bytes).collect::<Vec<f64>>())?,
        seconds: median(&runs.iter().map(|run| run.seconds).collect::<Vec<f64>>())?,
    })
}

/// What one run of a profile asks of a target, its preparation included.
pub fn of_profile(profile: &Profile) -> Load {
    let cost = profile.cost();
    let bytes = cost.prepared as f64 + cost.written as f64 + cost.read as f64;
    Load { bytes, seconds: cost.seconds + cost.calls as f64 * OPERATION_SECONDS + bytes / BYTES_PER_SECOND }
}

/// Classics say it themselves. A workload that the tables do not know counts as the largest that they know.
fn tabled(scale: Scale, workload: &str) -> Load {
    if let Some(classic) = classic(workload) {
        return of_profile(&classic.in_rounds(scale));
    }
    let table = match scale {
        Scale::Quick => &QUICK,
        Scale::Standard => &STANDARD,
        Scale::Large => &LARGE,
    };
    let seen = table.iter().find(|seen| seen.workload == workload).unwrap_or(&table[4]);
    let bytes = seen.megabytes * 1e6;
    let seconds = seen.viewing_seconds + seen.operations * OPERATION_SECONDS + bytes / BYTES_PER_SECOND;
    Load { bytes, seconds }
}

/// A plan, as far as its cost depends on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wanted {
    /// How many shares take part.
    pub targets: usize,
    /// What a round asks of each.
    pub load: Load,
    /// Rounds that the schedule has in 24 hours.
    pub rounds_per_day: f64,
    /// Bytes that may be read and written on one target in 24 hours; `None`: any.
    pub bytes_per_day: Option<u64>,
    /// Share of time that rounds may take, from 0 to 1; `None`: any.
    pub duty: Option<f64>,
}

/// What sets the number of rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The schedule, on a machine that sleeps at night.
    Schedule,
    /// The bytes that are allowed.
    Bytes,
    /// The time that is allowed.
    Time,
}

/// What a plan costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Rounds that are made in 24 hours.
    pub rounds_per_day: f64,
    /// What sets that number.
    pub bound: Bound,
    /// Bytes read and written on each target in 24 hours.
    pub bytes_per_day: f64,
    /// Minutes that rounds take of an hour in which they are made.
    pub minutes_per_hour: f64,
    /// Weeks until a difference of 10 % is found; `None` where that was not simulated.
    pub weeks_until_visible: Option<f64>,
}

/// What a plan costs.
pub fn cost(wanted: &Wanted) -> Cost {
    let round_seconds = wanted.load.seconds * wanted.targets as f64;
    let by_bytes = wanted.bytes_per_day.map(|bytes| (bytes as f64 / wanted.load.bytes).floor());
    let by_time = wanted.duty.map(|duty| (duty * 86_400.0 / round_seconds).floor());
    let bounds = [
        (Some(wanted.rounds_per_day * AWAKE), Bound::Schedule),
        (by_bytes, Bound::Bytes),
        (by_time, Bound::Time),
    ];
    let bounds = bounds.into_iter().filter_map(|(rounds, bound)| Some((rounds?, bound)));
    let (rounds_per_day, bound) =
        bounds.min_by(|a, b| a.0.total_cmp(&b.0)).expect("the schedule is always a bound");
    Cost {
        rounds_per_day,
        bound,
        bytes_per_day: rounds_per_day * wanted.load.bytes,
        minutes_per_hour: wanted.rounds_per_day.min(rounds_per_day / AWAKE) / 24.0 * round_seconds / 60.0,
        weeks_until_visible: weeks_until_visible(rounds_per_day, wanted.targets),
    }
}

/// Of simulations on typical Wi-Fi, by rounds a day: the difference in percent that is found with 80 % probability after
/// 2, 4 and 8 weeks with two targets, and by how much the interval of three is wider at each.
const SIMULATED: [(f64, [f64; 3], [f64; 3]); 4] = [
    (4.0, [18.0, 12.0, 8.0], [17.2 / 14.5, 11.1 / 9.7, 7.6 / 6.8]),
    (8.0, [14.0, 10.0, 7.0], [13.7 / 11.6, 8.8 / 7.7, 5.9 / 5.3]),
    (17.0, [11.0, 8.0, 5.0], [10.9 / 9.3, 7.1 / 6.3, 4.8 / 4.3]),
    (24.0, [10.0, 7.0, 5.0], [9.5 / 8.1, 6.3 / 5.6, 4.4 / 4.0]),
];
const WEEKS: [f64; 3] = [2.0, 4.0, 8.0];
/// The difference that has to be visible, in percent.
const VISIBLE: f64 = 10.0;

/// Weeks until a difference of 10 % between two targets is found with 80 % probability on typical Wi-Fi; between the
/// simulated numbers of rounds by a power law. No verdict is given before 14 days, however many rounds there are.
/// `None` below 4 rounds a day and for more than three targets: not simulated.
pub fn weeks_until_visible(rounds_per_day: f64, targets: usize) -> Option<f64> {
    let weeks = SIMULATED.map(|(rounds, percent, wider)| {
        let percent = match targets {
            0..=2 => Some(percent),
            3 => Some([0, 1, 2].map(|at| percent[at] * wider[at])),
            _ => None,
        };
        percent.map(|percent| (rounds, weeks_of(percent)))
    });
    let [first, .., last] = weeks;
    if rounds_per_day < first?.0 {
        return None;
    }
    let rounds = rounds_per_day.min(last?.0);
    let (low, high) = weeks.windows(2).find_map(|pair| match pair {
        [Some(low), Some(high)] if rounds <= high.0 => Some((*low, *high)),
        _ => None,
    })?;
    Some(between(rounds, low, high))
}

/// When the difference that is found has shrunk to the visible one.
fn weeks_of(percent: [f64; 3]) -> f64 {
    let point = |at: usize| (percent[at], WEEKS[at]);
    if VISIBLE >= percent[0] {
        WEEKS[0]
    } else if VISIBLE >= percent[1] {
        between(VISIBLE, point(0), point(1))
    } else {
        between(VISIBLE, point(1), point(2))
    }
}

/// The value at a place between two points, on a line in logarithms of both.
fn between(at: f64, (a, a_value): (f64, f64), (b, b_value): (f64, f64)) -> f64 {
    let share = (at / a).ln() / (b / a).ln();
    a_value * (b_value / a_value).powf(share)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use longhaul_measure::model::{CacheState, Conditions, Phase};
    use longhaul_measure::workloads::WORKLOADS;

    use super::*;

    fn all() -> Vec<String> {
        WORKLOADS.iter().map(|workload| workload.name().to_owned()).collect()
    }

    fn near(found: f64, wanted: f64) -> bool {
        (found - wanted).abs() < 0.03 * wanted
    }

    #[test]
    fn the_tables_know_every_workload() {
        for name in all() {
            assert!(
                [&QUICK, &STANDARD, &LARGE]
                    .iter()
                    .all(|table| table.iter().any(|seen| seen.workload == name)),
                "{name}"
            );
        }
    }

    #[test]
    fn a_round_costs_what_was_measured() {
        let megabytes = |scale| round_load(scale, &all(), &[]).0.bytes / 1e6;
        assert!(near(megabytes(Scale::Quick), 234.0) && near(megabytes(Scale::Standard), 602.0));
        assert!(near(megabytes(Scale::Large), 1_593.0));
        assert_eq!(round_load(Scale::Quick, &all(), &[]).1, Basis::Assumed);
    }

    #[test]
    fn two_and_a_half_weeks_at_seventeen_rounds_a_day() {
        for (rounds, weeks) in [(4.0, 5.46), (8.0, 4.0), (17.0, 2.46), (24.0, 2.0), (100.0, 2.0)] {
            let found = weeks_until_visible(rounds, 2).unwrap();
            assert!(near(found, weeks), "{rounds} rounds: {found}");
        }
        assert_eq!(weeks_until_visible(3.9, 2), None);
        assert_eq!(weeks_until_visible(17.0, 4), None);
    }

    #[test]
    fn more_rounds_are_never_slower_and_a_third_target_never_faster() {
        let rounds: Vec<f64> = (8..=60).map(|half| f64::from(half) / 2.0).collect();
        for targets in [2, 3] {
            let weeks: Vec<f64> =
                rounds.iter().map(|rounds| weeks_until_visible(*rounds, targets).unwrap()).collect();
            assert!(weeks.is_sorted_by(|a, b| a >= b), "{weeks:?}");
        }
        for rounds in rounds {
            assert!(weeks_until_visible(rounds, 3) >= weeks_until_visible(rounds, 2));
        }
    }

    fn run(workload: &str, bytes: u64, outcome: Outcome) -> Run {
        let phase = Phase {
            name: "cold".to_owned(),
            cache: CacheState::Cold,
            cold_by: None,
            began_us: None,
            seconds: 3.0,
            complete: true,
            bytes_read: bytes,
            bytes_written: 1,
            operations: vec![],
            figures: vec![],
            calls: vec![],
            wire: None,
        };
        Run {
            round: 1,
            slot: 0,
            target: "nas".parse().unwrap(),
            protocol: None,
            workload: workload.to_owned(),
            scale: Scale::Quick,
            outcome,
            started_us: 0,
            utc_offset_seconds: 0,
            seconds: 5.0,
            phases: vec![phase],
            failure: None,
            facts: BTreeMap::new(),
            conditions: Conditions::default(),
        }
    }

    #[test]
    fn what_was_measured_here_counts_more_than_the_table() {
        let one = ["folder-index".to_owned()];
        let runs = [100, 300, 200].map(|bytes| run("folder-index", bytes, Outcome::Ok));
        let (load, basis) = round_load(Scale::Quick, &one, &runs);
        assert_eq!((load.bytes, load.seconds, basis), (201.0, 5.0, Basis::Measured { runs: 3 }));
        assert_eq!(round_load(Scale::Standard, &one, &runs).1, Basis::Assumed, "another scale says nothing");
        let failed = [run("folder-index", 100, Outcome::Hung)];
        assert_eq!(
            round_load(Scale::Quick, &one, &failed).1,
            Basis::Assumed,
            "a run that failed says nothing"
        );
        assert_eq!(
            round_load(Scale::Quick, &all(), &runs).1,
            Basis::Assumed,
            "one task says nothing of the others"
        );
    }

    fn wanted() -> Wanted {
        let load = Load { bytes: 600e6, seconds: 120.0 };
        Wanted { targets: 2, load, rounds_per_day: 24.0, bytes_per_day: None, duty: None }
    }

    #[test]
    fn a_heavy_classic_costs_a_round_a_slice_whatever_somebody_ran_of_it_once() {
        let stibium = ["stibium".to_owned()];
        let mut whole = run("stibium", 106_000_000_000, Outcome::Ok);
        whole.scale = Scale::Standard;
        let (load, basis) = round_load(Scale::Standard, &stibium, &[whole.clone()]);
        assert!(near(load.bytes / 1e9, 10.66) && basis == Basis::Assumed, "{load:?}");
        whole.facts.insert(Run::SLICE.to_owned(), "1 of 10".to_owned());
        assert_eq!(round_load(Scale::Standard, &stibium, &[whole]).1, Basis::Measured { runs: 1 });
    }

    #[test]
    fn an_unbounded_plan_is_set_by_the_schedule() {
        let cost = cost(&wanted());
        assert_eq!(cost.bound, Bound::Schedule);
        assert!(near(cost.rounds_per_day, 17.0) && near(cost.bytes_per_day, 10.2e9));
        assert!(near(cost.minutes_per_hour, 4.0), "two targets of two minutes, every hour");
    }

    #[test]
    fn a_budget_is_never_passed() {
        let cost = cost(&Wanted { bytes_per_day: Some(5_000_000_000), ..wanted() });
        assert_eq!((cost.bound, cost.rounds_per_day), (Bound::Bytes, 8.0));
        assert!(cost.bytes_per_day <= 5e9 && cost.weeks_until_visible.is_some());
        let none = super::cost(&Wanted { bytes_per_day: Some(1), ..wanted() });
        assert_eq!((none.rounds_per_day, none.bytes_per_day, none.weeks_until_visible), (0.0, 0.0, None));
    }

    #[test]
    fn a_share_of_time_is_kept() {
        let cost = cost(&Wanted { duty: Some(0.01), ..wanted() });
        assert_eq!((cost.bound, cost.rounds_per_day), (Bound::Time, 3.0));
    }
}
