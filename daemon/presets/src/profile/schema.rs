//! The types of a profile, in the form of its TOML file, and its reduction for quick runs and for slices.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::bytes::ByteSize;
use super::printed_figure::PrintedFigure;
use super::size::Size;
use super::step::{Action, FileChoice, Step};
use longhaul_model::{CacheState, Scale};

/// A task that is described as data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Profile {
    /// One-line description of the task.
    pub summary: String,
    /// Program that the profile reproduces, with its version; `None` for a profile that reproduces no program.
    pub original: Option<String>,
    /// Differences from the original program, one sentence or more for each.
    #[serde(default)]
    pub differences: Vec<String>,
    /// Divisors for runs at quick scale.
    #[serde(default)]
    pub quick: Divisors,
    /// Number of slices that the profile is divided into in rounds. Each round runs one slice; the slices take
    /// turns.
    #[serde(default = "default_one")]
    pub slices: u64,
    /// Sets of files, by name.
    #[serde(default)]
    pub files: BTreeMap<String, FileSet>,
    /// Phases, in order of execution.
    #[serde(rename = "phase")]
    pub phases: Vec<Phase>,
    /// Figures that the original program prints, with its names and units.
    #[serde(default, rename = "figure")]
    pub figures: Vec<PrintedFigure>,
}

/// The numbers that the sizes and counts of a profile are divided by in a quick run.
///
/// The results are at least one file per thread, one repetition and a tenth of a second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Divisors {
    /// Divisor for file sizes.
    pub size: u64,
    /// Divisor for the number of files.
    pub count: u64,
    /// Divisor for the number of repetitions.
    pub times: u64,
    /// Divisor for durations.
    pub seconds: f64,
}

impl Default for Divisors {
    fn default() -> Self {
        Self { size: 1, count: 1, times: 1, seconds: 1.0 }
    }
}

/// A set of files of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FileSet {
    /// Number of files.
    pub count: u64,
    /// Sizes of the files.
    pub size: Size,
    /// Size of one write call in bytes while the files are created; it decides the size of the pieces in caches.
    #[serde(default = "ByteSize::default_block")]
    pub block: ByteSize,
    /// Number of folders that the files are spread over.
    #[serde(default = "default_one")]
    pub folders: u64,
    /// Pattern of the file names.
    #[serde(default)]
    pub names: NamePattern,
    /// Share of the files that exist when the phases start, from 0 to 1.
    #[serde(default = "default_presence")]
    pub present: f64,
}

/// A pattern of file names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NamePattern {
    /// Eight hexadecimal digits.
    #[default]
    Digits,
    /// Digits, then 1 to 13 letters: `0000000a-w8e`. Files are created in the sorted order of their names.
    DigitsLetters,
    /// 1 to 13 letters, then digits: `w8e-0000000a`. Files are created in random order of their names.
    LettersDigits,
}

/// A part of a task that has its own figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Phase {
    /// Name of the phase, unique in the profile.
    pub name: String,
    /// Cache state: `cold` evicts the files from this machine's cache first; `warm` repeats what was just done.
    #[serde(default = "default_cache")]
    pub cache: CacheState,
    /// Additional analysis of the repetitions, if any.
    pub analysis: Option<Analysis>,
    /// Program to run instead of steps, if any.
    pub program: Option<Program>,
    /// Duration of the program in seconds; `None` for a phase with steps.
    pub seconds: Option<f64>,
    /// Groups of threads, which all run at the same time.
    #[serde(default)]
    pub work: Vec<ThreadGroup>,
}

/// An additional analysis of the repetitions of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Analysis {
    /// Treats each repetition as a frame of a film and counts late frames.
    Frames,
    /// Treats each repetition as the transfer of a file and computes mean, trimmed mean and slope of the speed.
    Transfers,
}

/// A task that is implemented in code because steps cannot describe it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Program {
    /// Blogbench: writers, a rewriter, commenters and readers of blogs.
    Blogbench,
}

/// A group of threads that repeat the same steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ThreadGroup {
    /// Name of the set of files that the threads use.
    pub files: String,
    /// Number of threads.
    #[serde(default = "default_one")]
    pub threads: u64,
    /// Number of repetitions of each thread; `None` if not limited by number.
    pub times: Option<u64>,
    /// Duration in seconds. Without `times` and `seconds`, there is one repetition for each file.
    pub seconds: Option<f64>,
    /// Repetitions per second of each thread; `None` means as fast as possible.
    pub per_second: Option<f64>,
    /// Sharing of the files among the threads.
    #[serde(default)]
    pub share: FileSharing,
    /// Choice of the file for each repetition.
    #[serde(default)]
    pub pick: FileChoice,
    /// Choice of the steps in each repetition: all of them, or one.
    #[serde(default)]
    pub choose: StepChoice,
    /// Steps that each thread does once before the repetitions. Rates exclude them.
    #[serde(default)]
    pub before: Vec<Step>,
    /// Steps of each repetition.
    pub steps: Vec<Step>,
    /// Steps that each thread does once after the repetitions. Rates include them.
    ///
    /// Files that are still open are then closed; rates exclude this.
    #[serde(default)]
    pub after: Vec<Step>,
}

