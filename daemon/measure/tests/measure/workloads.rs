//! Tests of workloads in a local folder: what a run leaves behind, and what the next one makes of it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use longhaul_measure::error::{RunError, StopReason};
use longhaul_measure::recorder::Recorder;
use longhaul_measure::timed_fs::{PhaseSpec, Reporter, Session, StopSwitch, TimedFs};
use longhaul_measure::workloads::{Job, READ_BACK, WORKLOADS, Workload, last_good};
use longhaul_model::time::DAY;
use longhaul_model::{CacheState, ColdMethod, DataAge, Phase, Progress, Scale, Timestamp};
use serde_json::Value;

use crate::world::World;

/// Size of a band in these tests: the default.
const BAND_BYTES: u64 = 8 << 20;

/// One run of a workload.
#[derive(Clone, Copy)]
struct RunSpec<'a> {
    task: &'a str,
    /// Day on which it runs.
    day: u32,
    /// Phase at whose start the run is stopped, as by its cap; `None` lets it run to its end.
    stop_at: Option<&'a str>,
}

/// Collects the phases of a run, and stops it at the start of one.
struct Observer<'a> {
    manifest: PathBuf,
    stop: &'a StopSwitch,
    stop_at: Option<&'a str>,
    phases: RefCell<Vec<Phase>>,
    /// Manifest on the target at the start of the last phase.
    seen_manifest: RefCell<Value>,
}

impl Reporter for Observer<'_> {
    fn progress(&self, _: &Progress) {}
    fn phase_began(&self, spec: &PhaseSpec<'_>) {
        *self.seen_manifest.borrow_mut() = manifest(&self.manifest);
        if self.stop_at == Some(spec.name) {
            self.stop.stop(StopReason::Cap);
        }
    }
    fn phase_ended(&self, phase: Phase) {
        self.phases.borrow_mut().push(phase);
    }
}

/// Result of a run, and what it recorded.
struct Finished {
    result: Result<(), RunError>,
    facts: BTreeMap<String, String>,
    phases: Vec<Phase>,
    seen_manifest: Value,
}

impl Finished {
    fn assert_ok(self) -> Self {
        assert!(self.result.is_ok(), "{:?}", self.result);
        self
    }

    fn phase(&self, name: &str) -> &Phase {
        self.phases.iter().find(|phase| phase.name == name).unwrap()
    }
}

/// Reads a manifest.
fn manifest(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn at_day(day: u32) -> Timestamp {
    Timestamp::UNIX_EPOCH + DAY * day
}

fn workload(name: &str) -> &'static dyn Workload {
    let mut all = WORKLOADS.iter().copied().chain([&READ_BACK as &dyn Workload]);
    all.find(|workload| workload.name() == name).unwrap()
}

impl World {
    /// Returns a world whose tree has few files.
    fn with_small_tree() -> Self {
        let mut world = Self::new();
        world.settings.tree_files = Some(60);
        world
    }

    /// Returns a path in the sandbox.
    fn path(&self, name: &str) -> PathBuf {
        self.sandbox_path().join(name)
    }

    /// Calls `work` with a job. Its slice is always the first one.
    fn with_job(&self, spec: RunSpec<'_>, work: impl FnOnce(&Job<'_>) -> Result<(), RunError>) -> Finished {
        let (recorder, stop) = (Recorder::private().unwrap(), StopSwitch::default());
        let observer = Observer {
            manifest: self.path("manifest.json"),
            stop: &stop,
            stop_at: spec.stop_at,
            phases: RefCell::default(),
            seen_manifest: RefCell::default(),
        };
        let session = Session::new(&recorder, &stop, &observer);
        let sandbox = self.open_sandbox(&TimedFs::new(&recorder, 0, &stop)).unwrap();
        let result = work(&Job {
            scale: Scale::Quick,
            seed: 7 + u64::from(spec.day),
            now: at_day(spec.day),
            ..self.job(&session, &sandbox)
        });
        let facts = session.into_facts();
        let (phases, seen_manifest) = (observer.phases.take(), observer.seen_manifest.take());
        Finished { result, facts, phases, seen_manifest }
    }

    fn run_spec(&self, spec: RunSpec<'_>) -> Finished {
        self.with_job(spec, |job| {
            workload(spec.task).prepare(job)?;
            workload(spec.task).run(job)
        })
    }

    /// Prepares and runs a workload.
    fn run(&self, task: &str, day: u32) -> Finished {
        self.run_spec(RunSpec { task, day, stop_at: None })
    }

    /// Prepares a workload, and stops its run at the start of a phase.
    fn run_until(&self, stop_at: &str, task: &str, day: u32) -> Finished {
        let finished = self.run_spec(RunSpec { task, day, stop_at: Some(stop_at) });
        assert!(matches!(finished.result, Err(RunError::Stopped(StopReason::Cap))), "{:?}", finished.result);
        finished
    }
}

