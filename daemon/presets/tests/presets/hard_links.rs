//! Tests that longhaul never changes files that a user's backup shares with the sandbox by hard links. Tools that
//! deduplicate files or make snapshots with hard links create such files. The links in the backup must keep their
//! content, mode, times and extended attributes.

use std::cell::Cell;
use std::fs;
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use longhaul_measure::error::RunError;
use longhaul_measure::platform::IoPolicy;
use longhaul_measure::recorder::Recorder;
use longhaul_measure::sandbox::CleanMode;
use longhaul_measure::timed_fs::{PhaseSpec, Reporter, Session, StopSwitch, TimedFs};
use longhaul_measure::workloads::{Job, WORKLOADS, Workload};
use longhaul_model::{Outcome, Phase, Progress, Scale};
use longhaul_presets::profile::Profile;
use longhaul_presets::{ContentMode, Preset, catalog};

use crate::world::World;

/// State of a file in the backup that must not change.
#[derive(Debug, PartialEq)]
struct BackupFile {
    path: PathBuf,
    content: Vec<u8>,
    mode: u32,
    modified: SystemTime,
    /// Value of the extended attribute `user.longhaul.note`; `None` if absent.
    note: Option<Vec<u8>>,
}

impl BackupFile {
    fn read(path: &Path) -> Self {
        let metadata = fs::metadata(path).unwrap();
        let mut note = [0; 64];
        let attribute = c"user.longhaul.note";
        let length = rustix::fs::getxattr(path, attribute, &mut note).ok();
        Self {
            path: path.to_owned(),
            content: fs::read(path).unwrap(),
            mode: metadata.permissions().mode(),
            modified: metadata.modified().unwrap(),
            note: length.map(|length| note[..length].to_vec()),
        }
    }
}

/// Returns all files below a folder, recursively.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = vec![];
    for entry in fs::read_dir(folder).into_iter().flatten().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => files.extend(files_below(&entry.path())),
            false => files.push(entry.path()),
        }
    }
    files
}

/// Hard-links all files of a sandbox into a backup folder at one point of a run: before the preparation (point 0), or
/// at the start of a phase (points 1, 2, ...).
struct Backup<'a> {
    sandbox: &'a Path,
    folder: &'a Path,
    /// Point of the run at which the backup is made.
    point: usize,
    /// Number of points that the run has reached so far.
    reached: Cell<usize>,
    files: Cell<Vec<BackupFile>>,
}

impl Backup<'_> {
    fn reach_next_point(&self) {
        let point = self.reached.replace(self.reached.get() + 1);
        if point != self.point {
            return;
        }
        let link = |(number, file): (usize, PathBuf)| {
            let name = self.folder.join(format!("{number:06}"));
            fs::hard_link(file, &name).unwrap();
            BackupFile::read(&name)
        };
        self.files.set(files_below(self.sandbox).into_iter().enumerate().map(link).collect());
    }
}

impl Reporter for Backup<'_> {
    fn progress(&self, _: &Progress) {}
    fn phase_began(&self, _: &PhaseSpec<'_>) {
        self.reach_next_point();
    }
    fn phase_ended(&self, _: Phase) {}
}

/// Result of a run during which a backup was made.
struct RunWithBackup {
    /// Number of points that the run reached.
    points: usize,
    /// State of the backup's files right after the backup.
    files: Vec<BackupFile>,
    result: Result<(), RunError>,
    facts: Vec<String>,
}

impl World {
    /// Returns a target with a small tree, and a recording of a catalogue in SQLite: it writes into existing files, renames, locks.
    fn with_catalogue() -> Self {
        let mut world = Self::new();
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        world.settings.recording = Some(examples.join("recordings/catalogue.recording"));
        world.settings.tree_files = Some(60);
        world
    }

    /// Prepares and runs a workload. At the given point of the run, all files in the sandbox are linked to a backup next to it.
    /// `usize::MAX` makes no backup.
    fn run_with_backup(&self, workload: &dyn Workload, point: usize, rotation: u64) -> RunWithBackup {
        let (recorder, stop) = (Recorder::private().unwrap(), StopSwitch::default());
        let sandbox = self.sandbox_path();
        let folder = sandbox.with_file_name(format!("{}-{point}-{rotation}", workload.name()));
        fs::create_dir(&folder).unwrap();
        let backup = Backup {
            sandbox: &sandbox,
            folder: &folder,
            point,
            reached: Cell::default(),
            files: Cell::default(),
        };
        let session = Session::new(&recorder, &stop, &backup);
        let prepare_and_run = || {
            let sandbox = self.open_sandbox(&TimedFs::new(&recorder, 0, &stop))?;
            let job =
                Job { scale: Scale::Quick, rotation, seed: 7 + rotation, ..self.job(&session, &sandbox) };
            backup.reach_next_point();
            workload.prepare(&job)?;
            workload.run(&job)
        };
        let result = prepare_and_run();
        let facts = session.into_facts().into_values().collect();
        RunWithBackup { points: backup.reached.get(), files: backup.files.take(), result, facts }
    }

