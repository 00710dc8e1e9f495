//! A tool that links equal files or makes snapshots by hard links ties the sandbox's files to somebody's backup. Whatever
//! longhaul does afterwards, the backup's names keep their bytes, modes, times and extended attributes.

#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use longhaul_measure::arena::{Arena, Claim, Mode};
use longhaul_measure::context::{Context, PhaseSpec, Reporter, Session, StopSwitch};
use longhaul_measure::error::RunError;
use longhaul_measure::model::{Outcome, Phase, Progress, Scale, TargetName};
use longhaul_measure::platform::IoPolicy;
use longhaul_measure::profile::Profile;
use longhaul_measure::recorder::Recorder;
use longhaul_measure::workloads::classic::Manner;
use longhaul_measure::workloads::{Job, OwnProfile, Settings, WORKLOADS, Workload, owns};

/// What must not change of a file.
#[derive(Debug, PartialEq)]
struct Victim {
    path: PathBuf,
    content: Vec<u8>,
    mode: u32,
    modified: SystemTime,
    note: Option<Vec<u8>>,
}

impl Victim {
    fn look(path: &Path) -> Self {
        let facts = fs::metadata(path).unwrap();
        let mut note = [0; 64];
        let attribute = c"user.longhaul.note";
        let length = rustix::fs::getxattr(path, attribute, &mut note).ok();
        Self {
            path: path.to_owned(),
            content: fs::read(path).unwrap(),
            mode: facts.permissions().mode(),
            modified: facts.modified().unwrap(),
            note: length.map(|length| note[..length].to_vec()),
        }
    }
}

/// Every file below a folder.
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

/// Links everything of a sandbox into a backup at one moment: before the preparation (0), or at the begin of a phase.
struct Backup<'a> {
    sandbox: &'a Path,
    at: &'a Path,
    moment: usize,
    passed: Cell<usize>,
    victims: Cell<Vec<Victim>>,
}

impl Backup<'_> {
    fn moment_comes(&self) {
        let moment = self.passed.replace(self.passed.get() + 1);
        if moment != self.moment {
            return;
        }
        let take = |(number, file): (usize, PathBuf)| {
            let name = self.at.join(format!("{number:06}"));
            fs::hard_link(file, &name).unwrap();
            Victim::look(&name)
        };
        self.victims.set(files_below(self.sandbox).into_iter().enumerate().map(take).collect());
    }
}

impl Reporter for Backup<'_> {
    fn progress(&self, _: &Progress) {}
    fn phase_began(&self, _: &PhaseSpec<'_>) {
        self.moment_comes();
    }
    fn phase_ended(&self, _: Phase) {}
}

/// A target, and what runs on it need.
struct World {
    target: tempfile::TempDir,
    local: tempfile::TempDir,
    backup: tempfile::TempDir,
    name: TargetName,
    settings: Settings,
}

/// What came of a run beside which a backup was made.
struct Ran {
    moments: usize,
    victims: Vec<Victim>,
    result: Result<(), RunError>,
    facts: Vec<String>,
}

impl World {
    fn new() -> Self {
        let folder = || tempfile::tempdir().unwrap();
        Self {
            target: folder(),
            local: folder(),
            backup: folder(),
            name: "nas".parse().unwrap(),
            settings: Settings { free_floor: 0.0, tree_files: Some(60), ..Settings::default() },
        }
    }