/// The rule for sharing the files of a set among the threads of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileSharing {
    /// Each thread has its own part of the files.
    #[default]
    Own,
    /// Every thread uses all files.
    All,
}

/// The rule for choosing the steps of a repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepChoice {
    /// All steps, in order.
    #[default]
    All,
    /// One step, drawn at random by weight.
    One,
}

pub(super) const fn default_one() -> u64 {
    1
}
const fn default_presence() -> f64 {
    1.0
}
const fn default_cache() -> CacheState {
    CacheState::None
}
impl Profile {
    /// Returns the profile for a scale: reduced by the divisors for quick scale, otherwise unchanged.
    pub fn scaled_to(&self, scale: Scale) -> Self {
        match scale {
            Scale::Quick => Self { slices: 1, ..self.divided_by(self.quick) },
            Scale::Standard | Scale::Large => self.clone(),
        }
    }

    /// Returns the profile of one slice, with the numbers of files, folders and repetitions divided by `slices`.
    ///
    /// A set that has fewer files than there are slices keeps its number of files, and their sizes are divided
    /// instead. Durations do not change.
    pub fn one_slice(&self) -> Self {
        let by = self.slices;
        let mut slice = self.divided_by(Divisors { count: by, times: by, ..Divisors::default() });
        slice.slices = 1;
        for (name, set) in &mut slice.files {
            let whole = &self.files[name];
            if whole.count < by {
                (set.count, set.size) = (whole.count, whole.size.divided_by(by));
            }
            set.folders = (whole.folders / by).max(1);
        }
        slice
    }

    fn divided_by(&self, by: Divisors) -> Self {
        let mut small = self.clone();
        for (name, set) in &mut small.files {
            set.count = (set.count / by.count).max(self.min_file_count(name));
            set.folders = set.folders.min(set.count);
            set.size = set.size.divided_by(by.size);
        }
        let shorter = |seconds: f64| (seconds / by.seconds).max(0.1);
        small.phases.iter_mut().for_each(|phase| phase.seconds = phase.seconds.map(shorter));
        for work in small.phases.iter_mut().flat_map(|phase| &mut phase.work) {
            work.times = work.times.map(|times| (times / by.times).max(1));
            work.seconds = work.seconds.map(shorter);
        }
        small
    }

    /// Returns the minimum number of files in a set: one for each thread of the largest group that divides the
    /// set.
    fn min_file_count(&self, set: &str) -> u64 {
        let works = self.phases.iter().flat_map(|phase| &phase.work);
        let groups = works.filter(|work| work.files == set && work.share == FileSharing::Own);
        groups.map(|work| work.threads).max().unwrap_or(1)
    }

    /// Returns whether some step appends to files of a set.
    ///
    /// Appended data may share a sector with existing data, so all data of such a set must have one content
    /// version.
    pub fn has_appends(&self, set: &str) -> bool {
        let groups = self.phases.iter().flat_map(|phase| &phase.work).filter(|work| work.files == set);
        groups.flat_map(ThreadGroup::all_steps).any(|step| step.action == Action::Append)
    }

    /// Returns whether steps create, extend or delete files of a set, so that it must be recreated for each run.
    pub fn changes_files(&self, set: &str) -> bool {
        let groups = self.phases.iter().flat_map(|phase| &phase.work).filter(|work| work.files == set);
        let mut steps = groups.flat_map(ThreadGroup::all_steps);
        let changes = |step: &Step| matches!(step.action, Action::Create | Action::Append | Action::Delete);
        steps.any(changes) || self.files.get(set).is_some_and(|set| set.present < 1.0)
    }
}

impl ThreadGroup {
    /// Returns all steps: those before, in and after the repetitions.
    pub fn all_steps(&self) -> impl Iterator<Item = &Step> {
        self.before.iter().chain(&self.steps).chain(&self.after)
    }

    /// Returns whether the steps need files that are open for writing.
    pub fn needs_write_access(&self) -> bool {
        let writing = [Action::Write, Action::Append, Action::Sync, Action::Lock];
        self.all_steps().any(|step| writing.contains(&step.action))
    }
}
