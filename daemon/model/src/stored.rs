//! Records of the database, as its readers return them.

use std::path::PathBuf;

use super::{
    CacheState, Call, ColdMethod, Event, MachineSnapshot, NegotiatedOptions, OperationStats, Outcome,
    ProbeStep, Protocol, RoundStatus, Run, Scale, Stall, Target, TargetName, Timestamp, TrafficStep,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One planned run of a round: a workload on a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedRun {
    /// Target of the run.
    pub target: TargetName,
    /// Name of the workload.
    pub workload: String,
}

impl PlannedRun {
    /// Returns every workload on every target: all targets of the first workload, then those of the next.
    pub fn each<'a>(
        workloads: impl IntoIterator<Item: Into<String>>,
        targets: impl Iterator<Item = &'a TargetName> + Clone,
    ) -> Vec<Self> {
        let on_targets = |workload: String| {
            targets.clone().map(move |target| Self { target: target.clone(), workload: workload.clone() })
        };
        workloads.into_iter().map(Into::into).flat_map(on_targets).collect()
    }
}

/// The data of a round that are known at its start.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRound {
    /// Start of the round.
    pub started: Timestamp,
    /// Offset of local time from UTC at the start of the round, in seconds.
    pub utc_offset_seconds: i32,
    /// Seed of the random generator that the order of the runs was drawn with.
    pub seed: u64,
    /// Size of the test data.
    pub scale: Scale,
    /// Planned runs in the random order drawn.
    pub planned: Vec<PlannedRun>,
    /// Scheduled start without jitter. `None`: the round was started by a user.
    pub scheduled: Option<Timestamp>,
    /// State of the machine just before the round. `None`: not recorded.
    pub before: Option<MachineSnapshot>,
}

impl NewRound {
    /// Returns a round that a user started where local time is UTC, without planned runs or a state of the machine.
    pub fn new(started: Timestamp, seed: u64, scale: Scale) -> Self {
        Self { started, utc_offset_seconds: 0, seed, scale, planned: vec![], scheduled: None, before: None }
    }
}

/// The data that are stored when a round ends.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundEnd {
    /// Final status of the round.
    pub status: RoundStatus,
    /// Reason for the status. `None`: the status is `ok`.
    pub reason: Option<String>,
    /// End of the round.
    pub ended: Timestamp,
}

/// Number of scheduled rounds by status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct RoundCounts {
    /// Rounds in which every planned run was made.
    pub ok: u64,
    /// Void rounds, whose results are not used.
    pub void: u64,
    /// Rounds that were stopped before their last run.
    pub cut_short: u64,
    /// Rounds that were not started.
    pub skipped: u64,
    /// Rounds without an end: still running, or interrupted by a crash and not closed yet.
    pub open: u64,
}

impl RoundCounts {
    /// Returns the number of planned rounds: all of them, including skipped ones.
    pub fn planned(&self) -> u64 {
        self.ok + self.void + self.cut_short + self.skipped + self.open
    }

    /// Adds `rounds` to the count of `status`. `None`: open rounds, which have no end.
    pub fn add(&mut self, status: Option<RoundStatus>, rounds: u64) {
        match status {
            Some(RoundStatus::Ok) => self.ok += rounds,
            Some(RoundStatus::Void) => self.void += rounds,
            Some(RoundStatus::CutShort) => self.cut_short += rounds,
            Some(RoundStatus::Skipped) => self.skipped += rounds,
            None => self.open += rounds,
        }
    }
}

/// A stored round.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRound {
    /// Number of the round in this database, from 1.
    pub number: i64,
    /// Data known at the start of the round.
    pub round: NewRound,
    /// End of the round. `None`: still running, or interrupted by a crash and not closed yet.
    pub end: Option<RoundEnd>,
}

/// Free space on a target's file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreeSpace {
    /// Free bytes.
    pub free_bytes: u64,
    /// Size of the file system in bytes. `None`: not recorded.
    pub total_bytes: Option<u64>,
    /// Time of the observation.
    pub observed: Timestamp,
}

/// A stored event: an object of `events --json`.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct StoredEvent {
    /// Number of the event in this database, from 1.
    pub number: i64,
    /// The event itself.
    pub event: Event,
}

