//! Another program on the share swaps longhaul's files for links, pipes, folders and markers of another machine all the time:
//! nothing outside the sandboxes changes, and no command hangs. One of the two targets lies in the folder of the other.
//!
//! `LONGHAUL_SWAPS` sets the number of swaps.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode};

use crate::support::{Call, Place, find_sandbox};

/// Number of swaps, unless `LONGHAUL_SWAPS` is set. The published table has 100,000.
const SWAPS: u64 = 3_000;
/// Workloads that are disturbed.
const WORKLOADS: [&str; 4] = ["folder-index", "photo-batch", "incremental-backup", "time-machine"];
/// Time after which a command counts as hanging.
const HANGS_AFTER: Duration = Duration::from_secs(100);

#[test]
fn swapped_files_never_lead_out_of_the_sandbox() {
    let place = Place::with_tiny_trees();
    let (share, victim) = (place.folder("share"), place.folder("victim"));
    let targets = [share.clone(), place.folder("share/inner")];
    fill_victim(&victim);
    let before = state(&victim);
    let wanted = std::env::var("LONGHAUL_SWAPS").map_or(SWAPS, |number| number.parse().unwrap());
    let opponent = Opponent::new(&place, targets.clone(), wanted);
    std::thread::scope(|scope| {
        let _end = StopAtEnd(&opponent);
        scope.spawn(|| opponent.swap_until_done());
        while !opponent.is_done() {
            let swapped = opponent.total();
            for workload in WORKLOADS {
                let run = place.longhaul(&format!("run --json --scale quick --cap 20 --workload {workload}"));
                finish(run.target("smb", &targets[0]).target("inner", &targets[1]));
            }
            for (name, target) in ["smb", "inner"].iter().zip(&targets) {
                let clean = place.longhaul("targets clean --yes");
                finish(clean.arg(format!("{name}={}", target.display())));
            }
            // A marker that was swapped for ever would end all further runs at once.
            opponent.pause_while(|| {
                targets.iter().filter_map(|target| find_sandbox(target)).for_each(|left| remove(&left));
            });
            assert!(opponent.total() > swapped, "nothing was swapped in a whole pass");
        }
    });
    assert_eq!(state(&victim), before, "files outside the sandbox changed");
    opponent.print();
}

/// Runs a command. Its result does not matter, because its files are being swapped, but it must end and not crash.
fn finish(call: Call<'_>) {
    let began = Instant::now();
    let mut running = call.start();
    running.wait_for_exit();
    let output = running.output_so_far();
    assert!(began.elapsed() < HANGS_AFTER, "a command took {:?}\n{output}", began.elapsed());
    assert!(!output.err.contains("panicked"), "{output}");
}

/// Creates the files of another user.
fn fill_victim(victim: &Path) {
    for folder in ["letters", "letters/old"] {
        fs::create_dir_all(victim.join(folder)).unwrap();
        for number in 0..8 {
            let file = victim.join(folder).join(format!("letter {number}.txt"));
            fs::write(&file, vec![b'v'; 5_000 * number]).unwrap();
            let _ = rustix::fs::setxattr(&file, "user.mine", b"yes", rustix::fs::XattrFlags::empty());
        }
    }
}

/// The state of a file that must not change: content, mode, owner, time of modification, extended attributes.
type FileState = (Vec<u8>, u32, u32, i64, i64, Vec<u8>);

/// Returns the state of everything below a folder.
fn state(root: &Path) -> BTreeMap<PathBuf, FileState> {
    let mut found = BTreeMap::new();
    let mut pending = vec![root.to_owned()];
    while let Some(path) = pending.pop() {
        let facts = fs::symlink_metadata(&path).unwrap();
        let content = if facts.is_dir() {
            pending.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            vec![]
        } else {
            fs::read(&path).unwrap()
        };
        let mut attributes = vec![0; 4096];
        let length = rustix::fs::listxattr(&path, &mut attributes[..]).unwrap_or(0);
        attributes.truncate(length);
        found.insert(
            path,
            (content, facts.mode(), facts.uid(), facts.mtime(), facts.mtime_nsec(), attributes),
        );
    }
    found
}

/// A program that swaps files of a sandbox.
struct Opponent {
    targets: [PathBuf; 2],
    victim: PathBuf,
    /// Folder in which what was swapped waits.
    aside: PathBuf,
    wanted: u64,
    /// Held during a swap.
    turn: Mutex<()>,
    /// True if the test has ended, with or without a failure.
    stopped: AtomicBool,
    done: [AtomicU64; PLANTS.len()],
}

