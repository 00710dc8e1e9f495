//! Makes the file of one machine from its stored rounds and runs.

use std::collections::BTreeMap;

use longhaul_analysis::summary::Week;
use longhaul_model::stored::{PlannedRun, StoredEpoch, StoredRound, StoredRun};
use longhaul_model::time::DAY;
use longhaul_model::{
    Histogram, MetricTimes, Operation, Outcome, Phase, RoundStatus, Run, TASKS, Target, TargetName, Task,
    YOUR_DAY,
};

use crate::family::{LinkClass, MachineFamily, NasFamily, ProtocolLabel, RoundTripClass};
use crate::figures::figures;
use crate::share::{
    FORMAT, OTHER, PhaseKey, RoundDesign, SCHEMA, SharedEpoch, SharedHistogram, SharedPhase, SharedResults,
    SharedRound, SharedRun, machine_label,
};

/// Names of the phases of longhaul's own tasks. Other names are not shared.
pub(crate) const PHASES: [&str; 15] = [
    "browse",
    "burst",
    "copy",
    "delete",
    "open",
    "open-folder",
    "preview",
    "restore",
    "scan",
    "search",
    "speed-large",
    "speed-small",
    "thin",
    "verify",
    "walk",
];

/// Facts that the rounds do not tell.
#[derive(Debug, Clone, PartialEq)]
pub struct ShareFacts {
    /// Version of longhaul.
    pub longhaul: String,
    /// Ratio from which a difference matters.
    pub threshold: f64,
    /// Vendor and class of the NAS.
    pub nas: NasFamily,
}

/// Stored records of a machine.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SharedRecords {
    /// Targets in the order in which they were stored.
    pub targets: Vec<Target>,
    /// Epochs of the targets, oldest first.
    pub epochs: Vec<StoredEpoch>,
    /// Rounds in the order of their numbers.
    pub rounds: Vec<StoredRound>,
}

/// Makes a [`SharedResults`] run by run, so that the histograms of all runs need not be in memory at once.
#[derive(Debug)]
pub struct ShareBuilder {
    facts: ShareFacts,
    records: SharedRecords,
    epoch_indexes: BTreeMap<i64, usize>,
    runs: BTreeMap<i64, Vec<(u32, SharedRun)>>,
    phases: Vec<PhaseKey>,
    histograms: BTreeMap<(usize, usize, Operation), Histogram>,
    round_trips: Vec<u64>,
    system: Option<String>,
}

impl ShareBuilder {
    /// Starts a file. A round that has not ended is left out if it is the last one.
    pub fn new(facts: ShareFacts, mut records: SharedRecords) -> Self {
        if records.rounds.last().is_some_and(|round| round.end.is_none()) {
            records.rounds.pop();
        }
        let indexes = records.epochs.iter().enumerate().map(|(index, epoch)| (epoch.number, index));
        Self {
            epoch_indexes: indexes.collect(),
            facts,
            records,
            runs: BTreeMap::new(),
            phases: vec![],
            histograms: BTreeMap::new(),
            round_trips: vec![],
            system: None,
        }
    }

    /// Returns whether the runs of a task are shared: those of everyone, not replays of a recording.
    pub fn is_shared(task: &str) -> bool {
        task != YOUR_DAY.name() && known_task(task).is_some()
    }

    /// Adds a run. Runs of other tasks, and of a round that is left out, are ignored.
    pub fn add(&mut self, stored: &StoredRun) {
        let run = &stored.run;
        let rounds = &self.records.rounds;
        let place = rounds.binary_search_by_key(&run.round, |round| round.number);
        let (Ok(place), Some(epoch)) = (place, self.epoch_indexes.get(&stored.epoch).copied()) else {
            return;
        };
        let Some(task) = known_task(&run.workload).filter(|task| Self::is_shared(task.name())) else {
            return;
        };
        let at_us = run.started_us.as_us() - rounds[place].round.started.as_us();
        let phases = run.phases.iter().map(|phase| self.phase(task, run, phase)).collect();
        self.round_trips.extend(run.conditions.round_trip_us);
        self.system = run.conditions.system.clone().or(self.system.take());
        let shared = SharedRun {
            at_ms: at_us / 1000,
            epoch,
            task: task.name().to_owned(),
            outcome: run.outcome,
            seconds: run.seconds,
            rtt_us: run.conditions.round_trip_us,
            times: times(task, run),
            phases,
        };
        self.runs.entry(run.round).or_default().push((run.slot, shared));
    }

    /// Returns the file. `None` if no round has ended.
    pub fn finish(mut self) -> Option<SharedResults> {
        let first = self.records.rounds.first()?;
        let first_week = Week::of_day(first.round.started.local_day(first.round.utc_offset_seconds));
        let seed = format!("{:016x}", self.records.rounds.last()?.round.seed);
        let mut plans = vec![];
        let rounds = std::mem::take(&mut self.records.rounds);
        let mut share = SharedResults {
            format: FORMAT.to_owned(),
            schema: SCHEMA,
            longhaul: plain_version(&self.facts.longhaul),
            machine: machine_label(&seed),
            seed,
            first_week,
            threshold: self.facts.threshold,
            family: self.family(&rounds),
            targets: self.records.targets.iter().map(|target| target.role).collect(),
            epochs: self.records.epochs.iter().map(|epoch| self.epoch(epoch)).collect(),
            rounds: rounds.iter().map(|round| self.round(round, first_week, &mut plans)).collect(),
            plans,
            phases: self.phases,
            histograms: self.histograms.into_iter().map(shared_histogram).collect(),
            figures: vec![],
        };
        share.figures = figures(&share);
        Some(share)
    }

