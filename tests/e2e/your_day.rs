//! Tests of the replay of recordings: the tree is made, changed by the replay and made again; nothing outside the sandbox is
//! touched.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::num::NonZeroU8;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::{Place, assert_all_ok, assert_failure, machine, sandbox, tree};
use longhaul_model::Protocol;
use longhaul_recording::{
    Access, Account, Action, ActionResult, Copying, CreateMode, FileKind, HandleNumber, InitialState, Node,
    NodeNumber, OpenMode, PowerOfTwo, RecordedOperation, RecordedTimes, Recording, Source,
};
use rustix::process::Signal;
use serde_json::Value;

/// Size of a file of a recording, in bytes.
const FILE_BYTES: u64 = 20_000;

/// Builder of a recording.
struct Day {
    nodes: Vec<Node>,
    operations: Vec<RecordedOperation>,
    handles: u32,
    pause: PowerOfTwo,
    /// True if names are given in the folders that are open then.
    in_open_folders: bool,
}

impl Day {
    fn new() -> Self {
        let root = Node { parent: NodeNumber(0), kind: FileKind::Other, initial: InitialState::Folder };
        Self {
            nodes: vec![root],
            operations: vec![],
            handles: 0,
            pause: PowerOfTwo::of(200),
            in_open_folders: false,
        }
    }

    fn node(&mut self, parent: NodeNumber, initial: InitialState) -> NodeNumber {
        self.nodes.push(Node { parent, kind: FileKind::Document, initial });
        NodeNumber(self.nodes.len() as u32 - 1)
    }

    fn file(&mut self, parent: NodeNumber) -> NodeNumber {
        self.node(parent, InitialState::File(PowerOfTwo::of(FILE_BYTES)))
    }

    fn absent(&mut self, parent: NodeNumber) -> NodeNumber {
        self.node(parent, InitialState::Absent)
    }

    fn push(&mut self, thread: u32, action: Action, result: ActionResult) {
        let (pause, depth_in_open_folder) = (self.pause, NonZeroU8::new(self.in_open_folders.into()));
        self.operations.push(RecordedOperation { thread, pause, action, result, depth_in_open_folder });
    }

    fn done(&mut self, thread: u32, action: Action) {
        self.push(thread, action, ActionResult::Done);
    }

    fn open(&mut self, thread: u32, node: NodeNumber, mode: OpenMode) -> HandleNumber {
        self.handles += 1;
        let handle = HandleNumber(self.handles - 1);
        self.done(thread, Action::Open { node, mode, handle: Some(handle) });
        handle
    }

    fn read_file(&mut self, thread: u32, node: NodeNumber) {
        self.done(thread, Action::Attributes { node });
        let handle = self.open(thread, node, mode(Access::Read, CreateMode::Never));
        self.done(thread, Action::HandleAttributes { handle });
        for (offset, read) in [(0, 16_384), (16_384, FILE_BYTES - 16_384)] {
            self.done(thread, Action::Read { handle, offset, length: 16_384, read });
        }
        self.done(thread, Action::Close { handle });
    }

    /// Saves a file as editors do: written under a temporary name, synced, then renamed over the old one.
    fn save(&mut self, thread: u32, node: NodeNumber) {
        let temporary = self.absent(self.nodes[node.0 as usize].parent);
        let handle = self.open(thread, temporary, mode(Access::Write, CreateMode::Exclusive));
        self.done(thread, Action::Write { handle, offset: 0, length: 9_000 });
        self.done(thread, Action::Write { handle, offset: 9_000, length: 4_000 });
        self.done(thread, Action::Sync { handle });
        self.done(thread, Action::Close { handle });
        self.done(thread, Action::Rename { from: temporary, to: node });
    }

    fn list(&mut self, thread: u32, folder: NodeNumber) {
        let handle =
            self.open(thread, folder, OpenMode { folder: true, ..mode(Access::Read, CreateMode::Never) });
        (0..2).for_each(|_| self.done(thread, Action::List { handle }));
        self.done(thread, Action::Close { handle });
    }

    fn recording(self) -> Recording {
        Recording {
            source: Source::Strace,
            recorded_on: Some(Protocol::Nfs(Some("4.2".to_owned()))),
            nodes: self.nodes,
            operations: self.operations.into_iter().collect(),
            mean_pauses: (0..=64).map(|class| if class == 8 { 200_000 } else { 0 }).collect(),
            mean_sizes: (0..=64).map(|class| 1_u64 << u32::min(class, 40)).collect(),
            times: Some(RecordedTimes {
                total: Duration::from_millis(400),
                waiting: Duration::from_millis(100),
                by_operation: BTreeMap::new(),
            }),
            account: Account::default(),
        }
    }
}

