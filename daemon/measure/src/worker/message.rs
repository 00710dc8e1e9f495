//! Messages between supervisor and worker. Each message is one line of JSON.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::examination::TargetExamination;
use crate::checks::freshness::{ClockOffset, FreshnessSession, MadeChange, WatchLimit, WatchedChange};
use crate::checks::integrity::OtherSandboxRange;
use crate::sandbox::{CleanMode, CleanReport};
use crate::selfcheck::Check;
use crate::workloads::Settings;
use longhaul_model::{
    CacheState, ColdMethod, Conditions, Failure, Finding, Mismatch, NegotiatedOptions, Outcome, Phase,
    ProbeMode, ProbePlan, Progress, Property, Protocol, Scale, Target, WorkerSample,
};

/// Version of longhaul of this process. A supervisor only uses workers of its own version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Setup of a worker: the first line that a worker reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkerSetup {
    /// Target of this worker. The worker accesses no other target.
    pub target: Target,
    /// Random id of this installation (machine id).
    pub machine: String,
    /// Folder on the local disk that is used only for this target.
    pub local: PathBuf,
    /// Path of the flight recorder's file.
    pub recorder: PathBuf,
    /// True if the target belongs on a share: without it, nothing is written to the folder below its mount point.
    pub is_on_share: bool,
    /// Settings of the latency probe; `None` if the worker does not probe.
    pub probe: Option<ProbePlan>,
}

/// Description of the run that a worker prepares or executes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// Name of the workload.
    pub workload: String,
    /// Scale of the test data.
    pub scale: Scale,
    /// Settings of all workloads.
    pub settings: Settings,
    /// Number of times the target was measured before. It determines the slice to use.
    pub rotation: u64,
    /// Random seed of the round.
    pub seed: u64,
}

/// Command to a worker. A worker executes one command at a time, but handles [`WorkerCommand::Stop`] and
/// [`WorkerCommand::Probe`] immediately.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case")]
pub enum WorkerCommand {
    /// Creates the data that a run needs; answered by [`WorkerMessage::Prepared`].
    Prepare(Assignment),
    /// Executes a run; answered by [`WorkerMessage::Ended`].
    Run(Assignment),
    /// Creates an empty sandbox if there is none; answered by [`WorkerMessage::SandboxCreated`].
    CreateSandbox,
    /// Removes the data in the sandbox and on the local disk; answered by [`WorkerMessage::Cleaned`].
    Clean {
        /// Mode of the cleaning: remove or only list.
        mode: CleanMode,
    },
    /// Lists the sandboxes of other targets and machines; answered by [`WorkerMessage::OtherSandboxes`].
    ListOtherSandboxes,
    /// Makes every call that a run needs once, with one small file; answered by [`WorkerMessage::Examined`].
    Examine,
    /// Runs one check of a self-check; answered by [`WorkerMessage::SelfChecked`].
    SelfCheck {
        /// Name of the check.
        call: String,
    },
    /// Makes one step of a check of fidelity; answered by [`WorkerMessage::FidelityChecked`].
    CheckFidelity {
        /// Step to make.
        step: FidelityStep,
        /// Maximum number of operations per second; `None` means no limit.
        operations_per_second: Option<u32>,
    },
    /// Reads a range of a file in another target's sandbox; answered by [`WorkerMessage::RangeRead`].
    ReadElsewhere(OtherSandboxRange),
    /// A step of a freshness session; answered by [`WorkerMessage::Freshness`].
    Freshness(FreshnessCommand),
    /// Changes the mode of the latency probe. Takes effect immediately.
    Probe {
        /// New mode of the probe.
        probing: ProbeMode,
    },
    /// Stops the current command after the operation in flight.
    Stop {
        /// True if the run has reached its cap; false if the user stopped it.
        capped: bool,
    },
}

/// Step of a check of fidelity. Each step is a command, so that the supervisor can apply a timeout to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FidelityStep {
    /// Check one property.
    Check(Property),
    /// Lock a range of a file until the next step. The finding is none if the lock is held.
    HoldLock,
    /// Try the lock that the target with this sandbox holds. The finding is none if its file is not found.
    TryLock(String),
    /// Remove everything that the check created.
    Finish,
}

