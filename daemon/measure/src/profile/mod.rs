//! Profiles: tasks as data. Sets of files, and phases in which threads do steps on them, written as TOML.
//!
//! ```toml
//! summary = "one line: what it replays"
//!
//! [files.mail]              # a set of files, made before the phases begin
//! count = 1000
//! size = "16 KiB"           # or ["2 MB", "1 GB"], { from = 1024, to = 32767 }, { mean = "128 KiB", shape = 1.5 }, "home"
//!
//! [[phase]]
//! name = "deliver"
//!
//! [[phase.work]]            # threads that do the same
//! files = "mail"
//! threads = 16
//! seconds = 10              # or `times = 500`; neither: once for each file
//! steps = [
//!   { do = "open", pick = "random" },
//!   { do = "read", amount = "file", block = "1 MiB" },
//!   { do = "close" },
//! ]
//! ```
//!
//! What is written down is checked when it is read ([`Profile::parse`]): every name, every unit, every number. What is
//! known of a profile beforehand is its [`Cost`].

mod bytes;
mod check;
mod cost;
mod print;
mod published;
mod size;
mod step;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use bytes::Bytes;
pub(crate) use check::is_name;
pub use cost::Cost;
pub use print::{Print, PrintUnit, Statistic, Taken};
pub use published::{Published, published};
pub use size::Size;
pub use step::{Action, Amount, At, Step};

use crate::model::{CacheState, Scale};

/// A task as data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Profile {
    /// What it replays, in one line.
    pub summary: String,
    /// The program that it reproduces, with its version; none for a profile of one's own.
    pub original: Option<String>,
    /// What differs from the original and why, a line each.
    #[serde(default)]
    pub differs: Vec<String>,
    /// What quick runs divide by.
    #[serde(default)]
    pub quick: Divisors,
    /// Into how many parts it is cut where it is run in rounds for weeks; they take turns.
    #[serde(default = "one")]
    pub slices: u64,
    /// The sets of files, by name.
    #[serde(default)]
    pub files: BTreeMap<String, FileSet>,
    /// The phases, in order.
    #[serde(rename = "phase")]
    pub phases: Vec<Phase>,
    /// The figures that the original prints, under its names and in its units.
    #[serde(default, rename = "figure")]
    pub figures: Vec<Print>,
}

/// What the numbers of a profile are divided by in a quick run. Never below a file for each thread, one time or a tenth of a
/// second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Divisors {
    /// Bytes of files.
    pub size: u64,
    /// Numbers of files.
    pub count: u64,
    /// Times that steps are repeated.
    pub times: u64,
    /// Seconds.
    pub seconds: f64,
}

impl Default for Divisors {
    fn default() -> Self {
        Self { size: 1, count: 1, times: 1, seconds: 1.0 }
    }
}

/// Files of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FileSet {
    /// How many.
    pub count: u64,
    /// How large each is.
    pub size: Size,
    /// Bytes of one call while they are made: of what size the pieces are that caches keep of them.
    #[serde(default = "block")]
    pub block: Bytes,
    /// Over how many folders they are spread.
    #[serde(default = "one")]
    pub folders: u64,
    /// What they are called.
    #[serde(default)]
    pub names: Names,
    /// The share of them that is there when the phases begin, from 0 to 1.
    #[serde(default = "all")]
    pub present: f64,
}

/// What files are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Names {
    /// Eight digits, in base 16.
    #[default]
    Digits,
    /// Digits, then one to thirteen letters: `0000000a-w8e`. Made in the order in which names are sorted.
    DigitsLetters,
    /// Letters, then digits: `w8e-0000000a`. Made in no order.
    LettersDigits,
}

/// A part of the task with figures of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// `cold`: this machine's cache is emptied of its files before; `warm`: it does again what was just done.
    #[serde(default = "neither")]
    pub cache: CacheState,
    /// What else is made of its calls.
    pub analysis: Option<Analysis>,
    /// A task that cannot be said in steps.
    pub program: Option<Program>,
    /// For how long that goes on.
    pub seconds: Option<f64>,
    /// What its threads do, all at the same time.
    #[serde(default)]
    pub work: Vec<Work>,
}

/// What is made of the calls of a phase beside its rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Analysis {
    /// Each repetition is a frame of a film: which would have come too late.
    Frames,
    /// Each repetition moves a file of another size: mean, trimmed mean and slope.
    Transfers,
}

/// A task that cannot be said in steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Program {
    /// Writers, a rewriter, commenters and readers of blogs.
    Blogbench,
}

/// Threads that do the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Work {
    /// On which set.
    pub files: String,
    /// How many threads.
    #[serde(default = "one")]
    pub threads: u64,
    /// How often each of them repeats the steps.
    pub times: Option<u64>,
    /// For how long; with neither, once for each file.
    pub seconds: Option<f64>,
    /// How often a second each begins; as fast as it goes if not said.
    pub per_second: Option<f64>,
    /// Which files a thread has.
    #[serde(default)]
    pub share: Share,
    /// How the file of each repetition is chosen.
    #[serde(default)]
    pub pick: Pick,
    /// Whether each repetition does all steps, or one of them.
    #[serde(default)]
    pub choose: Choose,
    /// Done once by each thread before; not part of its rates.
    #[serde(default)]
    pub before: Vec<Step>,
    /// What is repeated.
    pub steps: Vec<Step>,
    /// Done once by each thread afterwards, and part of its rates; what is then still open is closed, which is not.
    #[serde(default)]
    pub after: Vec<Step>,
}