fn mode(access: Access, create: CreateMode) -> OpenMode {
    OpenMode { access, create, truncate: false, folder: false }
}

/// A day in which every kind of operation is made: reading, saving, renaming, links, folders, changes in place.
fn day_with_everything(files: u32) -> Recording {
    everything(Day::new(), files)
}

/// Locks a file through two handles at the same time, neither of which can be written, as readers of one database do.
fn lock_as_readers(day: &mut Day, file: NodeNumber) {
    let readers = [0, 1].map(|thread| day.open(thread, file, mode(Access::Read, CreateMode::Never)));
    (0..2).for_each(|_| readers.into_iter().for_each(|handle| day.done(0, Action::Lock { handle })));
    readers.into_iter().for_each(|handle| day.done(0, Action::Close { handle }));
}

/// Copies the beginning of a file into a new one in a folder, by the system.
fn copy_into(day: &mut Day, file: NodeNumber, folder: NodeNumber) {
    let from = day.open(0, file, mode(Access::Read, CreateMode::Never));
    let copied = day.absent(folder);
    let to = day.open(0, copied, mode(Access::Write, CreateMode::IfAbsent));
    day.done(0, Action::Copy(Copying { from, to, read_at: 0, write_at: 0, length: 3_000 }));
    [to, from].into_iter().for_each(|handle| day.done(0, Action::Close { handle }));
}

fn everything(mut day: Day, files: u32) -> Recording {
    let folders = [NodeNumber(0); 3].map(|root| day.node(root, InitialState::Folder));
    let files: Vec<NodeNumber> = (0..files).map(|number| day.file(folders[number as usize % 3])).collect();
    folders.iter().for_each(|folder| day.list(0, *folder));
    let in_folder = OpenMode { folder: true, ..mode(Access::Read, CreateMode::Never) };
    let kept_open = if day.in_open_folders { [&[NodeNumber(0)], &folders[..]].concat() } else { vec![] };
    let kept_open: Vec<_> = kept_open.into_iter().map(|folder| day.open(0, folder, in_folder)).collect();
    for (number, file) in files.iter().enumerate() {
        day.read_file(number as u32 % 3, *file);
        if number % 4 == 0 {
            day.save(number as u32 % 2, *file);
        }
    }
    let missing = day.absent(folders[0]);
    day.push(1, Action::Attributes { node: missing }, ActionResult::NotFound);
    day.push(1, Action::CreateFolder { node: folders[1] }, ActionResult::Exists);
    day.push(1, Action::SetAttributes { node: files[1] }, ActionResult::Failed);
    let new = day.absent(NodeNumber(0));
    let renamed = day.absent(folders[2]);
    let inner = day.absent(new);
    day.done(2, Action::CreateFolder { node: new });
    let handle = day.open(2, inner, mode(Access::ReadWrite, CreateMode::IfAbsent));
    day.done(2, Action::Write { handle, offset: 100_000, length: 5_000 });
    day.done(2, Action::Lock { handle });
    day.done(2, Action::Read { handle, offset: 100_000, length: 5_000, read: 5_000 });
    day.done(2, Action::Lock { handle });
    day.done(2, Action::SetHandleAttributes { handle });
    day.done(2, Action::SetLength { node: inner, length: 50_000 });
    day.done(2, Action::Close { handle });
    day.done(2, Action::Rename { from: new, to: renamed });
    let in_place = day.open(0, files[2], mode(Access::ReadWrite, CreateMode::Never));
    day.done(0, Action::Write { handle: in_place, offset: 1_000, length: 4_000 });
    day.done(0, Action::Close { handle: in_place });
    let (link, second) = (day.absent(folders[1]), day.absent(folders[1]));
    day.done(0, Action::SymbolicLink { node: link });
    day.done(0, Action::ReadLink { node: link });
    day.done(0, Action::HardLink { from: files[4], to: second });
    day.done(0, Action::Remove { node: second });
    day.done(0, Action::SetAttributes { node: files[5] });
    day.done(0, Action::SetLength { node: files[6], length: 10 });
    day.done(0, Action::WriteExtendedAttribute { node: files[7], length: PowerOfTwo::of(64) });
    day.done(0, Action::ReadExtendedAttribute { node: files[7] });
    day.done(0, Action::FreeSpace { node: NodeNumber(0) });
    lock_as_readers(&mut day, files[5]);
    let truncated = OpenMode { truncate: true, ..mode(Access::Write, CreateMode::IfAbsent) };
    let handle = day.open(1, files[3], truncated);
    day.done(1, Action::Write { handle, offset: 0, length: 700 });
    day.done(1, Action::Close { handle });
    copy_into(&mut day, files[0], folders[0]);
    day.done(1, Action::Remove { node: files[8] });
    let (folder, child) = (day.absent(NodeNumber(0)), day.absent(NodeNumber(0)));
    day.done(1, Action::CreateFolder { node: folder });
    day.done(1, Action::RemoveFolder { node: folder });
    day.done(1, Action::CreateFolder { node: child });
    kept_open.into_iter().for_each(|handle| day.done(0, Action::Close { handle }));
    day.recording()
}

