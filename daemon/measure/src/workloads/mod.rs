//! The replayed tasks: one file each, and the table [`WORKLOADS`].
//!
//! To add one, write its file and its line in the table: help, lists, configuration and tests follow from there.

pub mod classic;
pub(crate) mod folder_index;
pub(crate) mod incremental_backup;
pub(crate) mod photo_batch;
mod time_machine;

use std::ffi::{CStr, CString};
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use classic::OwnProfile;

use crate::arena::Arena;
use crate::context::{Context, Folder, OpenFile, Session};
use crate::corpus::slices::{SLICES, turn};
use crate::error::RunError;
use crate::model::{Endpoint, Scale};
use crate::platform::{Access, IoPolicy, Space};

/// Every workload, in the order in which they are listed.
pub static WORKLOADS: &[&dyn Workload] = &[
    &folder_index::FolderIndex,
    &photo_batch::PhotoBatch,
    &incremental_backup::IncrementalBackup,
    &time_machine::TimeMachine::NORMAL,
    &time_machine::TimeMachine::THROTTLED,
];

/// Every workload and every classic, in the order in which they are listed.
pub fn everything() -> impl Iterator<Item = &'static dyn Workload> {
    let classics = classic::classics().iter().map(|classic| classic as &dyn Workload);
    WORKLOADS.iter().copied().chain(classics)
}

/// The workload or classic with this name.
pub fn workload(name: &str) -> Option<&'static dyn Workload> {
    everything().find(|workload| workload.name() == name)
}

/// Every endpoint with its workload, in the order in which they are listed.
pub fn endpoints() -> impl Iterator<Item = (&'static dyn Workload, &'static Endpoint)> {
    WORKLOADS.iter().flat_map(|workload| workload.endpoints().iter().map(|endpoint| (*workload, endpoint)))
}

/// Whether a file of an arena, given by its folder and its path in it, is one that a workload made.
pub fn owns(folder: &str, path: &Path) -> bool {
    classic::owns(folder, path)
        || WORKLOADS.iter().any(|workload| workload.folder() == folder && workload.owns(path))
}

/// One real task.
pub trait Workload: Sync {
    /// Its name: stored with each run, so it never changes.
    fn name(&self) -> &'static str;

    /// What it replays, in one line.
    fn summary(&self) -> &'static str;

    /// Its folder in an arena.
    fn folder(&self) -> &'static str {
        self.name()
    }

    /// The waits in it that are compared between targets, each in seconds.
    fn endpoints(&self) -> &'static [Endpoint];

    /// Whether it waits on a schedule of its own, so that how long it takes in all says nothing about the target.
    fn is_paced(&self) -> bool {
        false
    }

    /// At which I/O policy it runs.
    fn io_policy(&self) -> IoPolicy {
        IoPolicy::Default
    }

    /// Whether a path in its folder is that of a file that it makes. Names follow from seeds, so the path says it all.
    fn owns(&self, path: &Path) -> bool;

    /// Makes what the run needs, and resumes what an interrupted preparation left. Not timed.
    fn prepare(&self, job: &Job<'_>) -> Result<(), RunError>;

    /// Does the task.
    fn run(&self, job: &Job<'_>) -> Result<(), RunError>;
}

/// What may be set for all workloads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Files of the folder-index tree in all; `None`: as the scale says.
    pub tree_files: Option<u64>,
    /// Bytes of one band of the time-machine image.
    pub band_bytes: u64,
    /// Share of the target that stays free whatever happens, from 0 to 1.
    pub free_floor: f64,
    /// How many slices of a corpus take turns.
    pub slices: u64,
    /// Operations on a target in a second, at most; `None`: as many as it takes.
    #[serde(default)]
    pub operations_per_second: Option<u32>,
    /// How much of a classic that is cut into slices a run does.
    #[serde(default)]
    pub classics: Portion,
    /// A profile of one's own, which is run under its name.
    #[serde(default)]
    pub own: Option<Box<OwnProfile>>,
}

/// How much of something that is cut into slices a run does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Portion {
    /// The slice whose turn it is: for rounds, which come again.
    #[default]
    Slice,
    /// All of it: for somebody who asked for it once.
    Whole,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            tree_files: None,
            band_bytes: 8 << 20,
            free_floor: 0.05,
            slices: SLICES,
            operations_per_second: None,
            classics: Portion::default(),
            own: None,
        }
    }
}

/// One run of one workload, with all that it may use.
pub struct Job<'run> {
    /// Its phases and facts.
    pub session: &'run Session<'run>,
    /// The arena on the target.
    pub arena: &'run Arena,
    /// A folder on the local disk that is this target's alone.
    pub local: &'run Path,
    /// How large.
    pub scale: Scale,
    /// What is set for all workloads.
    pub settings: &'run Settings,
    /// How many times the target has been measured before, which decides whose turn it is among slices.
    pub rotation: u64,
    /// The seed of samples that differ from round to round, the same for every target.
    pub seed: u64,
    /// Wall clock at the begin, in microseconds since 1970.
    pub now_us: i64,
}