/// Message from a worker to its supervisor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
pub enum WorkerMessage {
    /// The worker is ready and has looked up the mount of its target.
    Ready {
        /// Protocol of the target with its negotiated version; `None` if no mount was found.
        protocol: Option<Protocol>,
        /// Negotiated options of the mount.
        negotiated: NegotiatedOptions,
        /// Address of the server, used to find the network link to it; `None` if unknown. It is never sent to
        /// another machine.
        #[serde(default)]
        server: Option<IpAddr>,
        /// Version of longhaul of the worker: [`VERSION`]. Empty for versions that did not report
        /// it yet.
        #[serde(default)]
        version: String,
    },
    /// Progress of a preparation.
    Progress(Progress),
    /// A phase has started.
    PhaseBegan {
        /// Name of the phase.
        name: String,
        /// Cache state that the phase claims.
        cache: CacheState,
        /// Method that made the data cold; `None` for a phase that is not cold.
        cold_by: Option<ColdMethod>,
    },
    /// A phase has ended.
    PhaseEnded(Box<Phase>),
    /// A preparation has ended.
    Prepared {
        /// Report on a failed preparation; `None` if it succeeded.
        failed: Option<RunReport>,
    },
    /// Sample of the worker. It can arrive at any time and is not an answer to a command.
    Sample(WorkerSample),
    /// A run has ended.
    Ended(RunReport),
    /// A command failed that neither prepares nor runs a workload.
    Failed(FailureReport),
    /// The sandbox exists.
    SandboxCreated,
    /// The target was examined.
    Examined(TargetExamination),
    /// A check of a self-check was run.
    SelfChecked {
        /// Result of the check; `None` if the worker does not know a check with this name.
        check: Option<Check>,
    },
    /// A step of a check of fidelity was made.
    FidelityChecked {
        /// Finding of the step; `None` if it checked no property.
        finding: Option<Finding>,
    },
    /// A range of a file in another target's sandbox was read.
    RangeRead {
        /// Fingerprint of its bytes; `None` if the file is missing.
        fingerprint: Option<u64>,
    },
    /// A step of a freshness session has ended.
    Freshness(FreshnessAnswer),
    /// The sandbox was cleaned.
    Cleaned {
        /// Report on the removed entries; `None` if there is no sandbox.
        report: Option<CleanReport>,
    },
    /// The target's folder was searched for sandboxes.
    OtherSandboxes {
        /// Names of the sandboxes of other targets and machines.
        names: Vec<String>,
    },
}

/// Outcome and failure of a failed run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FailureReport {
    /// Outcome that is stored for the run.
    pub outcome: Outcome,
    /// Reason of the failure.
    pub failure: Failure,
}

/// Report on a run, in addition to its phases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// Failure of the run; `None` if it succeeded.
    pub failure: Option<FailureReport>,
    /// Facts that the workload found, by name.
    pub facts: BTreeMap<String, String>,
    /// Conditions of the machine and the mount during the run.
    pub conditions: Conditions,
    /// Wrong ranges of files that the run found.
    pub mismatches: Vec<Mismatch>,
}

/// A step of a freshness session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FreshnessCommand {
    /// Writer: creates the files that exist before the changes.
    Prepare(FreshnessSession),
    /// Watcher: finds the session and sees the state before the changes.
    Find(FreshnessSession),
    /// Writer: makes each change after its time.
    Make(FreshnessSession, Vec<Duration>),
    /// Watcher: looks for the changes for at most this time.
    Watch(FreshnessSession, WatchLimit),
    /// Writer: looks whether the changes still exist.
    Confirm(FreshnessSession),
    /// Compares the clock of the NAS with that of this machine.
    CompareClocks(FreshnessSession),
    /// Reads when changes were made on the NAS itself, by its clock.
    Stamps(FreshnessSession),
    /// Writer: removes all files of the session.
    Remove(FreshnessSession),
}

/// Answer to a [`FreshnessCommand`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FreshnessAnswer {
    /// The step was done.
    Done,
    /// The target does not lead to the folder of the session.
    NotFound,
    /// The changes, in the order of the session.
    Made(Vec<MadeChange>),
    /// Observations of all changes, in the order of the session.
    Watched(Vec<WatchedChange>),
    /// True for each change that the server still has.
    Confirmed(Vec<bool>),
    /// Difference of the clocks.
    Clocks(ClockOffset),
    /// Time of each change on the clock of the NAS, in nanoseconds; `None` if the server does not have the change.
    Stamped(Vec<Option<i64>>),
}