/// Environment with a recording that rounds replay.
fn place_with(recording: &Recording) -> Place {
    let place = Place::new();
    place.configure("[recording]\nreplay = \"day-1\"\n");
    store(&place, recording);
    place
}

fn store(place: &Place, recording: &Recording) {
    let folder = place.data().join("recordings");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("day-1.recording"), recording.to_bytes()).unwrap();
}

fn replay(place: &Place, targets: &[(&str, &Path)]) -> Vec<Value> {
    place.run(&["your-day"], targets).expect(0).runs()
}

fn contents(target: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = tree::contents_of_files(&sandbox(target).join("your-day"));
    files.into_iter().collect()
}

fn figures(run: &Value) -> BTreeMap<String, f64> {
    let figures = run["phases"][0]["figures"].as_array().unwrap();
    let figure = |figure: &Value| Some((figure["name"].as_str()?.to_owned(), figure["value"].as_f64()?));
    figures.iter().filter_map(figure).collect()
}

#[test]
fn replayed_day_is_measured_and_its_tree_restored() {
    let place = place_with(&day_with_everything(40));
    let (a, b) = (place.folder("a"), place.folder("b"));
    let targets = [("a", a.as_path()), ("b", b.as_path())];
    let first = replay(&place, &targets);
    assert_all_ok(&first);
    let made = contents(&a);
    assert_eq!(made.len(), 40);
    assert!(made.values().all(|bytes| bytes.len() as u64 == FILE_BYTES));
    assert_eq!(made, contents(&b), "the same tree on each target");
    for run in &first {
        let figures = figures(run);
        assert!(figures["waiting"] > 0.0 && figures["waiting"] < figures["total"], "{figures:?}");
        assert_eq!(run["facts"]["recorded-total"], "0.4");
        assert_eq!(run["facts"]["replay-differs"], "0 left out, 1 replaced", "{run}");
        assert!(run["facts"].get("operations-not-offered").is_none(), "{run}");
    }
    let screen = place.longhaul("runs 1").expect(0);
    assert!(screen.out.contains("Recorded on NFS 4.2: 400 ms."), "{screen}");
    // Four runs later the same slice is used again.
    (0..4).for_each(|_| assert_all_ok(&replay(&place, &targets)));
    let again = contents(&a);
    assert!(
        made.iter().all(|(path, bytes)| again.get(path) == Some(bytes)),
        "the slice is as at its beginning"
    );
    assert_eq!(again.len(), 4 * 40);
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "traces the system calls")]
fn names_are_given_in_open_folders_as_they_were_recorded() {
    let place = place_with(&everything(Day { in_open_folders: true, ..Day::new() }, 40));
    let a = place.folder("a");
    let runs = replay(&place, &[("a", &a)]);
    assert_all_ok(&runs);
    assert_eq!(runs[0]["facts"]["replay-differs"], "0 left out, 1 replaced", "{}", runs[0]);
    assert!(runs[0]["facts"].get("operations-not-offered").is_none(), "{}", runs[0]);
    (0..4).for_each(|_| assert_all_ok(&replay(&place, &[("a", &a)])));
    let made = contents(&a);
    assert_eq!(made.len(), 4 * 40);
    assert!(made.values().all(|bytes| bytes.len() as u64 == FILE_BYTES), "the slice is as at its beginning");
}

