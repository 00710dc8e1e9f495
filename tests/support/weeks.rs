//! Weeks that did not have to be waited for: runs as the daemon would have stored them, with the times that a test says.

use std::path::Path;

use longhaul_measure::corpus::draw::draw;
use longhaul_measure::model::{
    CacheState, Conditions, Figure, Outcome, Phase, Protocol, Role, Run, Scale, Target, Unit,
};
use longhaul_measure::workloads::WORKLOADS;
use longhaul_store::{NewRound, RoundEnd, RoundStatus, Store, Writer};

const HOUR_US: i64 = 3_600_000_000;

/// A database that fills up with rounds.
pub struct Weeks {
    writer: Writer,
    targets: Vec<(Target, Protocol)>,
    /// Local midnight of the first day, in microseconds since 1970 UTC.
    begin_us: i64,
    utc_offset_seconds: i32,
}

/// What a task on a target (by its place) takes on a day in a turn, in seconds, or how it fails.
pub type Story<'s> = &'s dyn Fn(usize, i64, i64) -> Result<f64, Outcome>;

impl Weeks {
    /// Two shares, from the Monday of 2026-W40 on, at an offset of two hours.
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
        Self { writer, targets, begin_us: 1_790_546_400_000_000, utc_offset_seconds: 7200 }
    }

    /// Some days of four rounds each.
    pub fn live(&self, days: std::ops::Range<i64>, story: Story<'_>) -> &Self {
        for day in days {
            for turn in 0..4 {
                self.round((day, turn), story);
            }
        }
        self
    }

    fn round(&self, (day, turn): (i64, i64), story: Story<'_>) {
        let started_us = self.begin_us + (24 * day + 8 + 3 * turn) * HOUR_US;
        let round = self
            .writer
            .begin_round(NewRound {
                started_us,
                utc_offset_seconds: self.utc_offset_seconds,
                seed: 1,
                scale: Scale::Standard,
                planned: vec![],
                scheduled_us: Some(started_us),
                before: None,
            })
            .unwrap();
        for (slot, workload) in WORKLOADS.iter().enumerate() {
            for (place, (target, protocol)) in self.targets.iter().enumerate() {
                let run = self.run((round, slot as u32), workload.name(), story(place, day, turn));
                let run = Run {
                    target: target.name.clone(),
                    protocol: Some(protocol.clone()),
                    started_us: started_us + slot as i64,
                    ..run
                };
                self.writer.add_run(target, &run).unwrap();
            }
        }
        let end =
            RoundEnd { status: RoundStatus::Ok, reason: None, ended_us: started_us + HOUR_US, after: None };
        self.writer.end_round(round, end).unwrap();
    }

    fn run(&self, (round, slot): (i64, u32), workload: &str, took: Result<f64, Outcome>) -> Run {
        let seconds = took.unwrap_or(900.0);
        Run {
            round,
            slot,
            target: "x".parse().unwrap(),
            protocol: None,
            workload: workload.to_owned(),
            scale: Scale::Standard,
            outcome: took.err().unwrap_or(Outcome::Ok),
            started_us: 0,
            utc_offset_seconds: self.utc_offset_seconds,
            seconds,
            phases: if took.is_ok() { phases(workload, seconds) } else { vec![] },
            failure: None,
            facts: Default::default(),
            conditions: Conditions::default(),
        }
    }
}

/// The phases that a workload's endpoints are made of, each with this figure.
fn phases(workload: &str, seconds: f64) -> Vec<Phase> {
    let endpoints = longhaul_measure::workloads::workload(workload).unwrap().endpoints();
    let parts =
        endpoints.iter().flat_map(|endpoint| endpoint.figures.iter().map(move |part| (part, endpoint.cache)));
    let phase = |((name, figure), cache): (&(&str, &str), CacheState)| Phase {
        name: (*name).to_owned(),
        cache,
        cold_by: None,
        began_us: None,
        seconds,
        bytes_read: 1,
        bytes_written: 1,
        complete: true,
        figures: vec![Figure::new(figure, Unit::Seconds, seconds)],
        operations: vec![],
        calls: vec![],
        wire: None,
    };
    parts.map(phase).collect()
}

/// A time that moves by up to a tenth from run to run.
pub fn around(seconds: f64, target: usize, day: i64, turn: i64) -> Result<f64, Outcome> {
    let noise = draw(target as u64, day as u64, turn as u64) as f64 / u64::MAX as f64 - 0.5;
    Ok(seconds * (1.0 + 0.2 * noise))
}