/// Ends the swapping when the test ends, so that a failed test does not wait for it for ever.
struct StopAtEnd<'a>(&'a Opponent);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.stopped.store(true, Ordering::Relaxed);
    }
}

/// Kinds of things that are put in the place of a file.
const PLANTS: [&str; 8] = [
    "link",
    "hard link",
    "pipe",
    "socket",
    "sparse file",
    "folder",
    "link to a folder",
    "marker of another machine",
];

/// A marker as another machine writes it, for the same target.
const FOREIGN_MARKER: &str = r#"{"longhaul_sandbox": 1, "machine": "00000000000000aa", "target": "smb"}"#;

impl Opponent {
    fn new(place: &Place, targets: [PathBuf; 2], wanted: u64) -> Self {
        let (victim, aside) = (place.folder("victim"), place.folder("aside"));
        Self {
            targets,
            victim,
            aside,
            wanted,
            turn: Mutex::default(),
            stopped: AtomicBool::new(false),
            done: Default::default(),
        }
    }

    fn total(&self) -> u64 {
        self.done.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    fn is_done(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || self.total() >= self.wanted
    }

    /// Does something while nothing is swapped.
    fn pause_while(&self, action: impl FnOnce()) {
        let _turn = self.turn.lock().unwrap();
        action();
    }

    fn print(&self) {
        for (plant, count) in PLANTS.iter().zip(&self.done) {
            println!("{plant}: {} swaps", count.load(Ordering::Relaxed));
        }
    }

    fn swap_until_done(&self) {
        let mut random = 1;
        while !self.is_done() {
            let sandboxes = self.targets.iter().filter_map(|target| find_sandbox(target));
            for path in sandboxes.flat_map(|sandbox| paths_below(&sandbox)) {
                random = next(random);
                if random % odds(&path) == 0 && !self.is_done() {
                    self.swap(&path, next(random));
                }
            }
        }
    }

    /// Puts something in the place of a file for a moment, or, rarely, for ever.
    fn swap(&self, path: &Path, random: u64) {
        let _turn = self.turn.lock().unwrap();
        let kind = (random >> 8) as usize % PLANTS.len();
        // A new name each time: a folder in which a worker still writes cannot always be removed, and would be in the way for ever.
        let aside = self.aside.join(random.to_string());
        if fs::rename(path, &aside).is_err() {
            return;
        }
        if self.plant(kind, path).is_some() {
            self.done[kind].fetch_add(1, Ordering::Relaxed);
            if random.is_multiple_of(50) {
                remove(&aside);
                return;
            }
            std::thread::sleep(Duration::from_micros(random >> 16 & 0x3ff));
            remove(path);
        }
        if fs::rename(&aside, path).is_err() {
            remove(&aside);
        }
    }

    /// Puts a socket at a path. The address of a socket is short, so it is made elsewhere and moved.
    fn socket(&self, path: &Path) -> Option<()> {
        let made = self.aside.join("s");
        let _ = fs::remove_file(&made);
        UnixListener::bind(&made).ok()?;
        fs::rename(&made, path).ok()
    }

    /// Puts one of [`PLANTS`] at a path.
    fn plant(&self, kind: usize, path: &Path) -> Option<()> {
        let file = self.victim.join("letters/letter 3.txt");
        match kind {
            0 => symlink(file, path).ok(),
            1 => fs::hard_link(file, path).ok(),
            2 => rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).ok(),
            3 => self.socket(path),
            4 => fs::File::create(path).and_then(|file| file.set_len(8 << 30)).ok(),
            5 => fs::create_dir(path).ok(),
            6 => symlink(self.victim.join("letters"), path).ok(),
            _ => fs::write(path, FOREIGN_MARKER).ok(),
        }
    }
}

/// Returns one in how many times a path is swapped: files at the top rarely, so that runs get far.
fn odds(path: &Path) -> u64 {
    if path.extension().is_some_and(|extension| extension == "json") { 2_000 } else { 20 }
}

/// Removes what was planted, and nothing behind a link.
fn remove(path: &Path) {
    if fs::symlink_metadata(path).is_ok_and(|facts| facts.is_dir()) {
        let _ = fs::remove_dir_all(path);
    } else {
        let _ = fs::remove_file(path);
    }
}

/// Returns the paths below a folder, without following links.
fn paths_below(root: &Path) -> Vec<PathBuf> {
    let (mut found, mut pending) = (vec![], vec![root.to_owned()]);
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                pending.push(entry.path());
            }
            found.push(entry.path());
        }
    }
    found
}

/// Returns the next number of a simple pseudo-random sequence (xorshift).
fn next(mut random: u64) -> u64 {
    random ^= random << 13;
    random ^= random >> 7;
    random ^ random << 17
}