/// Returns all files below a folder.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = vec![];
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => files.extend(files_below(&entry.path())),
            false => files.push(entry.path()),
        }
    }
    files
}

fn ages(phase: &Phase) -> Vec<DataAge> {
    phase.verified.iter().map(|data| data.age).collect()
}

/// Returns the only slice of a workload in a manifest.
fn slice<'a>(manifest: &'a Value, task: &str) -> &'a Value {
    let sets = manifest["folders"][task]["slices_by_size"].as_object().unwrap();
    &sets.values().next().unwrap()[0]
}

#[test]
fn missing_band_is_made_again() {
    let world = World::with_small_tree();
    world.run("time-machine", 0).assert_ok();
    fs::remove_file(world.path("time-machine/8388608-6/bands/3")).unwrap();
    let run = world.run("time-machine", 0).assert_ok();
    assert_eq!(run.facts["recreated-bands"], "1 bands (it is missing)");
    assert!(!world.run("time-machine", 0).assert_ok().facts.contains_key("recreated-bands"));
}

#[test]
fn bands_that_are_made_again_are_new() {
    let world = World::with_small_tree();
    world.run("time-machine", 0).assert_ok();
    world.run("time-machine", 1).assert_ok();
    for band in files_below(&world.path("time-machine/8388608-6/bands")) {
        fs::remove_file(band).unwrap();
    }
    let run = world.run("time-machine", 15).assert_ok();
    assert_eq!(run.facts["recreated-bands"], "6 bands (it is missing)");
    assert_eq!(ages(run.phase("restore")), [DataAge::Hours]);
}

#[test]
fn files_of_an_interrupted_speed_test_are_not_measured() {
    for band_bytes in [BAND_BYTES, BAND_BYTES / 2] {
        let mut world = World::with_small_tree();
        world.run_until("speed-small", "time-machine", 0);
        let speed = world.path("time-machine/speed");
        assert!(speed.join("large").exists(), "the stopped run leaves its files");
        fs::write(speed.join("small-000"), "half").unwrap();
        // The speed test is the same for an image of another size.
        world.settings.band_bytes = band_bytes;
        let run = world.run("time-machine", 0).assert_ok();
        for phase in ["speed-large", "speed-small"] {
            let errors: u64 = run.phase(phase).operations.iter().map(|operation| operation.errors).sum();
            assert_eq!(errors, 0, "{phase} with bands of {band_bytes} bytes");
        }
        assert_eq!(files_below(&speed).len(), 0);
    }
}

#[test]
fn foreign_files_in_a_backup_stay() {
    let world = World::with_small_tree();
    world.run("incremental-backup", 0).assert_ok();
    let foreign = ["folder 0000/letter.txt", ".DS_Store"];
    let foreign = foreign.map(|name| world.path("incremental-backup/600").join(name));
    foreign.iter().for_each(|path| fs::write(path, "mine").unwrap());
    let run = world.run("incremental-backup", 0).assert_ok();
    assert_eq!(run.facts["unexpected-files"], "2");
    // The next preparation makes the copy equal to its source, untimed.
    world.run_until("scan", "incremental-backup", 0);
    world.run("incremental-backup", 0).assert_ok();
    assert!(foreign.iter().all(|path| fs::read(path).unwrap() == b"mine"));
}