impl Job<'_> {
    /// The slice whose turn it is.
    pub fn slice(&self) -> u64 {
        turn(self.rotation, self.settings.slices)
    }

    /// A door for preparations.
    pub fn preparation(&self) -> Context<'_> {
        self.session.preparation()
    }

    /// Refuses to go on unless this many bytes fit on the target with the floor kept free.
    pub fn require_space(&self, bytes: u64) -> Result<(), RunError> {
        let Space { free_bytes: free, total_bytes } = self.arena.space(&self.preparation())?;
        let floor = (total_bytes as f64 * self.settings.free_floor) as u64;
        if free >= bytes.saturating_add(floor) {
            return Ok(());
        }
        let reason = format!(
            "{:.1} MB are free, but {:.1} MB are needed and {:.1} MB have to stay free",
            free as f64 / 1e6,
            bytes as f64 / 1e6,
            floor as f64 / 1e6
        );
        Err(RunError::refused(
            self.arena.path(),
            reason,
            "Free space on the target, or measure at a smaller scale (`--scale quick`)",
        ))
    }
}

impl Job<'_> {
    /// Refuses to go on where a file that exists cannot be written in the middle: gvfs can only replace one as a whole.
    /// Asked of the arena's marker, which is always there and stays as it is.
    pub fn require_writing_in_place(&self) -> Result<(), RunError> {
        let context = self.preparation();
        let marker = CString::new(crate::arena::MARKER).expect("a file name without NUL");
        let opened = context.open(&self.arena.folder()?, &marker, Access::Both);
        let marker = opened.map_err(|error| refused_in_place(self.arena.path(), error))?;
        context.close(marker)
    }
}

/// What it means that a file cannot be opened for writing in place.
fn refused_in_place(arena: &Path, error: RunError) -> RunError {
    match error.is_unsupported() {
        true => RunError::refused(
            arena,
            "files here can be replaced but not written in the middle, which this task does",
            "Measure the other tasks here, or mount the share with another client",
        ),
        false => error,
    }
}

/// Removes what an earlier run left. That it is gone already is as well: after a server lost its power, clients may go on
/// listing for a while what it never wrote to its disk.
pub fn unlink_left_over(context: &Context<'_>, folder: &Folder, name: &CStr) -> Result<(), RunError> {
    match context.unlink(folder, name) {
        Err(RunError::Operation { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Makes a file; one that an interrupted preparation left is removed first.
pub fn create_anew(context: &Context<'_>, folder: &Folder, name: &CStr) -> Result<OpenFile, RunError> {
    match context.create(folder, name) {
        Err(RunError::Operation { source, .. }) if source.kind() == std::io::ErrorKind::AlreadyExists => {
            unlink_left_over(context, folder, name)?;
            context.create(folder, name)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{MOST_ENDPOINTS, Operation, Outcome};

    #[test]
    fn the_table_is_well_formed() {
        let mut names: Vec<_> = WORKLOADS.iter().map(|workload| workload.name()).collect();
        assert!(names.iter().all(|name| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')));
        assert!(WORKLOADS.iter().all(|workload| workload.summary().len() > 20));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), WORKLOADS.len(), "names are unique");
    }

    #[test]
    fn endpoints_have_names_of_their_own_and_weights_that_add_up_to_one() {
        for workload in WORKLOADS {
            let mut names: Vec<_> = workload.endpoints().iter().map(|endpoint| endpoint.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), workload.endpoints().len());
            assert!((1..=MOST_ENDPOINTS).contains(&names.len()), "{}", workload.name());
        }
        let weight: f64 = endpoints().map(|(_, endpoint)| endpoint.weight).sum();
        assert!((weight - 1.0).abs() < 1e-12, "{weight}");
    }

    #[test]
    fn a_mount_without_writing_in_place_is_unavailable_and_a_broken_one_is_an_error() {
        let failed = |code| {
            let source = std::io::Error::from_raw_os_error(code);
            let error = RunError::operation(Operation::Open, Path::new("/a/arena.json"), source);
            refused_in_place(Path::new("/a"), error).outcome()
        };
        assert_eq!(failed(libc::EOPNOTSUPP), Outcome::Unavailable);
        assert_eq!(failed(libc::EIO), Outcome::Error);
    }

    #[test]
    fn a_left_over_that_is_gone_already_is_no_failure() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("large"), "x").unwrap();
        let (recorder, stop) = (crate::recorder::Recorder::private().unwrap(), Default::default());
        let context = Context::new(&recorder, 0, &stop);
        let folder = context.open_folder_path(place.path()).unwrap();
        unlink_left_over(&context, &folder, c"large").unwrap();
        assert!(!place.path().join("large").exists());
        unlink_left_over(&context, &folder, c"large").unwrap();
    }

    #[test]
    fn classics_have_names_of_their_own_and_no_endpoint() {
        let mut names: Vec<_> = everything().map(Workload::name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|two| two[0] != two[1]), "{names:?}");
        assert!(classic::classics().iter().all(|classic| classic.endpoints().is_empty()));
    }

    #[test]
    fn no_workload_owns_a_path_outside_its_scheme() {
        for workload in everything() {
            for path in ["diary.txt", "../scan 000001.pdf", "", "/etc/passwd"] {
                assert!(!workload.owns(Path::new(path)), "{} owns {path}", workload.name());
            }
        }
    }
}