/// Which files of a set a thread has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Share {
    /// A part of them that is its own.
    #[default]
    Own,
    /// All of them, as every other thread.
    All,
}

/// How a file is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pick {
    /// The one after the last, and the first after the very last.
    #[default]
    Next,
    /// Any.
    Random,
    /// Each once in a drawn order, then again.
    Shuffled,
    /// Each once in the order in which its folder lists it, which is asked for first; then again.
    Listed,
    /// The same until its end was reached, then the next.
    AtEnd,
    /// The same as before.
    Same,
    /// Each of them: the step is done for all.
    All,
}

/// Whether all steps are done or one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Choose {
    /// All, in their order.
    #[default]
    All,
    /// One, drawn by weight.
    One,
}

const fn one() -> u64 {
    1
}
const fn all() -> f64 {
    1.0
}
const fn neither() -> CacheState {
    CacheState::None
}
const fn block() -> Bytes {
    Bytes(1 << 20)
}

/// Why a profile is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", .line.map_or(String::new(), |line| format!("line {line}: ")))]
pub struct ProfileError {
    /// The line, from 1; `None` where it is not about one.
    pub line: Option<usize>,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl Profile {
    /// Reads and checks a profile.
    ///
    /// # Errors
    ///
    /// If it is not TOML, if it has a key that is not known, or if what it says has no meaning.
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        let profile: Self = toml::from_str(text).map_err(|error| ProfileError {
            line: error
                .span()
                .map(|span| 1 + text.bytes().take(span.start).filter(|byte| *byte == b'\n').count()),
            message: error.message().to_owned(),
        })?;
        profile.check().map_err(|message| ProfileError { line: None, message })?;
        Ok(profile)
    }

    /// The same at a scale: smaller if it is quick.
    pub fn at(&self, scale: Scale) -> Self {
        match scale {
            Scale::Quick => Self { slices: 1, ..self.divided(self.quick) },
            Scale::Standard | Scale::Large => self.clone(),
        }
    }

    /// One of its slices: so many times fewer files in fewer folders, and fewer repetitions. A set that has fewer files than
    /// there are slices keeps their number, and each is smaller. What goes on for a fixed time does so as before.
    pub fn slice(&self) -> Self {
        let by = self.slices;
        let mut slice = self.divided(Divisors { count: by, times: by, ..Divisors::default() });
        slice.slices = 1;
        for (name, set) in &mut slice.files {
            let whole = &self.files[name];
            if whole.count < by {
                (set.count, set.size) = (whole.count, whole.size.divided(by));
            }
            set.folders = (whole.folders / by).max(1);
        }
        slice
    }

    fn divided(&self, by: Divisors) -> Self {
        let mut small = self.clone();
        for (name, set) in &mut small.files {
            set.count = (set.count / by.count).max(self.threads_of(name));
            set.folders = set.folders.min(set.count);
            set.size = set.size.divided(by.size);
        }
        let shorter = |seconds: f64| (seconds / by.seconds).max(0.1);
        small.phases.iter_mut().for_each(|phase| phase.seconds = phase.seconds.map(shorter));
        for work in small.phases.iter_mut().flat_map(|phase| &mut phase.work) {
            work.times = work.times.map(|times| (times / by.times).max(1));
            work.seconds = work.seconds.map(shorter);
        }
        small
    }

    /// The most threads that divide a set among them: each needs a file.
    fn threads_of(&self, set: &str) -> u64 {
        let works = self.phases.iter().flat_map(|phase| &phase.work);
        let mine = works.filter(|work| work.files == set && work.share == Share::Own);
        mine.map(|work| work.threads).max().unwrap_or(1)
    }

    /// Whether something is added to files of a set. What is added lies in one sector with what was there, so that all of
    /// it has to be of one turn.
    pub fn grows(&self, set: &str) -> bool {
        let mine = self.phases.iter().flat_map(|phase| &phase.work).filter(|work| work.files == set);
        mine.flat_map(Work::all_steps).any(|step| step.action == Action::Append)
    }

    /// Whether files of a set come and go, so that it has to be made anew for each run.
    pub fn changes(&self, set: &str) -> bool {
        let mine = self.phases.iter().flat_map(|phase| &phase.work).filter(|work| work.files == set);
        let mut steps = mine.flat_map(Work::all_steps);
        let changes = |step: &Step| matches!(step.action, Action::Create | Action::Append | Action::Delete);
        steps.any(changes) || self.files.get(set).is_some_and(|set| set.present < 1.0)
    }
}

impl Work {
    /// Every step.
    pub fn all_steps(&self) -> impl Iterator<Item = &Step> {
        self.before.iter().chain(&self.steps).chain(&self.after)
    }

    /// Whether it needs files that can be written.
    pub fn writes(&self) -> bool {
        let writing = [Action::Write, Action::Append, Action::Sync, Action::Lock];
        self.all_steps().any(|step| writing.contains(&step.action))
    }
}

#[cfg(test)]
mod tests;