    /// Removes the sandbox and checks that nothing is left of it.
    fn clean(&self) {
        let (recorder, stop) = (Recorder::private().unwrap(), StopSwitch::default());
        let context = TimedFs::new(&recorder, 0, &stop);
        let sandbox = self.open_sandbox(&context).unwrap();
        let report =
            sandbox.clean(CleanMode::Remove, &context, &|folder, path| catalog().owns(folder, path)).unwrap();
        assert!(report.sandbox_removed, "{report:?}");
    }
}

fn assert_unchanged(before: &[BackupFile]) {
    for file in before {
        assert!(BackupFile::read(&file.path) == *file, "{} changed", file.path.display());
        assert!(fs::metadata(&file.path).unwrap().nlink() >= 1);
    }
}

/// Runs a workload once, then with a backup at each of the points, in turn. The backup must not change, and the next run, without a
/// new backup, must succeed.
fn back_up_at(world: &World, workload: &dyn Workload, points: impl Fn(usize) -> Range<usize>) {
    let mut rotation = 0;
    let mut next = |point| {
        rotation += 1;
        world.run_with_backup(workload, point, rotation)
    };
    let reached = next(usize::MAX).points;
    assert!(reached > 1, "{} must have phases", workload.name());
    for point in points(reached) {
        let run = next(point);
        assert!(!run.files.is_empty(), "{} at point {point}: the backup is empty", workload.name());
        assert_unchanged(&run.files);
        if let Err(error) = &run.result {
            assert!(
                matches!(error, RunError::NotExclusive { .. }),
                "{} at point {point}: {error}",
                workload.name()
            );
            assert_eq!(error.outcome(), Outcome::Unavailable);
        }
        next(usize::MAX)
            .result
            .unwrap_or_else(|error| panic!("{} after point {point}: {error}", workload.name()));
        assert_unchanged(&run.files);
    }
}

fn back_up_at_every_point(world: &World, workload: &dyn Workload) {
    back_up_at(world, workload, |reached| 0..reached);
}

/// Returns the everyday tasks, without those that only differ in how urgent their requests are.
fn tasks() -> impl Iterator<Item = &'static dyn Workload> {
    WORKLOADS.iter().copied().filter(|task| task.io_policy() == IoPolicy::Default)
}

#[test]
fn backup_by_hard_links_is_never_changed() {
    let world = World::with_catalogue();
    tasks().filter(|task| !task.is_paced()).for_each(|task| back_up_at_every_point(&world, task));
    world.clean();
}

/// They mostly wait, hence all at once, and only at their preparation and at their first phase.
#[test]
fn backup_is_never_changed_by_paced_tasks() {
    let at_point = |task: &dyn Workload, point: usize| {
        let world = World::with_catalogue();
        back_up_at(&world, task, |_| point..point + 1);
        world.clean();
    };
    std::thread::scope(|scope| {
        for task in tasks().filter(|task| task.is_paced()) {
            for point in 0..2 {
                scope.spawn(move || at_point(task, point));
            }
        }
    });
}

/// Profile with phases that write in place into existing files, sequentially and at random offsets.
const IN_PLACE: &str = r#"
summary = "writes into files that are there"

[files.data]
count = 6
size = "64 KiB"

[[phase]]
name = "rewrite"
[[phase.work]]
files = "data"
pick = "next"
times = 6
steps = [{ do = "write", block = "16 KiB", amount = "file" }, { do = "sync" }, { do = "close" }]

[[phase]]
name = "random"
[[phase.work]]
files = "data"
pick = "random"
times = 40
steps = [{ do = "write", block = "4 KiB", at = "random" }, { do = "close" }]
"#;

#[test]
fn preset_never_writes_into_a_linked_file() {
    let world = World::with_catalogue();
    let profile = Profile::parse(IN_PLACE).unwrap_or_else(|error| panic!("{error}"));
    let custom = Preset::custom("in-place", profile, ContentMode::Incompressible).unwrap();
    back_up_at_every_point(&world, &custom);
    world.clean();
}

#[test]
fn bands_linked_between_rounds_are_recreated() {
    let world = World::with_catalogue();
    let burst = WORKLOADS.iter().find(|workload| workload.name() == "time-machine").unwrap();
    world.run_with_backup(*burst, usize::MAX, 1).result.unwrap();
    let run = world.run_with_backup(*burst, 0, 2);
    run.result.unwrap();
    assert_unchanged(&run.files);
    assert!(run.facts.iter().any(|fact| fact == "6 bands (it has 2 hard links)"), "{:?}", run.facts);
}
