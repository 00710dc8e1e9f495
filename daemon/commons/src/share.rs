//! The file of one machine: all from which its verdicts follow, without names.

use std::iter::repeat_n;

use longhaul_analysis::summary::{Verdict, Week};
use longhaul_model::{CacheState, Operation, Outcome, Role, RoundStatus, Scale};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::family::{MachineFamily, ProtocolLabel};

/// Name of the file format.
pub const FORMAT: &str = "longhaul share";
/// Version of the format that this program writes, and the newest that it reads.
pub const SCHEMA: u64 = 1;
/// Name of a task or phase that is not one of longhaul's own. Its real name is not shared.
pub const OTHER: &str = "other";

/// Results of one machine in the form that is shared. It has no text that a user chose: only numbers, and names from closed sets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedResults {
    /// Name of the format: [`FORMAT`].
    pub format: String,
    /// Version of the format.
    pub schema: u64,
    /// Version of longhaul that wrote the file, such as `0.1.0`.
    pub longhaul: String,
    /// Label of the machine; see [`machine_label`].
    pub machine: String,
    /// Seed of the machine in 16 hexadecimal digits, from which the order of all runs was drawn.
    pub seed: String,
    /// ISO week of the first round.
    pub first_week: Week,
    /// Ratio from which a difference matters, above 1.
    pub threshold: f64,
    /// Kind of the NAS, the system and the network.
    pub family: MachineFamily,
    /// Roles of the targets. They have no names; the first one is called `a`, the next one `b`.
    pub targets: Vec<Role>,
    /// Epochs of the targets, oldest first.
    pub epochs: Vec<SharedEpoch>,
    /// Plans to which the rounds refer.
    pub plans: Vec<RoundDesign>,
    /// Phases to which the runs and histograms refer.
    pub phases: Vec<PhaseKey>,
    /// All rounds, oldest first. None may be left out, because the order of the runs depends on the number of rounds before.
    pub rounds: Vec<SharedRound>,
    /// Latencies of each operation in each phase, over all runs.
    pub histograms: Vec<SharedHistogram>,
    /// Figures that follow from the rounds.
    pub figures: Vec<SharedFigure>,
}

/// An epoch of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedEpoch {
    /// Index of the target.
    pub target: usize,
    /// Protocol in the epoch.
    pub protocol: ProtocolLabel,
}

/// The tasks and targets of a round, in the order from which the order of the runs is drawn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoundDesign {
    /// Names of the tasks; [`OTHER`] for one whose runs are not shared.
    pub tasks: Vec<String>,
    /// Indexes of the targets.
    pub targets: Vec<usize>,
}

impl RoundDesign {
    /// Returns the number of runs of a complete round.
    pub(crate) fn runs(&self) -> usize {
        self.tasks.len() * self.targets.len()
    }
}

/// A phase of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseKey {
    /// Name of the task.
    pub task: String,
    /// Name of the phase, or [`OTHER`].
    pub phase: String,
    /// Cache state of the phase: `cold`, `warm` or `none`.
    pub cache: CacheState,
}

/// A round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedRound {
    /// Day of its start in local time, counted from the Monday of the first week.
    pub day: u32,
    /// Minute of that day.
    pub minute: u32,
    /// Size of the test data.
    pub scale: Scale,
    /// Status of the round; `cut-short` if it has not ended.
    pub status: RoundStatus,
    /// Index of its plan.
    pub plan: usize,
    /// Its runs in the order in which they were made.
    pub runs: Vec<SharedRun>,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedRun {
    /// Start in milliseconds after that of the round. Negative if the clock was set meanwhile.
    pub at_ms: i64,
    /// Index of its epoch, which names the target.
    pub epoch: usize,
    /// Name of the task.
    pub task: String,
    /// Outcome of the run.
    pub outcome: Outcome,
    /// Duration in seconds; of a hung run the cap.
    pub seconds: f64,
    /// Round trip time of the network just before it, in microseconds; `None` if it was not measured.
    pub rtt_us: Option<u64>,
    /// Times of the metrics of the task in seconds, in its order; `None` for one without a time.
    pub times: Vec<Option<f64>>,
    /// Its phases in order.
    pub phases: Vec<SharedPhase>,
}

/// A phase of a run. In the file it is an array of these values in this order, because there are thousands.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "PhaseRow", into = "PhaseRow")]
pub struct SharedPhase {
    /// Index of its key.
    pub key: usize,
    /// Duration in seconds.
    pub seconds: f64,
    /// Number of calls on files and folders.
    pub calls: u64,
    /// Total time in these calls over all threads, in nanoseconds.
    pub call_ns: u64,
    /// Bytes that read calls returned.
    pub read: u64,
    /// Bytes that write calls accepted.
    pub written: u64,
    /// Number of requests to the server; `None` if no counter counts them.
    pub requests: Option<u64>,
    /// Bytes received on the wire; `None` if no counter counts them.
    pub wire_read: Option<u64>,
}

