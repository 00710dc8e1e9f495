//! Ordinary programs on a mounted pass-through. They need /dev/fuse, and root or fusermount3.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use longhaul_model::{Mount, Protocol};
use longhaul_recording::{Note, Scrubber, TraceAction, TraceEvent, TraceSink};
use parking_lot::Mutex;
use rustix::fs::{CWD, FallocateFlags, FlockOperation, RenameFlags, fcntl_lock};
use tempfile::TempDir;

use super::{PassThrough, mount, unmount};
use crate::{End, MountPaths, PassThroughError};

type Log = Arc<Mutex<Vec<String>>>;

/// Writes down what is reported of a folder.
struct Words {
    log: Log,
    folder: PathBuf,
}

impl TraceSink for Words {
    fn event(&mut self, event: &TraceEvent<'_>) {
        self.log.lock().push(words(event, &self.folder));
    }

    fn note(&mut self, note: Note<'_>) {
        if let Note::UnknownCall { name, .. } = note {
            self.log.lock().push(format!("unknown {name}"));
        }
    }
}

struct Mounted {
    place: MountPaths,
    log: Log,
    session: Option<PassThrough>,
    _scratch: TempDir,
}

impl Mounted {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let place =
            MountPaths { folder: scratch.path().join("share"), mount_point: scratch.path().join("mount") };
        fs::create_dir(&place.folder).unwrap();
        let log = Log::default();
        let words = Words { log: Arc::clone(&log), folder: place.folder.clone() };
        let session = mount(&place, &[], Box::new(words)).unwrap();
        Self { place, log, session: Some(session), _scratch: scratch }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.place.mount_point.join(name)
    }

    fn behind(&self, name: &str) -> PathBuf {
        self.place.folder.join(name)
    }

    fn shell(&self, script: &str) -> String {
        let output =
            Command::new("sh").args(["-ec", script]).current_dir(&self.place.mount_point).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{script}: {text}{}", String::from_utf8_lossy(&output.stderr));
        text
    }

    /// Ends the mount, and returns what was recorded.
    fn end(mut self) -> Vec<String> {
        assert_eq!(self.session.take().unwrap().end(), End::Unmounted);
        std::mem::take(&mut *self.log.lock())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.session.take().map(PassThrough::end);
    }
}

fn words(event: &TraceEvent<'_>, folder: &Path) -> String {
    let name = |path: &[u8]| {
        let path = Path::new(std::str::from_utf8(path).unwrap());
        path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned()
    };
    let what = match &event.action {
        TraceAction::Open { path, .. } => format!("open {}", name(path)),
        TraceAction::Close { .. } => "close".to_owned(),
        TraceAction::List { entries, .. } => format!("list {entries:?}"),
        TraceAction::Read { offset, length, read, .. } => format!("read {}+{length}={read}", offset.unwrap()),
        TraceAction::Write { offset, length, .. } => format!("write {}+{length}", offset.unwrap()),
        TraceAction::Attributes { path, .. } => format!("stat {}", name(path)),
        TraceAction::HandleAttributes { .. } => "fstat".to_owned(),
        TraceAction::Rename { from, to } => format!("rename {} {}", name(from), name(to)),
        TraceAction::Remove { path } => format!("remove {}", name(path)),
        TraceAction::CreateFolder { path } => format!("mkdir {}", name(path)),
        other => format!("{other:?}").split([' ', '{']).next().unwrap().to_owned(),
    };
    format!("{what} {:?}", event.result)
}

#[test]
fn calls_are_recorded_as_a_program_makes_them() {
    let mounted = Mounted::new();
    fs::create_dir(mounted.at("a")).unwrap();
    let mut file = File::create(mounted.at("a/b")).unwrap();
    file.write_all(b"hello").unwrap();
    drop(file);
    let mut text = [0; 3];
    File::open(mounted.at("a/b")).unwrap().read_exact_at(&mut text, 1).unwrap();
    assert_eq!(&text, b"ell");
    fs::metadata(mounted.at("a/none")).unwrap_err();
    fs::rename(mounted.at("a/b"), mounted.at("a/c")).unwrap();
    assert_eq!(fs::read(mounted.behind("a/c")).unwrap(), b"hello");
    fs::remove_file(mounted.at("a/c")).unwrap();
    // The kernel reports the last close of a file later, without making a program wait for the answer.
    let (closes, others): (Vec<_>, Vec<_>) = mounted.end().into_iter().partition(|line| line == "close Done");
    assert_eq!(closes.len(), 2);
    let expected = [
        "mkdir a Done",
        "open a/b Done",
        "write 0+5 Done",
        "open a/b Done",
        "read 1+3=3 Done",
        "stat a/none NotFound",
        "rename a/b a/c Done",
        "remove a/c Done",
    ];
    assert_eq!(others, expected);
}

