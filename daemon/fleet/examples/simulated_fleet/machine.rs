//! The history of one simulated machine.

use std::time::Duration;

use longhaul_export::fleet::{Origin, Week};
use longhaul_model::stored::VerifiedRun;
use longhaul_model::time::{DAY, HOUR};
use longhaul_model::{
    ChangeKind, EpochRecord, Event, FreshnessOutcome, FreshnessSample, Histogram, History, LoadContext,
    MetricTimes, Outcome, ProbeKind, ProbeStep, Protocol, Role, RoundRecord, RoundStatus, RunRecord, Scale,
    TASKS, TargetRecord, Timestamp,
};

use super::random::Random;

/// Monday of 2024-W40, in days since 1970-01-01.
pub const FIRST_DAY: i64 = 19_996;
/// Rounds of a day: three of them may fail before a day is too thin for a verdict.
const ROUNDS_PER_DAY: i64 = 5;
/// Number of tasks in each round.
const TASK_COUNT: usize = 4;
const CAP_SECONDS: f64 = 900.0;
/// Number of shares, the first targets.
const SHARES: usize = 2;
/// Index of the local disk, a baseline.
const LOCAL: usize = 2;
/// Random numbers of the runs on the local disk are those of runs from this number on, so that they change none of the shares.
const LOCAL_DRAWS: u64 = 1 << 32;
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
/// Probability that a round of the local disk alone with each status follows a scheduled one.
const LOCAL_OK: f64 = 1.0 / 40.0;
const LOCAL_CUT_SHORT: f64 = 1.0 / 70.0;
const LOCAL_VOID: f64 = 1.0 / 90.0;

/// A simulated machine with everything that it exports.
pub struct Machine {
    pub number: u64,
    pub origin: Origin,
    pub history: History,
    pub freshness: Vec<FreshnessSample>,
    pub verified: Vec<VerifiedRun>,
    /// Protocols of the targets, in their order: the shares and the local disk.
    pub protocols: [Protocol; 3],
    /// Number from which the random numbers of each run follow, in the order of the runs.
    pub draws: Vec<u64>,
    local_runs: u64,
}

impl Machine {
    pub fn new(number: u64, weeks: u32) -> Self {
        let (site, [first, second]) = SITES[number as usize % SITES.len()];
        let mut machine = Self {
            number,
            origin: origin(number, site),
            history: History::default(),
            freshness: vec![],
            verified: vec![],
            protocols: [protocol(first), protocol(second), Protocol::Local("ext4".to_owned())],
            draws: vec![],
            local_runs: 0,
        };
        let targets = [(first, Role::Share), (second, Role::Share), ("local", Role::Baseline)];
        let named = |(name, role): (&str, Role)| Some(TargetRecord { name: name.parse().ok()?, role });
        machine.history.targets = targets.into_iter().filter_map(named).collect();
        (0..machine.protocols.len()).for_each(|target| machine.add_epoch(target, FIRST_DAY));
        for day in 0..i64::from(weeks) * 7 {
            machine.add_day(FIRST_DAY + day);
        }
        machine
    }

    fn random(&self, stream: u64, index: u64) -> Random {
        Random::of([self.number, stream, index])
    }

    fn add_epoch(&mut self, target: usize, day: i64) {
        let number = self.history.epochs.len() as i64 + 1;
        let protocol = Some(self.protocols[target].to_string());
        let target = self.history.targets[target].name.clone();
        self.history.epochs.push(EpochRecord { number, target, opened_us: time_of(day, 0), protocol });
    }

    /// Returns the epoch of a target on a day. One machine of ten gets another dialect on its twentieth day.
    fn epoch(&self, target: usize, day: i64) -> i64 {
        let changed = self.number % 10 == 3 && target == 0 && day >= FIRST_DAY + 20;
        if changed { 4 } else { target as i64 + 1 }
    }

    fn add_day(&mut self, day: i64) {
        if self.number % 10 == 3 && day == FIRST_DAY + 20 {
            self.add_epoch(0, day);
            let detail = serde_json::json!({ "dialect": "changed" });
            let target = Some(self.history.targets[0].name.clone());
            self.history.events.push(Event {
                target,
                kind: "epoch".to_owned(),
                detail,
                at_us: time_of(day, 7),
            });
        }
        for slot in 0..ROUNDS_PER_DAY {
            self.add_round(day, slot);
            self.add_local_round(day, slot);
        }
        self.add_freshness(day);
    }