#[test]
fn files_that_are_copied_again_are_new() {
    let world = World::with_small_tree();
    world.run("incremental-backup", 0).assert_ok();
    for file in files_below(&world.path("incremental-backup/600")) {
        File::open(file).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    }
    let run = world.run("incremental-backup", 40).assert_ok();
    assert_eq!(ages(run.phase("verify")), [DataAge::Hours]);
    let check = world.run("read-back", 42).assert_ok();
    assert_eq!(ages(check.phase("read-back")), [DataAge::Days]);
}

#[test]
fn use_of_a_slice_is_recorded_before_the_first_phase() {
    for (task, first_phase) in [("folder-index", "open-folder"), ("photo-batch", "open")] {
        let world = World::with_small_tree();
        world.run_until(first_phase, task, 0);
        let manifest = world.run_until(first_phase, task, 3).seen_manifest;
        let slice = slice(&manifest, task);
        assert_eq!(slice["used_us"], at_day(3).as_us(), "{task}: {slice}");
        assert_eq!(slice["evicted"], false, "{task}: {slice}");
    }
}

#[test]
fn reading_everything_back_ends_the_rest_of_all_slices() {
    let world = World::with_small_tree();
    let cold_methods = |day| {
        let run = world.run("folder-index", day).assert_ok();
        let cold = run.phases.into_iter().filter(|phase| phase.cache == CacheState::Cold);
        cold.map(|phase| phase.cold_by.unwrap()).collect::<Vec<_>>()
    };
    cold_methods(0);
    assert_eq!(cold_methods(2), [ColdMethod::RotatedSlice; 3]);
    world.run_until("open", "photo-batch", 2);
    world.run("read-back", 4).assert_ok();
    assert_eq!(cold_methods(4), [ColdMethod::Unverified; 3]);
    let manifest = manifest(&world.path("manifest.json"));
    let album = slice(&manifest, "photo-batch");
    assert!(album["used_us"].as_i64().unwrap() >= at_day(4).as_us(), "{album}");
    assert_eq!(album["evicted"], false, "{album}");
}

#[test]
fn data_is_known_to_be_good_only_if_it_was_written_before() {
    let world = World::with_small_tree();
    world.run("folder-index", 0).assert_ok();
    world.run("read-back", 2).assert_ok();
    let spec = RunSpec { task: "read-back", day: 4, stop_at: None };
    let mut found = vec![];
    let asked = world.with_job(spec, |job| {
        for written in [Some(at_day(1)), Some(at_day(3)), None] {
            found.push(last_good(job, written)?);
        }
        Ok(())
    });
    asked.assert_ok();
    assert_eq!(found, [Some(at_day(2)), None, None]);
}

#[test]
fn every_folder_is_changed_for_a_moment_where_the_client_keeps_listings() {
    for keeps_listings in [true, false] {
        let mut world = World::with_small_tree();
        world.keeps_listings = keeps_listings;
        let tasks = ["folder-index", "incremental-backup"];
        tasks.iter().for_each(|task| drop(world.run(task, 0).assert_ok()));
        let trees = ["folder-index/15-0", "incremental-backup/600"].map(|name| world.path(name));
        let folders: Vec<PathBuf> = trees.iter().flat_map(|tree| folders_below(tree)).collect();
        for folder in &folders {
            File::open(folder).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        }
        tasks.iter().for_each(|task| drop(world.run(task, 1).assert_ok()));
        let is_changed = |folder: &&PathBuf| modified(folder) > SystemTime::UNIX_EPOCH;
        let changed = folders.iter().filter(is_changed).count();
        // The second backup changes a few folders in any case.
        assert_eq!(changed == folders.len(), keeps_listings, "{changed} of {}", folders.len());
        let left: Vec<PathBuf> = trees.iter().flat_map(|tree| folders_below(tree)).collect();
        assert_eq!(left, folders);
    }
}

fn modified(path: &Path) -> SystemTime {
    path.metadata().unwrap().modified().unwrap()
}

/// Returns a folder and all folders below it.
fn folders_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut inside: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    inside.sort();
    let below = inside.iter().flat_map(|path| folders_below(path));
    std::iter::once(folder.to_owned()).chain(below).collect()
}