#[test]
fn listing_is_recorded_in_the_batches_of_the_folder() {
    let mounted = Mounted::new();
    (0..1000).for_each(|number| drop(File::create(mounted.behind(&format!("file {number:04}"))).unwrap()));
    assert_eq!(fs::read_dir(&mounted.place.mount_point).unwrap().count(), 1000);
    assert_eq!(fs::read_dir(&mounted.place.mount_point).unwrap().take(10).count(), 10);
    let log = mounted.end();
    let lists: Vec<_> = log.iter().filter(|line| line.starts_with("list")).collect();
    assert!(lists.len() >= 3 && lists.len() <= 6, "{lists:?}");
}

#[test]
fn file_is_usable_after_its_name_is_removed() {
    let mounted = Mounted::new();
    let mut file =
        File::options().read(true).write(true).create(true).truncate(true).open(mounted.at("x")).unwrap();
    fs::remove_file(mounted.at("x")).unwrap();
    file.write_all(b"0123456789").unwrap();
    file.set_len(4).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 4);
    file.set_permissions(fs::Permissions::from_mode(0o600)).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    assert_eq!(text, "0123");
    drop(file);
    assert_eq!(fs::read_dir(&mounted.place.folder).unwrap().count(), 0);
}

#[test]
fn links_names_modes_and_times_pass_through() {
    let mounted = Mounted::new();
    let long = "n".repeat(255);
    let script = format!(
        "echo 1 > a; ln a b; ln -s a s; [ $(cat s) = 1 ]; [ $(stat -c %h a) = 2 ]; chmod 640 a; touch -d 2001-02-03 a; touch {long}; \
         mkdir -p d/e/f; mv d z; [ -d z/e/f ]; echo 2 >> b; mkfifo p; [ $(stat -c %i a) = $(stat -c %i b) ]; df . > /dev/null"
    );
    mounted.shell(&script);
    let found = fs::metadata(mounted.behind("a")).unwrap();
    assert_eq!((found.mode() & 0o777, found.nlink()), (0o640, 2));
    assert_eq!(fs::read_to_string(mounted.behind("a")).unwrap(), "1\n2\n");
    assert_eq!(fs::read_link(mounted.behind("s")).unwrap(), Path::new("a"));
    mounted.shell("rm -r z; rm *; [ -z \"$(ls)\" ]");
}

#[test]
fn program_is_started_from_the_mount() {
    let mounted = Mounted::new();
    // Written by the shell: while this process starts others, they have a copy of its handle, which would make the file busy.
    let script = "printf '#!/bin/sh\necho started\n' > run; chmod 755 run; ./run";
    assert_eq!(mounted.shell(script), "started\n");
}

#[test]
fn new_files_have_the_mode_that_the_program_wants() {
    let mounted = Mounted::new();
    mounted.shell("umask 0; mkdir open; touch new; mkfifo pipe; umask 077; mkdir closed");
    let modes = ["open", "new", "pipe", "closed"]
        .map(|name| fs::metadata(mounted.behind(name)).unwrap().permissions().mode() & 0o777);
    assert_eq!(modes, [0o777, 0o666, 0o666, 0o700]);
}

#[test]
fn calls_without_an_operation_are_counted() {
    let mounted = Mounted::new();
    fs::write(mounted.behind("a"), [1; 4096]).unwrap();
    fs::write(mounted.behind("b"), "").unwrap();
    let file = File::options().write(true).open(mounted.at("a")).unwrap();
    rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, 512).unwrap();
    rustix::fs::renameat_with(CWD, mounted.at("a"), CWD, mounted.at("b"), RenameFlags::EXCHANGE).unwrap();
    drop(file);
    let log = mounted.end();
    let unknown: Vec<_> = log.iter().filter(|line| line.starts_with("unknown")).collect();
    assert_eq!(unknown, ["unknown fallocate", "unknown rename_exchange"], "{log:?}");
}

#[test]
fn handles_of_one_program_share_their_locks() {
    let mounted = Mounted::new();
    fs::write(mounted.behind("a"), "").unwrap();
    let open = |path: PathBuf| File::options().read(true).write(true).open(path).unwrap();
    let [one, other] = [open(mounted.at("a")), open(mounted.at("a"))];
    let lock = |file: &File| fcntl_lock(file, FlockOperation::NonBlockingLockExclusive);
    lock(&one).unwrap();
    lock(&other).unwrap();
    let behind = open(mounted.behind("a"));
    lock(&behind).unwrap_err();
    // The first closed handle of a program ends all its locks of the file.
    drop(other);
    lock(&behind).unwrap();
}

