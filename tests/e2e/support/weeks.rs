//! Fills a database with weeks of runs as the daemon would store them, with durations chosen by the test.

use std::path::Path;
use std::time::Duration;

use longhaul_model::STANDARD_TASKS as TASKS;
use longhaul_model::draw::draw;
use longhaul_model::time::HOUR;
use longhaul_model::{
    CacheState, Figure, Outcome, Phase, Protocol, Role, Run, Scale, Target, Timestamp, Unit,
};
use longhaul_store::{NewRound, RoundEnd, RoundStatus, Store, Writer};

use longhaul_demo::synthetic_history;

/// Database to which a test adds days of rounds.
pub struct Weeks {
    writer: Writer,
    targets: Vec<(Target, Protocol)>,
    /// Local midnight of the first day.
    begin: Timestamp,
    utc_offset_seconds: i32,
}

/// Function from target index, day and round of the day to the run time in seconds, or to the outcome of a failed
/// run.
pub type RunTimes<'s> = &'s dyn Fn(usize, i64, i64) -> Result<f64, Outcome>;

impl Weeks {
    /// Creates a database with two shares. Day 0 is the Monday of 2026-W40, in a time zone two hours ahead of UTC.
    pub fn of_two_shares(database: &Path) -> Self {
        let writer = Writer::spawn(Store::open(database, &[]).unwrap());
        let share = |name: &str, protocol| {
            let path = Path::new("/Volumes").join(name);
            (Target { name: name.parse().unwrap(), path, role: Role::Share }, protocol)
        };
        let targets = vec![
            share("smb", Protocol::Smb(Some("3.1.1".into()))),
            share("nfs", Protocol::Nfs(Some("4.2".into()))),
        ];
        // 2026-09-28T00:00+02:00.
        Self { writer, targets, begin: Timestamp::from_us(1_790_546_400_000_000), utc_offset_seconds: 7200 }
    }

    /// Adds four rounds for each of these days.
    pub fn add_days(&self, days: std::ops::Range<i64>, run_times: RunTimes<'_>) -> &Self {
        for day in days {
            for turn in 0..4 {
                self.round((day, turn), run_times);
            }
        }
        self
    }

    fn round(&self, (day, turn): (i64, i64), run_times: RunTimes<'_>) {
        let started = self.begin + (24 * day + 8 + 3 * turn) as u32 * HOUR;
        let round = self
            .writer
            .begin_round(NewRound {
                utc_offset_seconds: self.utc_offset_seconds,
                scheduled: Some(started),
                ..NewRound::new(started, 1, Scale::Standard)
            })
            .unwrap();
        for (slot, workload) in TASKS.iter().enumerate() {
            for (place, (target, protocol)) in self.targets.iter().enumerate() {
                let run = self.run((round, slot as u32), workload.name(), run_times(place, day, turn));
                let run = Run {
                    target: target.name.clone(),
                    protocol: Some(protocol.clone()),
                    started_us: started + Duration::from_micros(slot as u64),
                    ..run
                };
                self.writer.add_run(target, &run, &[]).unwrap();
            }
        }
        let end = RoundEnd { status: RoundStatus::Ok, reason: None, ended: started + HOUR };
        self.writer.end_round(round, end).unwrap();
    }

    fn run(&self, (round, slot): (i64, u32), workload: &str, took: Result<f64, Outcome>) -> Run {
        let seconds = took.unwrap_or(900.0);
        Run {
            slot,
            scale: Scale::Standard,
            outcome: took.err().unwrap_or(Outcome::Ok),
            utc_offset_seconds: self.utc_offset_seconds,
            seconds,
            phases: if took.is_ok() { phases(workload, seconds) } else { vec![] },
            ..Run::new(round, "x".parse().unwrap(), workload, Timestamp::UNIX_EPOCH)
        }
    }
}

/// Returns the phases from which the workload's metrics are computed, all with this duration.
fn phases(workload: &str, seconds: f64) -> Vec<Phase> {
    let endpoints = TASKS.iter().find(|task| task.name() == workload).unwrap().metrics();
    let parts =
        endpoints.iter().flat_map(|endpoint| endpoint.figures.iter().map(move |part| (part, endpoint.cache)));
    let phase = |((name, figure), cache): (&(&str, &str), CacheState)| Phase {
        cold_by: None,
        bytes_read: 1,
        bytes_written: 1,
        ..synthetic_history::phase(name, cache, Figure::new(figure, Unit::Seconds, seconds))
    };
    parts.map(phase).collect()
}

/// Returns a time with deterministic noise of up to 10 % in either direction.
pub fn around(seconds: f64, target: usize, day: i64, turn: i64) -> Result<f64, Outcome> {
    let noise = draw(target as u64, day as u64, turn as u64) as f64 / u64::MAX as f64 - 0.5;
    Ok(seconds * (1.0 + 0.2 * noise))
}
