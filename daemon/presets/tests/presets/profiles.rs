//! Tests of the engine with small profiles: each phase finds what the one before left, and an edited profile finds no files of
//! its earlier version.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};

use longhaul_measure::error::RunError;
use longhaul_measure::recorder::Recorder;
use longhaul_measure::timed_fs::{PhaseSpec, Reporter, Session, StopSwitch, TimedFs};
use longhaul_measure::workloads::Workload;
use longhaul_model::{Phase, Progress};
use longhaul_presets::profile::Profile;
use longhaul_presets::{ContentMode, Preset};

use crate::world::World;

/// Lengths of the files of a set in the order of their paths, at the end of each phase.
struct Lengths {
    set: PathBuf,
    by_phase: RefCell<Vec<Vec<u64>>>,
}

impl Reporter for Lengths {
    fn progress(&self, _: &Progress) {}
    fn phase_began(&self, _: &PhaseSpec<'_>) {}
    fn phase_ended(&self, _: Phase) {
        let mut folders: Vec<PathBuf> = entries(&self.set);
        folders.sort();
        let files = folders.iter().flat_map(|folder| entries(folder));
        self.by_phase.borrow_mut().push(files.map(|file| fs::metadata(file).unwrap().len()).collect());
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

impl World {
    /// Returns the folder of the set `notes`.
    fn set(&self) -> PathBuf {
        self.sandbox_path().join("presets/mine-standard/notes")
    }

    /// Runs a profile with a set `notes`. Returns the lengths of its files at the end of each phase.
    fn run(&self, profile: &str) -> Result<Vec<Vec<u64>>, RunError> {
        let profile = Profile::parse(&format!("summary = \"notes\"\n{profile}")).unwrap();
        let preset = Preset::custom("mine", profile, ContentMode::Incompressible).unwrap();
        let (recorder, stop) = (Recorder::private().unwrap(), StopSwitch::default());
        let lengths = Lengths { set: self.set(), by_phase: RefCell::default() };
        let session = Session::new(&recorder, &stop, &lengths);
        let sandbox = self.open_sandbox(&TimedFs::new(&recorder, 0, &stop))?;
        let job = self.job(&session, &sandbox);
        preset.prepare(&job)?;
        preset.run(&job)?;
        Ok(lengths.by_phase.take())
    }
}

/// Returns a profile: the keys of the set, and the keys of the work of each phase.
fn profile(set: &str, phases: &[&str]) -> String {
    let phase = |(number, work): (usize, &&str)| {
        format!("[[phase]]\nname = \"phase-{number}\"\n[[phase.work]]\nfiles = \"notes\"\n{work}\n")
    };
    format!("[files.notes]\n{set}\n{}", phases.iter().enumerate().map(phase).collect::<String>())
}

const READ: &str = r#"steps = [{ do = "read", amount = "file" }, { do = "close" }]"#;
const WRITE: &str = r#"steps = [{ do = "write", amount = "file" }, { do = "close" }]"#;
const DELETE: &str = r#"steps = [{ do = "delete" }]"#;
const APPEND_TWICE: &str = r#"steps = [{ do = "append", block = 512 }, { do = "append", block = 512 }]"#;

#[test]
fn set_is_made_anew_when_its_profile_was_edited() {
    let world = World::new();
    let first = profile("count = 4\nsize = 4096\nfolders = 4", &[READ]);
    assert_eq!(world.run(&first).unwrap(), [[4096; 4]]);
    let edited = profile("count = 4\nsize = 8192\nfolders = 2", &[READ]);
    assert_eq!(world.run(&edited).unwrap(), [[8192; 4]]);
    assert_eq!(entries(&world.set()).len(), 2, "the folders that the set has no more are removed");
}

#[test]
fn unchanged_set_is_kept_and_verified_after_phases_were_removed() {
    let world = World::new();
    let set = "count = 1\nsize = 4096";
    world.run(&profile(set, &[WRITE; 5])).unwrap();
    let file = entries(&world.set().join("d00000")).remove(0);
    let written = fs::read(&file).unwrap();
    world.run(&profile(set, &[READ])).unwrap();
    assert_eq!(fs::read(&file).unwrap(), written);
}

#[test]
fn set_that_an_edited_profile_deleted_is_made_again() {
    let world = World::new();
    let set = "count = 2\nsize = 512";
    assert_eq!(world.run(&profile(set, &[READ])).unwrap(), [[512; 2]]);
    assert_eq!(world.run(&profile(set, &[DELETE])).unwrap(), [[0; 0]]);
    assert_eq!(world.run(&profile(set, &[READ])).unwrap(), [[512; 2]]);
}

#[test]
fn one_thread_that_shares_all_files_may_create_and_delete() {
    let [create, delete] = [r#"steps = [{ do = "create" }, { do = "close" }]"#, DELETE]
        .map(|steps| format!("share = \"all\"\n{steps}"));
    let phases = [create.as_str(), &delete, &create];
    let lengths = World::new().run(&profile("count = 2\nsize = 512\npresent = 0", &phases)).unwrap();
    assert_eq!(lengths, [vec![0, 0], vec![], vec![0, 0]]);
}

#[test]
fn appends_of_the_next_phase_begin_at_the_end() {
    let set = "count = 1\nsize = 1024";
    let lengths = World::new().run(&profile(set, &[APPEND_TWICE, APPEND_TWICE, READ])).unwrap();
    assert_eq!(lengths, [[2048], [3072], [3072]]);
}

#[test]
fn append_to_a_new_file_begins_at_its_beginning() {
    let create =
        r#"steps = [{ do = "create" }, { do = "append", block = 512 }, { do = "append", block = 512 }]"#;
    let set = "count = 1\nsize = 4096\npresent = 0";
    let lengths = World::new().run(&profile(set, &[create, APPEND_TWICE, READ])).unwrap();
    assert_eq!(lengths, [[1024], [2048], [2048]]);
}