#[test]
#[ignore = "needs git and sqlite3; run with --ignored"]
fn git_works_and_sees_no_changes() {
    let mounted = Mounted::new();
    mounted.shell(
        "git init -q r; cd r; git config user.email a@b; git config user.name a; for i in $(seq 50); do echo $i > f$i; done; git add .; \
         git commit -qm one; git mv f1 g1; git commit -qam two; git gc -q; [ -z \"$(git status --porcelain)\" ]; git fsck",
    );
    mounted.shell("git clone -q r s; cd s; [ \"$(git log --oneline | wc -l)\" = 2 ]; cd ..; rm -rf r s");
}

#[test]
#[ignore = "needs git and sqlite3; run with --ignored"]
fn sqlite_works_with_locks_and_a_shared_memory_map() {
    let mounted = Mounted::new();
    for mode in ["delete", "wal"] {
        let script = format!(
            "sqlite3 x.db 'pragma journal_mode={mode}; create table if not exists t(a); insert into t values(1); select count(*) from t'"
        );
        mounted.shell(&script);
    }
    assert_eq!(mounted.shell("sqlite3 x.db 'pragma integrity_check; select count(*) from t'"), "ok\n2\n");
    assert!(mounted.end().iter().any(|line| line.starts_with("Lock")));
}

#[test]
fn many_threads_are_answered_at_once() {
    let mounted = Mounted::new();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let folder = mounted.at(&format!("t{thread}"));
            scope.spawn(move || {
                fs::create_dir(&folder).unwrap();
                for number in 0..100 {
                    fs::write(folder.join("new"), vec![thread; 10_000]).unwrap();
                    fs::rename(folder.join("new"), folder.join(format!("{number}"))).unwrap();
                }
                fs::rename(&folder, folder.with_extension("done")).unwrap();
            });
        }
    });
    for thread in 0..8u8 {
        let folder = mounted.behind(&format!("t{thread}.done"));
        assert_eq!(fs::read(folder.join("99")).unwrap(), vec![thread; 10_000]);
        assert_eq!(fs::read_dir(folder).unwrap().count(), 100);
    }
}

#[test]
fn program_that_is_about_to_end_does_not_keep_the_mount() {
    let mut mounted = Mounted::new();
    let mut user = Command::new("sleep").arg("0.3").current_dir(&mounted.place.mount_point).spawn().unwrap();
    // Longer than the usual grace, because a busy machine ends the program late.
    assert_eq!(mounted.session.take().unwrap().end_within(Duration::from_mins(1)), End::Unmounted);
    user.wait().unwrap();
}

#[test]
fn mount_that_its_user_unmounts_has_ended() {
    let mut mounted = Mounted::new();
    let session = mounted.session.take().unwrap();
    unmount::detach(&mounted.place.mount_point).unwrap();
    while !session.has_ended() {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(session.end(), End::Unmounted);
    assert!(!mounted.place.mount_point.exists(), "the mount point is removed");
}

#[test]
fn mount_in_use_is_detached_and_its_user_named() {
    let mut mounted = Mounted::new();
    let mut user = Command::new("sleep").arg("60").current_dir(&mounted.place.mount_point).spawn().unwrap();
    let end = mounted.session.take().unwrap().end();
    let name = |end: &End| match end {
        End::Detached(users) => users.iter().map(|user| user.name.clone()).collect::<Vec<_>>(),
        _ => vec![],
    };
    assert_eq!(name(&end), ["sleep"], "{end:?}");
    assert!(!mounted.place.mount_point.exists(), "the mount point is removed");
    user.kill().unwrap();
    user.wait().unwrap();
}

#[test]
fn unsuitable_mount_points_are_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().canonicalize().unwrap();
    let try_at = |mount_point: PathBuf, mounts: &[Mount]| {
        let place = MountPaths { folder: root.join("share"), mount_point };
        mount(&place, mounts, Box::new(Scrubber::new(b"/"))).err().unwrap()
    };
    fs::create_dir_all(root.join("full/of")).unwrap();
    fs::create_dir(root.join("share")).unwrap();
    std::os::unix::fs::symlink("share", root.join("link")).unwrap();
    for inside in ["share/x", "link/x", "full/../share/x"] {
        let refused = try_at(root.join(inside), &[]);
        assert!(matches!(refused, PassThroughError::Inside { .. }), "{inside}: {refused}");
    }
    for other in ["full", "link", "full/.."] {
        let refused = try_at(root.join(other), &[]);
        assert!(matches!(refused, PassThroughError::NotEmpty { .. }), "{other}: {refused}");
    }
    let used = root.join("used");
    let source = format!("longhaul-recording-{}", std::process::id());
    let mounts = [Mount::new(&used, source, Protocol::Fuse(None))];
    assert!(matches!(try_at(used, &mounts), PassThroughError::InUse { .. }));
}
