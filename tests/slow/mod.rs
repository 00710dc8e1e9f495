//! A file system in memory that delays by a script, in this process: so what a caller must have felt is known.

mod tree;

use std::ffi::OsStr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, LockOwner, MountOption, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, SessionACL,
    TimeOrNow, WriteFlags,
};
use longhaul_measure::platform::monotonic_ns;
use tree::Tree;

/// Names are remembered, attributes are not: each look at a file is a request.
const NAMES_HOLD: Duration = Duration::from_secs(3600);
const ATTRIBUTES_HOLD: Duration = Duration::ZERO;

/// When what is answered, on the monotonic clock.
pub trait Script: Send + Sync + 'static {
    /// When a request that arrives now is answered; `is_timed`: it is one that the probe is about.
    fn answered_ns(&self, now_ns: u64, is_timed: bool) -> u64;
}

/// What a test sees of the file system and does to it.
#[derive(Default)]
pub struct Levers {
    /// Whether reads of the pool are kept waiting.
    pub holds_reads: AtomicBool,
    /// Requests that were delayed.
    pub delayed: AtomicU64,
    /// Of those that the probe is about, and of all that were delayed: when each arrived and when it was answered, on the
    /// monotonic clock.
    pub kept_waiting: Mutex<Vec<(u64, u64)>>,
    /// Bytes of the largest file: the pool.
    pub largest: AtomicU64,
}

/// A mounted one; unmounted when it is dropped.
pub struct Slow {
    _session: BackgroundSession,
    /// What can be seen and done.
    pub levers: Arc<Levers>,
}

impl Slow {
    /// Mounts one here, with this many threads that answer.
    pub fn mount(at: &Path, threads: usize, script: impl Script) -> Result<Self, String> {
        let levers = Arc::new(Levers::default());
        let files =
            Files { tree: Mutex::new(Tree::new()), script: Box::new(script), levers: Arc::clone(&levers) };
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("slow".to_owned())];
        config.acl = SessionACL::Owner;
        config.n_threads = Some(threads);
        let session = fuser::spawn_mount(files, at, &config).map_err(|error| error.to_string())?;
        Ok(Self { _session: session, levers })
    }
}

struct Files {
    tree: Mutex<Tree>,
    script: Box<dyn Script>,
    levers: Arc<Levers>,
}

impl Files {
    /// Waits as the script says.
    fn wait(&self, is_timed: bool) {
        let now = monotonic_ns();
        let until = self.script.answered_ns(now, is_timed);
        let is_delayed = until > now;
        if is_delayed {
            self.levers.delayed.fetch_add(1, Ordering::Relaxed);
            sleep_until(until);
        }
        // A stall keeps whatever comes first waiting, also what the probe is not about.
        if is_timed || is_delayed {
            self.levers.kept_waiting.lock().unwrap().push((now, monotonic_ns()));
        }
    }

    fn tree(&self) -> std::sync::MutexGuard<'_, Tree> {
        self.tree.lock().unwrap()
    }

    fn is_probes(&self, node: INodeNo) -> bool {
        self.tree().is_in(node.0, "probe")
    }
}

/// The last moment is spent awake: a machine that wakes us late would answer later than the script says.
fn sleep_until(at_ns: u64) {
    const AWAKE_NS: u64 = 2_000_000;
    while let Some(left) = at_ns.checked_sub(monotonic_ns()).filter(|left| *left > 0) {
        match left.checked_sub(AWAKE_NS) {
            Some(asleep) if asleep > 0 => std::thread::sleep(Duration::from_nanos(asleep)),
            _ => std::hint::spin_loop(),
        }
    }
}

fn attributes(tree: &Tree, node: u64) -> FileAttr {
    let (kind, size) = match tree.size(node) {
        Some(size) => (FileType::RegularFile, size),
        None => (FileType::Directory, 0),
    };
    FileAttr {
        ino: INodeNo(node),
        size,
        blocks: size.div_ceil(512),
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind,
        perm: 0o755,
        nlink: 1,
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

fn answer(tree: &Tree, node: Option<u64>, reply: ReplyEntry) {
    match node {
        None => reply.error(Errno::ENOENT),
        Some(node) => {
            let (attributes, generation) = (attributes(tree, node), Generation(0));
            reply.entry_with_ttls(&ATTRIBUTES_HOLD, &NAMES_HOLD, &attributes, generation);
        }
    }
}

fn done(result: Result<(), i32>, reply: ReplyEmpty) {
    match result {
        Ok(()) => reply.ok(),
        Err(code) => reply.error(Errno::from_i32(code)),
    }
}

impl Filesystem for Files {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.wait(false);
        let tree = self.tree();
        answer(&tree, tree.find(parent.0, name), reply);
    }

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let is_file = self.tree().size(node.0).is_some();
        self.wait(is_file && self.is_probes(node));
        reply.attr(&ATTRIBUTES_HOLD, &attributes(&self.tree(), node.0));
    }

    fn setattr(
        &self,
        _: &Request,
        node: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<std::time::SystemTime>,
        _: Option<FileHandle>,
        _: Option<std::time::SystemTime>,
        _: Option<std::time::SystemTime>,
        _: Option<std::time::SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        self.wait(false);
        let mut tree = self.tree();
        if let Some(size) = size {
            tree.resize(node.0, size as usize);
        }
        reply.attr(&ATTRIBUTES_HOLD, &attributes(&tree, node.0));
    }

    fn mkdir(&self, _: &Request, parent: INodeNo, name: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        self.wait(false);
        let mut tree = self.tree();
        let made = tree.make_folder(parent.0, name);
        answer(&tree, Some(made), reply);
    }

    fn create(&self, _: &Request, parent: INodeNo, name: &OsStr, _: u32, _: u32, _: i32, reply: ReplyCreate) {
        self.wait(false);
        let mut tree = self.tree();
        let node = tree.make_file(parent.0, name);
        let attributes = attributes(&tree, node);
        reply.created(&ATTRIBUTES_HOLD, &attributes, Generation(0), FileHandle(0), FopenFlags::empty());
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.wait(false);
        reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
    }

    fn read(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let is_probes = self.is_probes(node);
        while is_probes && self.levers.holds_reads.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.wait(is_probes);
        reply.data(&self.tree().read(node.0, offset as usize, size as usize));
    }

    fn write(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        self.wait(self.is_probes(node));
        let mut tree = self.tree();
        tree.write(node.0, offset as usize, data);
        self.levers.largest.fetch_max(tree.size(node.0).unwrap_or(0), Ordering::Relaxed);
        reply.written(data.len() as u32);
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.wait(false);
        reply.ok();
    }

    fn readdir(&self, _: &Request, node: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        self.wait(false);
        for (place, (name, node, is_file)) in
            self.tree().list(node.0).into_iter().enumerate().skip(offset as usize)
        {
            let kind = if is_file { FileType::RegularFile } else { FileType::Directory };
            if reply.add(INodeNo(node), place as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        _: RenameFlags,
        reply: ReplyEmpty,
    ) {
        self.wait(false);
        done(self.tree().rename((parent.0, name), (new_parent.0, new_name)), reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.wait(false);
        done(self.tree().remove(parent.0, name), reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.wait(false);
        done(self.tree().remove(parent.0, name), reply);
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        self.wait(false);
        reply.statfs(1 << 20, 1 << 19, 1 << 19, 1 << 20, 1 << 19, 4096, 255, 4096);
    }
}