    fn claim(&self) -> Claim<'_> {
        Claim { target_path: self.target.path(), target: &self.name, machine: "m" }
    }

    /// Prepares and runs a workload; everything in the sandbox is linked elsewhere at this moment of it.
    fn run(&self, workload: &dyn Workload, moment: usize, rotation: u64) -> Ran {
        let (recorder, stop) = (Recorder::private().unwrap(), StopSwitch::default());
        let sandbox = self.target.path().join(self.claim().folder_name());
        let at = self.backup.path().join(format!("{}-{moment}-{rotation}", workload.name()));
        fs::create_dir(&at).unwrap();
        let backup =
            Backup { sandbox: &sandbox, at: &at, moment, passed: Cell::default(), victims: Cell::default() };
        let session = Session::new(&recorder, &stop, &backup);
        let work = || {
            let arena = Arena::open(&self.claim(), &Context::new(&recorder, 0, &stop))?;
            let job = Job {
                session: &session,
                arena: &arena,
                local: self.local.path(),
                scale: Scale::Quick,
                settings: &self.settings,
                rotation,
                seed: 7 + rotation,
                now_us: 0,
            };
            backup.moment_comes();
            workload.prepare(&job)?;
            workload.run(&job)
        };
        let result = work();
        let facts = session.into_facts().into_values().collect();
        Ran { moments: backup.passed.get(), victims: backup.victims.take(), result, facts }
    }

    /// Removes everything that longhaul made.
    fn clean(&self) {
        let (recorder, stop) = (Recorder::private().unwrap(), StopSwitch::default());
        let context = Context::new(&recorder, 0, &stop);
        let arena = Arena::open(&self.claim(), &context).unwrap();
        let report = arena.clean(Mode::Remove, &context, &owns).unwrap();
        assert!(report.arena_removed, "{report:?}");
    }
}

fn require_unchanged(before: &[Victim]) {
    for victim in before {
        assert!(Victim::look(&victim.path) == *victim, "{} changed", victim.path.display());
        assert!(fs::metadata(&victim.path).unwrap().nlink() >= 1);
    }
}

/// Lets the backup be made at each moment of a workload in turn. After each, the next run, without a new backup, goes well.
fn back_up_at_every_moment(world: &World, workload: &dyn Workload) {
    let mut rotation = 0;
    let mut next = |moment| {
        rotation += 1;
        world.run(workload, moment, rotation)
    };
    let moments = next(usize::MAX).moments;
    assert!(moments > 1, "{} has phases", workload.name());
    // What a person would wait for is waited for, too: of a paced task the first phase has to do.
    let last = if workload.is_paced() { 2 } else { moments };
    for moment in 0..last {
        let ran = next(moment);
        assert!(!ran.victims.is_empty(), "{} at {moment}: there was something to link", workload.name());
        require_unchanged(&ran.victims);
        if let Err(error) = &ran.result {
            assert!(matches!(error, RunError::NotOurs { .. }), "{} at {moment}: {error}", workload.name());
            assert_eq!(error.outcome(), Outcome::Unavailable);
        }
        next(usize::MAX).result.unwrap_or_else(|error| panic!("{} after {moment}: {error}", workload.name()));
        require_unchanged(&ran.victims);
    }
}

#[test]
fn a_backup_by_hard_links_keeps_what_it_had() {
    let world = World::new();
    for workload in WORKLOADS.iter().filter(|workload| workload.io_policy() == IoPolicy::Default) {
        back_up_at_every_moment(&world, *workload);
    }
    world.clean();
}

/// Three ways of writing into files that a preparation made.
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
fn a_preset_never_writes_into_a_linked_file() {
    let world = World::new();
    let profile = Profile::parse(IN_PLACE).unwrap_or_else(|error| panic!("{error}"));
    let own = OwnProfile::new("in-place", profile, Manner::Honest).unwrap();
    back_up_at_every_moment(&world, &own.classic("in-place").unwrap());
    world.clean();
}

#[test]
fn bands_that_were_linked_between_rounds_are_made_anew() {
    let world = World::new();
    let burst = WORKLOADS.iter().find(|workload| workload.name() == "time-machine").unwrap();
    world.run(*burst, usize::MAX, 1).result.unwrap();
    let ran = world.run(*burst, 0, 2);
    ran.result.unwrap();
    require_unchanged(&ran.victims);
    assert!(ran.facts.iter().any(|fact| fact == "6 bands (it has 2 hard links)"), "{:?}", ran.facts);
}