/// A stored run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoredRun {
    /// Number of the run in this database, from 1; users refer to the run by this number.
    pub number: i64,
    /// Globally unique id of the run for OpenTelemetry: 32 random hexadecimal digits.
    pub trace_id: String,
    /// Number of the target's epoch that the run belongs to.
    pub epoch: i64,
    /// The run, exactly as it was passed to the writer.
    pub run: Run,
}

/// A stored target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTarget {
    /// Target with the path and role of its latest run.
    pub target: Target,
    /// Time at which the target was first stored.
    pub added: Timestamp,
    /// Number of stored runs of this target.
    pub runs: u64,
}

/// An epoch: the period of a target under one path, protocol and set of negotiated options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEpoch {
    /// Number of the epoch in this database, from 1.
    pub number: i64,
    /// Name of the target.
    pub target: TargetName,
    /// Start of the epoch's first run.
    pub opened: Timestamp,
    /// Measured folder.
    pub path: PathBuf,
    /// Protocol of the mount. `None`: it could not be determined.
    pub protocol: Option<Protocol>,
    /// Negotiated options. Empty: they could not be determined.
    pub negotiated: NegotiatedOptions,
}

/// Statistics of one kind of operation in one phase of a run, with the run and phase that they belong to.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredOperation {
    /// Number of the run.
    pub run: i64,
    /// Number of the round.
    pub round: i64,
    /// Number of the epoch.
    pub epoch: i64,
    /// Name of the target.
    pub target: TargetName,
    /// Protocol of the target. `None`: it could not be determined.
    pub protocol: Option<Protocol>,
    /// Name of the workload.
    pub workload: String,
    /// Size of the test data.
    pub scale: Scale,
    /// Outcome of the run.
    pub outcome: Outcome,
    /// Start of the run.
    pub started: Timestamp,
    /// Name of the phase.
    pub phase: String,
    /// Cache state of the phase.
    pub cache: CacheState,
    /// Method by which the caches were emptied. `None`: the phase is not cold.
    pub cold_by: Option<ColdMethod>,
    /// Latency histogram and number of errors of the operation.
    pub stats: OperationStats,
}

/// Data that one run compared with what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerifiedRun {
    /// Number of the run.
    pub run: i64,
    /// Bytes that were compared.
    pub bytes: u64,
    /// Those of them that are known to have come from the server or disk.
    pub wire_bytes: u64,
    /// Number of times that a file was compared up to its end.
    pub files: u64,
    /// Wrong ranges that this run was the first to find.
    pub mismatches: u64,
}

/// The individually stored calls of one phase, with the run and phase that they belong to.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredCalls {
    /// Number of the run.
    pub run: i64,
    /// Name of the target.
    pub target: TargetName,
    /// Protocol of the target. `None`: it could not be determined.
    pub protocol: Option<Protocol>,
    /// Name of the workload.
    pub workload: String,
    /// Size of the test data.
    pub scale: Scale,
    /// Name of the phase.
    pub phase: String,
    /// Cache state of the phase.
    pub cache: CacheState,
    /// Start of the phase.
    pub began: Timestamp,
    /// The stored calls.
    pub calls: Vec<Call>,
}

/// Everything that is stored about the stalls and slow calls of all targets in a window of time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StallRecords {
    /// Stalls, oldest first.
    pub stalls: Vec<Stall>,
    /// Individually stored calls.
    pub calls: Vec<StoredCalls>,
    /// Results of the latency probe, in steps of five minutes.
    pub probes: Vec<ProbeStep>,
    /// Traffic in steps of five minutes.
    pub traffic: Vec<TrafficStep>,
    /// Events of targets and of the machine.
    pub events: Vec<Event>,
}

/// Filter for runs. The default matches all runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunFilter {
    /// Only runs on this target. `None`: all targets.
    pub target: Option<TargetName>,
    /// Only runs of this workload. `None`: all workloads.
    pub workload: Option<String>,
    /// Only runs that started at this time or later. `None`: any time.
    pub since: Option<Timestamp>,
    /// Only runs with this outcome. `None`: all outcomes.
    pub outcome: Option<Outcome>,
    /// Number of the latest runs that are passed over.
    pub skip: u32,
    /// Maximum number of runs; the latest ones are returned. `None`: no limit.
    pub limit: Option<u32>,
}
