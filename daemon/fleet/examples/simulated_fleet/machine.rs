//! The history of one simulated machine.

use std::time::Duration;

use longhaul_export::fleet::{Origin, Week};
use longhaul_model::stored::VerifiedRun;
use longhaul_model::time::{DAY, HOUR};
use longhaul_model::{
    ChangeKind, EpochRecord, Event, FreshnessOutcome, FreshnessSample, Histogram, History, LoadContext,
    MetricTimes, Outcome, ProbeKind, ProbeStep, Protocol, Role, RoundRecord, RoundStatus, RunRecord, Scale,
    TASKS, TargetName, TargetRecord, Timestamp,
};

use super::random::Random;

/// Monday of 2024-W40, in days since 1970-01-01.
pub const FIRST_DAY: i64 = 19_996;
/// Rounds of a day: three of them may fail before a day is too thin for a verdict.
const ROUNDS_PER_DAY: i64 = 5;
/// Number of tasks in each round.
const TASK_COUNT: usize = 4;
const CAP_SECONDS: f64 = 900.0;
/// Sites, with the protocols that their machines compare.
const SITES: [(&str, [&str; 2]); 5] = [
    ("berlin", ["nfs", "smb"]),
    ("hamburg", ["smb", "nfs"]),
    ("london", ["afp", "smb"]),
    ("madrid", ["smb", "afp"]),
    ("oslo", ["nfs", "smb"]),
];
/// Probability of each outcome other than ok.
const HUNG: f64 = 0.004;
const FAILED: f64 = 0.002;
const UNAVAILABLE: f64 = 0.003;

/// A simulated machine with everything that it exports.
pub struct Machine {
    pub number: u64,
    pub origin: Origin,
    pub history: History,
    pub freshness: Vec<FreshnessSample>,
    pub verified: Vec<VerifiedRun>,
    /// Protocols of the targets, in their order.
    pub protocols: [Protocol; 2],
}

impl Machine {
    pub fn new(number: u64, weeks: u32) -> Self {
        let (site, names) = SITES[number as usize % SITES.len()];
        let mut machine = Self {
            number,
            origin: origin(number, site),
            history: History::default(),
            freshness: vec![],
            verified: vec![],
            protocols: names.map(protocol),
        };
        let targets = names.into_iter().filter_map(|name| name.parse::<TargetName>().ok());
        machine.history.targets = targets.map(|name| TargetRecord { name, role: Role::Share }).collect();
        (1..=2).for_each(|epoch| machine.add_epoch(epoch, FIRST_DAY));
        for day in 0..i64::from(weeks) * 7 {
            machine.add_day(FIRST_DAY + day);
        }
        machine
    }

    fn random(&self, stream: u64, index: u64) -> Random {
        Random::of([self.number, stream, index])
    }

    fn add_epoch(&mut self, number: i64, day: i64) {
        let place = (number as usize - 1) % 2;
        let target = self.history.targets[place].name.clone();
        let protocol = Some(self.protocols[place].to_string());
        self.history.epochs.push(EpochRecord { number, target, opened_us: time_of(day, 0), protocol });
    }

    /// Returns the epoch of a target on a day. One machine of ten gets another dialect on its twentieth day.
    fn epoch(&self, target: usize, day: i64) -> i64 {
        let changed = self.number % 10 == 3 && target == 0 && day >= FIRST_DAY + 20;
        target as i64 + if changed { 3 } else { 1 }
    }

    fn add_day(&mut self, day: i64) {
        if self.number % 10 == 3 && day == FIRST_DAY + 20 {
            self.add_epoch(3, day);
            let detail = serde_json::json!({ "dialect": "changed" });
            let target = Some(self.history.targets[0].name.clone());
            self.history.events.push(Event {
                target,
                kind: "epoch".to_owned(),
                detail,
                at_us: time_of(day, 7),
            });
        }
        (0..ROUNDS_PER_DAY).for_each(|slot| self.add_round(day, 8 + 3 * slot));
        self.add_freshness(day);
    }

    fn add_round(&mut self, day: i64, hour: i64) {
        let number = self.history.rounds.len() as i64 + 1;
        let mut random = self.random(1, number.cast_unsigned());
        let (status, reason) = match random.uniform() {
            at if at < 0.02 => (RoundStatus::Skipped, Some("on battery".to_owned())),
            at if at < 0.03 => (RoundStatus::Void, Some("the machine slept".to_owned())),
            _ => (RoundStatus::Ok, None),
        };
        let started_us = time_of(day, hour);
        let record = RoundRecord {
            number,
            started_us,
            utc_offset_seconds: 0,
            scale: Scale::Standard,
            status: Some(status),
            reason,
        };
        self.history.rounds.push(record);
        if status != RoundStatus::Skipped {
            let slowdown = 0.1 * self.random(2, day.unsigned_abs()).normal() + 0.15 * random.normal();
            let runs = (0..TASK_COUNT).flat_map(|task| (0..2).map(move |target| (task, target)));
            runs.for_each(|(task, target)| self.add_run(task, target, slowdown));
        }
    }

