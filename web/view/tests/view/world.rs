//! Simulated weeks of measurements for the tests, generated round by round, and their weekly summaries.

use std::time::Duration;

use std::sync::LazyLock;

use jiff::tz::TimeZone;
use longhaul_analysis::summary::{Week, WeeklyQuery, WeeklySummary, summarize_week};
use longhaul_model::time::{DAY, HOUR};
use longhaul_model::{
    AnalysisSettings, EpochRecord, Event, History, MetricTimes, Outcome, Role, RoundRecord, RoundStatus,
    RunRecord, STANDARD_TASKS as TASKS, Scale, TargetRecord, Timestamp,
};
use longhaul_view::Environment;

/// First simulated day: Monday of 2026-W39, in days since 1970-01-01.
pub const MONDAY: i64 = 20_717;

/// Coordinates of a simulated run: target, workload, metric of the workload (`place`), day, and round of the day
/// (`turn`).
#[derive(Clone, Copy)]
pub struct SimulatedRun {
    pub target: usize,
    pub workload: usize,
    pub place: usize,
    pub day: i64,
    pub turn: i64,
}

impl SimulatedRun {
    /// Returns a pseudorandom number between -1 and 1 that depends only on the coordinates and the salt.
    pub fn noise(self, salt: u64) -> f64 {
        let parts = [self.target as i64, self.workload as i64, self.place as i64, self.day, self.turn];
        let mut x =
            parts.iter().fold(salt, |x, part| (x ^ part.cast_unsigned()).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        x ^= x >> 29;
        x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x ^= x >> 32;
        (x >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

/// Function that gives the outcome and seconds of a simulated run.
pub type Scenario<'s> = &'s dyn Fn(SimulatedRun) -> (Outcome, f64);

/// Returns the start of a day, counted from the first Monday.
pub fn midnight(day: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + (MONDAY + day) as u32 * DAY
}

/// Simulated measurements of several weeks.
pub struct World {
    pub history: History,
    pub rounds_a_day: i64,
}

impl World {
    pub fn new(targets: &[(&str, Role, &str)]) -> Self {
        let epoch = |(place, (name, _, protocol)): (usize, &(&str, Role, &str))| EpochRecord {
            number: place as i64 + 1,
            target: name.parse().unwrap(),
            opened_us: midnight(0),
            protocol: Some((*protocol).to_owned()),
        };
        let history = History {
            settings: AnalysisSettings {
                machine: Some("f00dfeed".to_owned()),
                ..AnalysisSettings::default()
            },
            targets: targets
                .iter()
                .map(|(name, role, _)| TargetRecord { name: name.parse().unwrap(), role: *role })
                .collect(),
            epochs: targets.iter().enumerate().map(epoch).collect(),
            ..History::default()
        };
        Self { history, rounds_a_day: 6 }
    }

    pub fn pair() -> Self {
        Self::new(&[("smb", Role::Share, "SMB 3.1.1"), ("nfs", Role::Share, "NFS 4.2")])
    }

    pub fn simulate(mut self, days: impl IntoIterator<Item = i64>, scenario: Scenario<'_>) -> Self {
        for day in days {
            for turn in 0..self.rounds_a_day {
                self.round((day, turn), (RoundStatus::Ok, None), scenario);
            }
        }
        self
    }

    pub fn round(
        &mut self,
        (day, turn): (i64, i64),
        end: (RoundStatus, Option<&str>),
        scenario: Scenario<'_>,
    ) {
        let number = self.history.rounds.len() as i64 + 1;
        let started = midnight(day) + turn as u32 * HOUR;
        self.history.rounds.push(RoundRecord {
            number,
            started_us: started,
            utc_offset_seconds: 0,
            scale: Scale::Standard,
            status: Some(end.0),
            reason: end.1.map(str::to_owned),
        });
        if end.0 == RoundStatus::Skipped {
            return;
        }
        for workload in 0..TASKS.len() {
            for target in 0..self.history.targets.len() {
                let run = self.run(
                    SimulatedRun { target, workload, place: 0, day, turn },
                    (number, started),
                    scenario,
                );
                self.history.runs.push(run);
            }
        }
    }

    fn run(
        &self,
        run: SimulatedRun,
        (round, started): (i64, Timestamp),
        scenario: Scenario<'_>,
    ) -> RunRecord {
        let (outcome, seconds) = scenario(run);
        let places = 0..TASKS[run.workload].metrics().len();
        RunRecord {
            number: self.history.runs.len() as i64 + 1,
            round,
            epoch: run.target as i64 + 1,
            target: run.target,
            workload: run.workload,
            scale: Scale::Standard,
            outcome,
            started,
            seconds,
            times: places.filter(|_| outcome == Outcome::Ok).fold(MetricTimes::NONE, |times, place| {
                times.with(place, scenario(SimulatedRun { place, ..run }).1)
            }),
            rtt: None,
        }
    }

    pub fn event(mut self, day: i64, target: Option<&str>, kind: &str, detail: serde_json::Value) -> Self {
        self.history.events.push(Event {
            target: target.map(|name| name.parse().unwrap()),
            kind: kind.to_owned(),
            detail,
            at_us: midnight(day) + Duration::from_mins(9 * 60 + 30),
        });
        self
    }

    pub fn after_days(&self, days: i64) -> WeeklySummary {
        let week = Week::of_day(MONDAY + days - 1);
        summarize_week(&self.history, &WeeklyQuery { week, scale: None, since: None, zone: TimeZone::UTC })
    }
}

/// Returns a successful run of about `seconds`, with little noise.
pub fn steady(seconds: f64, run: SimulatedRun) -> (Outcome, f64) {
    (Outcome::Ok, seconds * (0.08 * run.noise(7) + 0.04 * SimulatedRun { turn: 0, ..run }.noise(3)).exp())
}

/// Returns the summary of four weeks with two shares, of which the first takes 20 % less time.
pub fn twenty_percent_faster() -> WeeklySummary {
    static CACHED: LazyLock<WeeklySummary> = LazyLock::new(simulate_twenty_percent);
    CACHED.clone()
}

fn simulate_twenty_percent() -> WeeklySummary {
    let scenario = |run: SimulatedRun| steady(if run.target == 0 { 8.0 } else { 10.0 }, run);
    World::pair().simulate(0..28, &scenario).after_days(28)
}

/// Returns the usual time of a metric in seconds, by workload and index of the metric.
fn usual_seconds(workload: usize, place: usize) -> f64 {
    let table: [&[f64]; 5] =
        [&[3.2, 0.7, 11.0, 2.4], &[14.0, 2.1, 0.38, 0.09], &[41.0], &[65.0, 18.0], &[190.0, 19.0]];
    table.get(workload).and_then(|places| places.get(place)).copied().unwrap_or(5.0)
}

/// Returns eight simulated weeks of three shares and the local disk. NFS hangs sometimes, AFP becomes faster at an OS
/// update, four days of holidays are missing, and some rounds are skipped or void.
pub fn eight_weeks() -> World {
    static CACHED: LazyLock<History> = LazyLock::new(|| simulate_eight_weeks().history);
    World { history: CACHED.clone(), rounds_a_day: 6 }
}

/// Returns the summary of the last of the eight weeks.
pub fn last_week() -> WeeklySummary {
    static CACHED: LazyLock<WeeklySummary> = LazyLock::new(|| eight_weeks().after_days(56));
    CACHED.clone()
}

fn simulate_eight_weeks() -> World {
    let mut world = World::new(&[
        ("smb", Role::Share, "SMB 3.1.1"),
        ("nfs", Role::Share, "NFS 4.2"),
        ("afp", Role::Share, "AFP"),
        ("local", Role::Baseline, "ext4"),
    ]);
    let scenario = |run: SimulatedRun| {
        let SimulatedRun { target, workload, place, day, turn } = run;
        if target == 1 && workload == 3 && (day * 7 + turn) % 41 == 5 {
            return (Outcome::Hung, 900.0);
        }
        if target == 1 && (day, turn) == (51, 2) {
            return (Outcome::Error, 4.0);
        }
        let cold = if place % 2 == 0 { 1.0 } else { 0.9 };
        let factor = match target {
            0 => 1.0,
            1 => 1.22 * [0.8, 1.05, 1.1, 1.0, 1.0][workload] * cold,
            2 => {
                if day < 30 {
                    1.55
                } else {
                    1.06
                }
            }
            _ => 0.06,
        };
        let shared_noise = SimulatedRun { target: 0, workload: 0, place: 0, turn: 0, ..run }.noise(11);
        let own_noise = SimulatedRun { workload: 0, place: 0, turn: 0, ..run }.noise(13);
        let spread = 0.16 * run.noise(1) + 0.1 * run.noise(2) + 0.2 * shared_noise + 0.07 * own_noise;
        (Outcome::Ok, usual_seconds(workload, place) * factor * spread.exp())
    };
    let holidays = 17..21;
    world = world.simulate((0..56).filter(|day| !holidays.contains(day)), &scenario);
    world.round((54, 7), (RoundStatus::Skipped, Some("on battery")), &scenario);
    world.round((54, 8), (RoundStatus::Skipped, Some("on battery")), &scenario);
    world.round((55, 9), (RoundStatus::Void, Some("the machine slept during it")), &scenario);
    world.history.settings.usage_profile = [
        ("photo-batch/open-cold", 10.0),
        ("folder-index/open-folder-cold", 60.0),
        ("incremental-backup/backup", 7.0),
    ]
    .into_iter()
    .map(|(key, count)| (key.to_owned(), count))
    .collect();
    let update = serde_json::json!({"before": "26.0", "after": "26.1"});
    let negotiated = serde_json::json!({"before": {"path": "/Volumes/annas media", "addr": "10.0.0.2", "vers": "4.1"}, "after": {"vers": "4.2"}});
    world
        .event(30, None, "os-update", update)
        .event(50, None, "mtu", serde_json::json!({"before": 1500, "after": 9000}))
        .event(
            51,
            Some("nfs"),
            "hang",
            serde_json::json!({"seconds": 900, "operation": "getattr", "path": "/Volumes/annas media/x"}),
        )
        .event(52, Some("nfs"), "options", negotiated)
}

/// Returns an environment that contains private data in every field that could contain it.
pub fn environment() -> Environment {
    let negotiated = [
        ("signing", "on"),
        ("vers", "3.1.1"),
        ("addr", "10.0.0.2"),
        ("username", "anna"),
        ("rsize", "1048576"),
    ];
    let negotiated = negotiated.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Environment {
        longhaul: "0.1.0".to_owned(),
        system: Some("Linux 6.1.0-annas-build".to_owned()),
        processors: Some(8),
        memory_bytes: Some(17_179_869_184),
        negotiated: [("smb".parse().unwrap(), negotiated)].into_iter().collect(),
    }
}