#[test]
fn day_without_files_is_replayed() {
    let mut day = Day::new();
    let folder = day.node(NodeNumber(0), InitialState::Folder);
    day.done(0, Action::Attributes { node: folder });
    let place = place_with(&day.recording());
    let a = place.folder("a");
    (0..5).for_each(|_| assert_all_ok(&replay(&place, &[("a", &a)])));
}

#[test]
fn damaged_file_is_found_when_it_is_read() {
    let place = place_with(&day_with_everything(40));
    let a = place.folder("a");
    assert_all_ok(&replay(&place, &[("a", &a)]));
    (0..3).for_each(|_| assert_all_ok(&replay(&place, &[("a", &a)])));
    let files = contents(&a);
    let damaged: Vec<&PathBuf> = files.keys().filter(|path| path.to_string_lossy().contains("-1/")).collect();
    for path in damaged {
        let path = sandbox(&a).join("your-day").join(path);
        let mut bytes = fs::read(&path).unwrap();
        bytes[5_000] ^= 1;
        fs::write(&path, bytes).unwrap();
    }
    let runs = place.run(&["your-day"], &[("a", &a)]).expect(3).runs();
    assert_failure(&runs[0], "error", &["byte 5000 differs"]);
    // The damaged slice is made again when its turn comes.
    (0..4).for_each(|_| assert_all_ok(&replay(&place, &[("a", &a)])));
}

#[test]
fn missing_folder_is_a_failure() {
    let mut day = Day::new();
    let folder = day.node(NodeNumber(0), InitialState::Folder);
    day.list(0, folder);
    let place = place_with(&day.recording());
    let a = place.folder("a");
    (0..4).for_each(|_| assert_all_ok(&replay(&place, &[("a", &a)])));
    let slices = fs::read_dir(sandbox(&a).join("your-day")).unwrap().map(|entry| entry.unwrap().path());
    let folders: Vec<_> =
        slices.flat_map(|slice| fs::read_dir(slice).unwrap()).map(|entry| entry.unwrap().path()).collect();
    assert_eq!(folders.len(), 4);
    folders.iter().for_each(|folder| fs::remove_dir(folder).unwrap());
    let runs = place.run(&["your-day"], &[("a", &a)]).expect(3).runs();
    assert_failure(&runs[0], "error", &["missing although the replay needs it"]);
}

#[test]
fn names_that_vanished_are_made_again_or_told() {
    let mut day = Day::new();
    let (link, file) = (day.node(NodeNumber(0), InitialState::Link), day.file(NodeNumber(0)));
    day.done(0, Action::ReadLink { node: link });
    let handle = day.open(0, file, mode(Access::ReadWrite, CreateMode::Never));
    day.done(0, Action::Write { handle, offset: 0, length: 100 });
    let place = place_with(&day.recording());
    let a = place.folder("a");
    (0..4).for_each(|_| assert_all_ok(&replay(&place, &[("a", &a)])));
    let slices = fs::read_dir(sandbox(&a).join("your-day")).unwrap().map(|entry| entry.unwrap().path());
    let names: Vec<_> =
        slices.flat_map(|slice| tree::files(&slice).into_iter().map(move |name| slice.join(name))).collect();
    assert_eq!(names.len(), 8);
    names.iter().for_each(|name| fs::remove_file(name).unwrap());
    // Without its link a slice is as on a share that refuses links.
    let runs = replay(&place, &[("a", &a)]);
    assert_all_ok(&runs);
    assert_eq!(runs[0]["facts"]["operations-not-offered"], "1", "{}", runs[0]);
    assert_eq!(runs[0]["facts"]["recreated-files"], "1", "{}", runs[0]);
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "reads /proc")]
fn killed_replay_is_repaired_by_the_next_run() {
    let mut day = day_with_everything(200);
    // About a second in which a slice is changed: at a quicker replay the change could come and go between two looks.
    day.mean_pauses.iter_mut().for_each(|pause| *pause *= 10);
    let place = place_with(&day);
    let a = place.folder("a");
    let own = place.folder("mine");
    fs::write(own.join("letter.txt"), "mine").unwrap();
    fs::write(a.join("letter.txt"), "mine").unwrap();
    (0..4).for_each(|_| assert_all_ok(&replay(&place, &[("a", &a)])));
    let made = contents(&a);
    for kill in 0..4 {
        let running = place.run(&["your-day"], &[("a", &a)]).start();
        machine::wait_until("the replay to change a slice", || changed_slices(&a) > kill);
        std::thread::sleep(Duration::from_millis(60 * kill as u64));
        machine::workers_of(place.root()).into_iter().for_each(|pid| machine::signal(pid, Signal::KILL));
        drop(running);
        machine::wait_for_no_worker(place.root());
        assert_eq!(fs::read_to_string(a.join("letter.txt")).unwrap(), "mine");
        assert_eq!(tree::files(&own), [PathBuf::from("letter.txt")]);
    }
    assert_ne!(contents(&a), made, "no kill came during a replay");
    // A slice is used by each of four runs; each repairs its own.
    (0..4).for_each(|_| assert_all_ok(&replay(&place, &[("a", &a)])));
    assert_eq!(contents(&a), made);
    assert_eq!(changed_slices(&a), 0);
}