    fn family(&self, rounds: &[StoredRound]) -> MachineFamily {
        let (system, system_major) = MachineFamily::system_of(self.system.as_deref().unwrap_or_default());
        let mut links: BTreeMap<LinkClass, usize> = BTreeMap::new();
        for before in rounds.iter().filter_map(|round| round.round.before.as_ref()) {
            *links.entry(LinkClass::of(before.link.as_ref())).or_default() += 1;
        }
        let link = links.into_iter().max_by_key(|(_, count)| *count).map(|(link, _)| link);
        MachineFamily {
            nas: self.facts.nas,
            system,
            system_major,
            link: link.unwrap_or_default(),
            round_trip: RoundTripClass::of(self.round_trips.clone()),
        }
    }

    fn target_index(&self, name: &TargetName) -> usize {
        self.records.targets.iter().position(|target| target.name == *name).unwrap_or_default()
    }

    fn epoch(&self, epoch: &StoredEpoch) -> SharedEpoch {
        SharedEpoch {
            target: self.target_index(&epoch.target),
            protocol: ProtocolLabel::of(epoch.protocol.as_ref()),
        }
    }

    fn round(&mut self, stored: &StoredRound, first_week: Week, plans: &mut Vec<RoundDesign>) -> SharedRound {
        let round = &stored.round;
        let plan = self.plan(&round.planned);
        let index = plans.iter().position(|known| *known == plan).unwrap_or_else(|| {
            plans.push(plan);
            plans.len() - 1
        });
        let day = round.started.local_day(round.utc_offset_seconds);
        let seconds = round.started.as_us().div_euclid(1_000_000) + i64::from(round.utc_offset_seconds);
        let mut runs = self.runs.remove(&stored.number).unwrap_or_default();
        runs.sort_by_key(|(slot, _)| *slot);
        SharedRound {
            day: u32::try_from(day - first_week.first_day()).unwrap_or(u32::MAX),
            minute: (seconds.rem_euclid(DAY.as_secs() as i64) / 60) as u32,
            scale: round.scale,
            status: stored.end.as_ref().map_or(RoundStatus::CutShort, |end| end.status),
            plan: index,
            runs: runs.into_iter().map(|(_, run)| run).collect(),
        }
    }

    fn plan(&self, planned: &[PlannedRun]) -> RoundDesign {
        let mut plan = RoundDesign { tasks: vec![], targets: vec![] };
        let mut names = vec![];
        for run in planned {
            let target = self.target_index(&run.target);
            if !plan.targets.contains(&target) {
                plan.targets.push(target);
            }
            if !names.contains(&&run.workload) {
                names.push(&run.workload);
            }
        }
        let shared = |name: &&String| if Self::is_shared(name) { (*name).clone() } else { OTHER.to_owned() };
        plan.tasks = names.iter().map(shared).collect();
        plan
    }

    fn phase(&mut self, task: &Task, run: &Run, phase: &Phase) -> SharedPhase {
        let name = PHASES.iter().find(|known| **known == phase.name).copied().unwrap_or(OTHER);
        let key = PhaseKey { task: task.name().to_owned(), phase: name.to_owned(), cache: phase.cache };
        let index = self.phases.iter().position(|known| *known == key).unwrap_or_else(|| {
            self.phases.push(key);
            self.phases.len() - 1
        });
        let target = self.target_index(&run.target);
        // Decoding happens in memory, so it is no call on a file.
        let on_files = || phase.operations.iter().filter(|stats| stats.operation != Operation::Decode);
        for stats in on_files() {
            let known = self.histograms.entry((target, index, stats.operation)).or_default();
            known.merge(&stats.latency);
        }
        SharedPhase {
            key: index,
            seconds: phase.seconds,
            calls: on_files().map(|stats| stats.latency.count()).sum(),
            call_ns: on_files().map(|stats| stats.latency.sum_ns()).sum(),
            read: phase.bytes_read,
            written: phase.bytes_written,
            requests: phase.wire.as_ref().and_then(|wire| wire.requests),
            wire_read: phase.wire.as_ref().and_then(|wire| wire.read),
        }
    }
}

/// Returns the digits of a version.
fn plain_version(text: &str) -> String {
    text.chars().take_while(|c| c.is_ascii_digit() || *c == '.').take(20).collect()
}

fn known_task(name: &str) -> Option<&'static Task> {
    TASKS.iter().find(|task| task.name() == name)
}

fn times(task: &Task, run: &Run) -> Vec<Option<f64>> {
    if run.outcome != Outcome::Ok {
        return vec![];
    }
    let times = MetricTimes::from_run(run, task.metrics());
    (0..task.metrics().len()).map(|index| times.get(index)).collect()
}

fn shared_histogram(
    ((target, phase, operation), histogram): ((usize, usize, Operation), Histogram),
) -> SharedHistogram {
    let (first, counts) = histogram.buckets();
    SharedHistogram {
        target,
        phase,
        operation,
        first,
        counts: counts.to_vec(),
        sum_ns: histogram.sum_ns(),
        min_ns: histogram.min_ns().unwrap_or(0),
        max_ns: histogram.max_ns().unwrap_or(0),
    }
}