type PhaseRow = (usize, f64, u64, u64, u64, u64, Option<u64>, Option<u64>);

impl From<PhaseRow> for SharedPhase {
    fn from((key, seconds, calls, call_ns, read, written, requests, wire_read): PhaseRow) -> Self {
        Self { key, seconds, calls, call_ns, read, written, requests, wire_read }
    }
}

impl From<SharedPhase> for PhaseRow {
    fn from(phase: SharedPhase) -> Self {
        let SharedPhase { key, seconds, calls, call_ns, read, written, requests, wire_read } = phase;
        (key, seconds, calls, call_ns, read, written, requests, wire_read)
    }
}

/// Latencies of an operation in a phase on a target, over all runs of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedHistogram {
    /// Index of the target.
    pub target: usize,
    /// Index of the key of the phase.
    pub phase: usize,
    /// Kind of the calls.
    pub operation: Operation,
    /// Index of the first bucket; see docs/methodology.md#histograms-and-quantiles.
    pub first: i32,
    /// Number of calls in each bucket.
    pub counts: Vec<u64>,
    /// Sum of the latencies in nanoseconds.
    pub sum_ns: u64,
    /// Shortest latency in nanoseconds.
    pub min_ns: u64,
    /// Longest latency in nanoseconds.
    pub max_ns: u64,
}

/// Figure of two targets on one metric, or on all metrics together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedFigure {
    /// Index of the first target.
    pub a: usize,
    /// Index of the second target.
    pub b: usize,
    /// `overall`, or the metric as `task/name`.
    pub key: String,
    /// Number of valid days.
    pub days: usize,
    /// Number of rounds with a value of both targets.
    pub rounds: usize,
    /// Logarithm of the time on `b` divided by the time on `a`; mean over the valid days.
    pub ln_ratio: f64,
    /// Standard error of `ln_ratio`.
    pub standard_error: f64,
    /// Half width of the interval of `ln_ratio`, valid at any time; `None` while it is infinite.
    pub half_width: Option<f64>,
    /// Logarithm of the e-value against "no difference on this machine".
    pub ln_e: f64,
    /// Verdict by the verdict rule.
    pub verdict: Verdict,
}

/// Returns the label of a machine: the first 32 hexadecimal digits of the SHA-256 of a public text and the seed. Equal machines
/// have equal labels, and the id of the machine cannot be computed from it.
pub fn machine_label(seed: &str) -> String {
    let digest = Sha256::digest(format!("longhaul share: machine {seed}"));
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

impl SharedResults {
    /// Returns the content of the file as JSON text: one line for each round, histogram and figure, so that Git stores changes
    /// and not copies.
    pub fn to_json(&self) -> String {
        let text = serde_json::to_string(self).expect("a share has only plain values");
        let broken =
            [("{\"day\":", "\n{\"day\":"), ("{\"target\":", "\n{\"target\":"), ("{\"a\":", "\n{\"a\":")];
        broken.iter().fold(text, |text, (mark, line)| text.replace(mark, line)) + "\n"
    }

    /// Returns the seed as a number; `None` if it is not one.
    pub fn seed(&self) -> Option<u64> {
        (self.seed.len() == 16).then(|| u64::from_str_radix(&self.seed, 16).ok())?
    }

    /// Iterates over all runs with their rounds.
    pub fn runs(&self) -> impl Iterator<Item = (&SharedRound, &SharedRun)> {
        self.rounds.iter().flat_map(|round| round.runs.iter().map(move |run| (round, run)))
    }

    /// Returns the index of the target of a run.
    pub fn target_of(&self, run: &SharedRun) -> usize {
        self.epochs[run.epoch].target
    }

    /// Returns the size of the test data that the figures are about: that of most runs. `None` without a run.
    pub fn scale(&self) -> Option<Scale> {
        Scale::most_frequent(self.rounds.iter().flat_map(|round| repeat_n(round.scale, round.runs.len())))
    }

    /// Returns the protocol of a target in the epoch that its figures are about: the newest one with a run at their scale.
    /// Without such a run it is that of the newest epoch.
    pub fn protocol_of(&self, target: usize) -> ProtocolLabel {
        let scale = self.scale();
        let is_counted = |round: &SharedRound, run: &SharedRun| {
            Some(round.scale) == scale && self.target_of(run) == target
        };
        let counted = self.runs().filter(|(round, run)| is_counted(round, run));
        let newest = counted.map(|(_, run)| run.epoch).max();
        let newest = newest.or_else(|| self.epochs.iter().rposition(|epoch| epoch.target == target));
        newest.map_or(ProtocolLabel::Other, |epoch| self.epochs[epoch].protocol)
    }
}