    fn add_run(&mut self, workload: usize, target: usize, slowdown: f64) {
        let Some(round) = self.history.rounds.last() else { return };
        let number = self.history.runs.len() as i64 + 1;
        let mut random = self.random(3, number.cast_unsigned());
        // Each machine has its own true ratio between the two targets, around 8 %.
        let advantage = if target == 1 { 0.08 + 0.1 * self.random(4, 0).normal() } else { 0.0 };
        let pace = (slowdown + advantage + 0.12 * random.normal()).exp();
        let outcome = match random.uniform() {
            at if at < HUNG => Outcome::Hung,
            at if at < HUNG + FAILED => Outcome::Error,
            at if at < HUNG + FAILED + UNAVAILABLE => Outcome::Unavailable,
            _ => Outcome::Ok,
        };
        let metrics = if outcome == Outcome::Ok { TASKS[workload].metrics().len() } else { 0 };
        // On one machine of ten a task takes so long that its times are above any cap of failures.
        let scale = if self.number % 10 == 7 && workload == 0 { 1_000.0 } else { 1.0 };
        let times =
            (0..metrics).map(|place| scale * pace * (place as f64 + 1.0) * (0.05 * random.normal()).exp());
        let times: Vec<f64> = times.collect();
        let run = RunRecord {
            number,
            round: round.number,
            epoch: self.epoch(target, round.day()),
            target,
            workload,
            scale: Scale::Standard,
            outcome,
            started: round.started_us + number as u32 % 8 * (HOUR / 60),
            seconds: if outcome == Outcome::Hung { CAP_SECONDS } else { 1.0 + times.iter().sum::<f64>() },
            times: times
                .iter()
                .enumerate()
                .fold(MetricTimes::NONE, |known, (at, time)| known.with(at, *time)),
            rtt: Some(Duration::from_micros(300 + random.next() % 200)),
        };
        if workload == 1 && outcome == Outcome::Ok {
            let bytes = 100_000_000 + random.next() % 1000;
            let mismatches = u64::from(random.chance(0.0005));
            self.verified.push(VerifiedRun {
                run: number,
                bytes,
                wire_bytes: bytes / 2,
                files: 60,
                mismatches,
            });
        }
        self.history.runs.push(run);
    }

    fn add_freshness(&mut self, day: i64) {
        for (target, protocol) in self.protocols.clone().into_iter().enumerate() {
            let mut random = self.random(5 + target as u64, day.unsigned_abs());
            let limit = Duration::from_secs(30);
            let seen = Duration::from_millis(1 + random.next() % 2500);
            let outcome = match random.uniform() {
                at if at < 0.02 => FreshnessOutcome::NotSeen { limit },
                at if at < 0.04 => FreshnessOutcome::Void { reason: "the helper did not answer".to_owned() },
                _ => FreshnessOutcome::Seen { earliest: seen / 2, latest: seen },
            };
            self.freshness.push(FreshnessSample {
                target: self.history.targets[target].name.clone(),
                protocol: Some(protocol),
                epoch: Some(self.epoch(target, day)),
                changed_through: None,
                shares_client: false,
                round: None,
                kind: ChangeKind::NewFile,
                at: time_of(day, 12),
                outcome,
            });
        }
    }

    /// Returns the hours of the latency probe in a week: eight a day on each target.
    pub fn samples(&self, week: Week) -> Vec<ProbeStep> {
        let hours = (week.first_day()..=week.last_day()).flat_map(|day| (8..16).map(move |hour| (day, hour)));
        let steps = hours.flat_map(|(day, hour)| (0..2).map(move |target| (day, hour, target)));
        steps.map(|(day, hour, target)| self.sample(time_of(day, hour), target)).collect()
    }

    fn sample(&self, at: Timestamp, target: usize) -> ProbeStep {
        let mut random = self.random(8 + target as u64, at.as_us().cast_unsigned());
        let mut latency = Histogram::new();
        (0..20).for_each(|_| latency.record((400_000.0 * (0.5 * random.normal()).exp()) as u64));
        let name = self.history.targets[target].name.clone();
        ProbeStep { latency, ..ProbeStep::new(name, at, ProbeKind::Read, LoadContext::Idle) }
    }
}

fn origin(number: u64, site: &str) -> Origin {
    let machine_id = format!("{:016x}", Random::of([number, 7, 7]).next());
    Origin {
        source: format!("{machine_id}-{number:08x}"),
        machine_id,
        site: site.to_owned(),
        label: Some(format!("mac-{number:03}")),
    }
}

fn protocol(name: &str) -> Protocol {
    match name {
        "smb" => Protocol::Smb(Some("3.1.1".to_owned())),
        "nfs" => Protocol::Nfs(Some("4.1".to_owned())),
        _ => Protocol::Afp,
    }
}

fn time_of(day: i64, hour: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + day as u32 * DAY + hour as u32 * HOUR
}