/// Returns the number of slices that are changed and not restored, as the manifest says. It is replaced while it is read.
fn changed_slices(target: &Path) -> usize {
    let manifest = fs::read(sandbox(target).join("manifest.json")).unwrap_or_default();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap_or_default();
    manifest["folders"]["your-day"]["changed"].as_array().map_or(0, Vec::len)
}

#[test]
fn another_recording_is_never_pooled_with_the_last_one() {
    let place = place_with(&day_with_everything(12));
    let a = place.folder("a");
    assert_all_ok(&replay(&place, &[("a", &a)]));
    store(&place, &day_with_everything(15));
    assert_all_ok(&replay(&place, &[("a", &a)]));
    let reader = longhaul_store::Reader::open(&place.database()).unwrap();
    let history = reader.history().unwrap();
    assert_eq!(history.runs.len(), 1, "only the run of the last recording");
    let recorded = history.recorded_day.unwrap();
    assert_eq!(recorded.recorded_on.as_deref(), Some("NFS 4.2"));
    assert_eq!(recorded.total, Some(Duration::from_millis(400)));
    let slices: BTreeSet<_> =
        contents(&a).into_keys().map(|path| path.iter().next().unwrap().to_owned()).collect();
    assert_eq!(slices.len(), 1, "the slices of the first recording are removed");
    assert_eq!(contents(&a).len(), 15);
}

#[test]
fn missing_recording_is_named_and_nothing_is_measured() {
    let place = Place::new();
    let a = place.folder("a");
    let runs = place.run(&["your-day"], &[("a", &a)]).expect(3).runs();
    assert_failure(&runs[0], "unavailable", &["no recording was chosen", "longhaul record use"]);
    place.configure("[recording]\nreplay = \"day-1\"\n");
    let runs = place.run(&["your-day"], &[("a", &a)]).expect(3).runs();
    assert_failure(&runs[0], "void", &["read", "day-1.recording"]);
}

#[test]
fn cleaning_removes_the_replayed_trees() {
    let place = place_with(&day_with_everything(12));
    let a = place.folder("a");
    assert_all_ok(&replay(&place, &[("a", &a)]));
    place.configure(&format!("[targets.a]\npath = \"{}\"\n", a.display()));
    place.longhaul("targets clean a --yes").expect(0);
    assert_eq!(fs::read_dir(&a).unwrap().count(), 0);
}

#[test]
fn configuration_with_a_missing_recording_is_a_failure() {
    let place = Place::new();
    place.configure("[recording]\nreplay = \"day-1\"\n");
    let output = place.longhaul("config").expect(3);
    assert!(output.out.contains("there is no recording `day-1`"), "{output}");
    store(&place, &day_with_everything(12));
    let output = place.longhaul("config").expect(0);
    assert!(output.out.contains("rounds replay `day-1`"), "{output}");
}

#[test]
fn recording_longer_than_a_run_may_take_is_named_when_it_is_chosen() {
    let place = Place::new();
    place.configure("[limits]\ncap-seconds = 1\n");
    let mut day = day_with_everything(12);
    store(&place, &day);
    let output = place.longhaul("record use day-1").expect(0);
    assert!(!output.out.contains("A replay takes at least") && output.err.is_empty(), "{output}");
    day.mean_pauses.iter_mut().for_each(|pause| *pause *= 10);
    store(&place, &day);
    let output = place.longhaul("record use day-1").expect(0);
    assert!(output.out.contains("A replay takes at least 0.") && output.err.is_empty(), "{output}");
    day.mean_pauses.iter_mut().for_each(|pause| *pause *= 100);
    store(&place, &day);
    place.longhaul("record use day-1").expect(0).assert_stderr(&["cap-seconds", "stored as hung"]);
}
