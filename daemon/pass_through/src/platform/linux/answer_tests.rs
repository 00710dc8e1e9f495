//! The work behind requests, without a mount.

use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use longhaul_recording::{ActionResult, Note, Scrubber, TraceEvent, TraceSink};
use parking_lot::RwLock;
use rustix::fs::OFlags;

use super::answers::Answers;
use super::file_answers::{LockRequest, Use};
use super::folder::{Folder, identity};
use super::locks::Lock;
use super::open_files::OpenFiles;
use super::recorder::Recorder;
use super::tree::{NameIn, ROOT, Tree};
use crate::Receiver;

/// Number of a file that has no name.
const NAMELESS: u64 = 1000;
/// Time after which a call hangs, on the slowest machine.
const HANGS: Duration = Duration::from_mins(1);

fn answers(folder: &Path, receiver: Receiver) -> Answers {
    let root = identity(&rustix::fs::stat(folder).unwrap());
    Answers {
        folder: Folder::open(folder).unwrap(),
        shown: folder.to_owned(),
        tree: RwLock::new(Tree::new(root)),
        renames: RwLock::new(()),
        files: OpenFiles::default(),
        recorder: Arc::new(Recorder::new(receiver)),
    }
}

/// Sends the results of operations.
struct Results(mpsc::Sender<ActionResult>);

impl TraceSink for Results {
    fn event(&mut self, event: &TraceEvent<'_>) {
        self.0.send(event.result).unwrap();
    }

    fn note(&mut self, _note: Note<'_>) {}
}

fn quiet() -> Receiver {
    Box::new(Scrubber::new(b"/"))
}

#[test]
fn file_without_a_name_is_opened_while_a_rename_waits() {
    let scratch = tempfile::tempdir().unwrap();
    let answers = Arc::new(answers(scratch.path(), quiet()));
    answers.files.add(tempfile::tempfile().unwrap().into(), NAMELESS);
    let (opened, is_open) = mpsc::channel();
    // Keeps the opening between its lock of names and what it does with it.
    let tree = answers.tree.write();
    let opening = Arc::clone(&answers);
    std::thread::spawn(move || opened.send(opening.open(NAMELESS, OFlags::RDONLY).is_ok()));
    while answers.renames.try_write().is_some() {
        std::thread::yield_now();
    }
    let renaming = Arc::clone(&answers);
    std::thread::spawn(move || drop(renaming.renames.write()));
    while answers.renames.try_read().is_some() {
        std::thread::yield_now();
    }
    drop(tree);
    assert_eq!(is_open.recv_timeout(HANGS), Ok(true));
}

#[test]
fn failed_look_up_is_not_taken_for_a_missing_file() {
    let scratch = tempfile::tempdir().unwrap();
    let (results, reported) = mpsc::channel();
    let answers = answers(scratch.path(), Box::new(Results(results)));
    let look = |name: &str| answers.look_up(1, NameIn::new(ROOT, OsStr::new(name))).err().unwrap();
    look("missing");
    let too_long = "n".repeat(300);
    assert_eq!(look(&too_long).raw_os_error(), Some(libc::ENAMETOOLONG));
    answers.recorder.finish();
    let reported: Vec<_> = reported.try_iter().collect();
    assert_eq!(reported, [ActionResult::NotFound, ActionResult::Failed]);
}

/// Adds an open file, and returns its handle.
fn used(answers: &Answers, file: File) -> Use {
    Use { thread: 1, handle: answers.files.add(file.into(), 7) }
}

/// Returns a request for a lock on ten bytes.
fn request(owner: u64, kind: i32, start: u64) -> LockRequest {
    LockRequest { lock: Lock { start, end: start + 9, kind }, owner, waits: false }
}

#[test]
fn locks_of_an_owner_go_through_one_handle() {
    let scratch = tempfile::NamedTempFile::new().unwrap();
    let answers = answers(Path::new("/"), quiet());
    let [one, other] = [(); 2].map(|()| used(&answers, scratch.reopen().unwrap()));
    answers.lock(one, request(1, libc::F_WRLCK, 0)).unwrap();
    answers.lock(other, request(1, libc::F_WRLCK, 0)).unwrap();
    let found = |owner| answers.conflict(other.handle, request(owner, libc::F_WRLCK, 0)).unwrap().kind;
    assert_eq!([found(1), found(2)], [libc::F_UNLCK, libc::F_WRLCK]);
    answers.lock(other, request(2, libc::F_WRLCK, 0)).unwrap_err();
    answers.lock(other, request(1, libc::F_UNLCK, 0)).unwrap();
    answers.lock(other, request(2, libc::F_WRLCK, 0)).unwrap();
}

#[test]
fn locks_that_one_handle_cannot_have_go_through_the_next() {
    let scratch = tempfile::NamedTempFile::new().unwrap();
    let answers = answers(Path::new("/"), quiet());
    let read = used(&answers, File::open(scratch.path()).unwrap());
    let [write, third] = [(); 2].map(|()| used(&answers, scratch.reopen().unwrap()));
    answers.lock(read, request(1, libc::F_RDLCK, 0)).unwrap();
    answers.lock(write, request(1, libc::F_WRLCK, 100)).unwrap();
    let take_both = || [0, 100].map(|start| answers.lock(third, request(2, libc::F_WRLCK, start)).is_ok());
    assert_eq!(take_both(), [false, false]);
    answers.flush(write, 1).unwrap();
    assert_eq!(take_both(), [true, true]);
}