    fn add_round(&mut self, day: i64, slot: i64) {
        let mut random = self.random(1, scheduled_number(day, slot));
        let (status, reason) = match random.uniform() {
            at if at < 0.02 => (RoundStatus::Skipped, Some("on battery")),
            at if at < 0.03 => (RoundStatus::Void, Some("the machine slept")),
            _ => (RoundStatus::Ok, None),
        };
        self.add_record(time_of(day, 8 + 3 * slot), status, reason);
        if status != RoundStatus::Skipped {
            let slowdown = 0.1 * self.random(2, day.unsigned_abs()).normal() + 0.15 * random.normal();
            let runs = (0..TASK_COUNT).flat_map(|task| (0..SHARES).map(move |target| (task, target)));
            runs.for_each(|(task, target)| self.add_run(task, target, slowdown));
        }
    }

    /// Adds a round of the local disk alone after some of the scheduled ones. It does not count for the shares, unless it was cut
    /// short: then it may have ended before their turn.
    fn add_local_round(&mut self, day: i64, slot: i64) {
        let mut random = self.random(10, scheduled_number(day, slot));
        let (status, reason, tasks) = match random.uniform() {
            at if at < LOCAL_OK => (RoundStatus::Ok, None, 2),
            at if at < LOCAL_OK + LOCAL_CUT_SHORT => (RoundStatus::CutShort, Some("stopped"), 1),
            at if at < LOCAL_OK + LOCAL_CUT_SHORT + LOCAL_VOID => {
                (RoundStatus::Void, Some("no target could be used"), 1)
            }
            _ => return,
        };
        self.add_record(time_of(day, 9 + 3 * slot), status, reason);
        let slowdown = 0.15 * random.normal();
        (0..tasks).for_each(|task| self.add_run(task, LOCAL, slowdown));
    }

    fn add_record(&mut self, started_us: Timestamp, status: RoundStatus, reason: Option<&str>) {
        self.history.rounds.push(RoundRecord {
            number: self.history.rounds.len() as i64 + 1,
            started_us,
            utc_offset_seconds: 0,
            scale: Scale::Standard,
            status: Some(status),
            reason: reason.map(str::to_owned),
        });
    }

    fn add_run(&mut self, workload: usize, target: usize, slowdown: f64) {
        let Some(round) = self.history.rounds.last() else { return };
        let number = self.history.runs.len() as i64 + 1;
        let draw = match target {
            LOCAL => LOCAL_DRAWS + self.local_runs,
            _ => number.cast_unsigned() - self.local_runs,
        };
        let mut random = self.random(3, draw);
        // Each machine has its own true ratio between the two shares, around 8 %.
        let advantage = if target == 1 { 0.08 + 0.1 * self.random(4, 0).normal() } else { 0.0 };
        let pace = (slowdown + advantage + 0.12 * random.normal()).exp();
        let outcome = match random.uniform() {
            // A round of the local disk alone is void because the disk could not be used.
            _ if target == LOCAL && round.status == Some(RoundStatus::Void) => Outcome::Unavailable,
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
            started: round.started_us + draw as u32 % 8 * (HOUR / 60),
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
        self.draws.push(draw);
        self.local_runs += u64::from(target == LOCAL);
    }

    fn add_freshness(&mut self, day: i64) {
        for (target, protocol) in self.protocols.clone().into_iter().enumerate().take(SHARES) {
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

    /// Returns the hours of the latency probe in a week: eight a day on each share.
    pub fn samples(&self, week: Week) -> Vec<ProbeStep> {
        let hours = (week.first_day()..=week.last_day()).flat_map(|day| (8..16).map(move |hour| (day, hour)));
        let steps = hours.flat_map(|(day, hour)| (0..SHARES).map(move |target| (day, hour, target)));
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

/// Returns the number of a scheduled round among all of its machine, from 1.
fn scheduled_number(day: i64, slot: i64) -> u64 {
    ((day - FIRST_DAY) * ROUNDS_PER_DAY + slot + 1).cast_unsigned()
}

fn time_of(day: i64, hour: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + day as u32 * DAY + hour as u32 * HOUR
}
