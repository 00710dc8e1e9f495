//! Server of a mounted disk: its settings, and what the answers to different requests have in common.

use std::ffi::OsStr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use fuser::{
    Errno, FileAttr, FileType, FopenFlags, Generation, INodeNo, ReplyAttr, ReplyEmpty, ReplyEntry,
    ReplyXattr, TimeOrNow,
};

use super::locks::Locks;
use super::volume::Volume;
use super::{Behaviour, Disk, Incoming, Quirk, RequestKind, Serving};

/// Cache time of attributes: zero, so that each `stat` of a file is a request, and because AppleDouble files appear and
/// vanish without a request of the kernel.
pub const NO_CACHE: Duration = Duration::ZERO;
/// Cache time of names, if they are cached.
const NAMES_HOLD: Duration = Duration::from_secs(3600);
/// Block size in bytes.
pub const BLOCK: u64 = 4096;
/// Folder of the latency probe in a sandbox.
const PROBE: &str = "probe";

/// Extent to which the kernel may cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caching {
    Nothing,
    /// Names and file contents, so that a call of the probe is one request.
    Names,
}

/// File system that answers the kernel's requests.
pub struct Server {
    disk: Disk,
    behaviour: Arc<dyn Behaviour>,
    caching: Caching,
    locks: Mutex<Locks>,
}

/// Request that is being answered.
pub struct Turn<'s> {
    server: &'s Server,
    refusal: Option<Errno>,
}

impl Turn<'_> {
    /// Returns the files, or the error with which the behaviour answers the request.
    pub fn volume(&self) -> Result<MutexGuard<'_, Volume>, Errno> {
        match self.refusal {
            Some(error) => Err(error),
            None => Ok(self.server.disk.volume()),
        }
    }

    /// Returns the files if the disk has extended attributes. Fails with ENOSYS if not.
    pub fn volume_with_attributes(&self) -> Result<MutexGuard<'_, Volume>, Errno> {
        let volume = self.volume()?;
        if volume.has(Quirk::AppleDouble) { Ok(volume) } else { Err(Errno::ENOSYS) }
    }

    /// Opens a file.
    pub fn open(&self, node: u64) -> Result<(), Errno> {
        self.volume()?.node_mut(node)?.open += 1;
        Ok(())
    }

    /// Creates and opens a file. The kernel holds a reference to it until it sends `forget`.
    pub fn make(&self, parent: u64, name: &str, mode: u16) -> Result<FileAttr, Errno> {
        let mut volume = self.volume()?;
        let node = volume.make_file((parent, name), mode)?;
        volume.node_mut(node)?.open += 1;
        volume.hold(node);
        facts(&volume, node)
    }

    /// Sets attributes.
    pub fn change(&self, number: u64, change: Change) -> Result<FileAttr, Errno> {
        let mut volume = self.volume()?;
        if let Some(size) = change.size {
            volume.resize(number, size as usize)?;
        }
        let now = volume.now();
        let [accessed, modified] = [change.accessed, change.modified].map(|time| match time? {
            TimeOrNow::Now => Some(now),
            TimeOrNow::SpecificTime(time) => Some(volume.rounded(time)),
        });
        let node = volume.node_mut(number)?;
        node.mode = change.mode.map_or(node.mode, |mode| (mode & 0o7777) as u16);
        node.accessed = accessed.unwrap_or(node.accessed);
        node.modified = modified.unwrap_or(node.modified);
        node.changed = now;
        facts(&volume, number)
    }

    /// Answers with the node that `find` returns. The kernel holds a reference to it until it sends `forget`.
    pub fn answer(&self, reply: ReplyEntry, find: impl FnOnce(&mut Volume) -> Result<u64, Errno>) {
        let found = self.volume().and_then(|mut volume| {
            let node = find(&mut volume)?;
            volume.hold(node);
            facts(&volume, node)
        });
        let names_hold = match self.server.caching {
            Caching::Nothing => NO_CACHE,
            Caching::Names => NAMES_HOLD,
        };
        match found {
            Ok(attributes) => reply.entry_with_ttls(&NO_CACHE, &names_hold, &attributes, Generation(0)),
            Err(error) => reply.error(error),
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.server.behaviour.after();
    }
}

impl Server {
    /// Creates the server of a disk.
    pub fn new(disk: Disk, serving: &Serving) -> Self {
        let behaviour = Arc::clone(&serving.behaviour);
        Self { disk, behaviour, caching: serving.caching, locks: Mutex::default() }
    }

    /// Begins a request about a node. It ends when the result is dropped.
    pub fn begin(&self, kind: RequestKind, node: INodeNo) -> Turn<'_> {
        let is_probes = self.disk.volume().is_in(node.0, PROBE);
        let refusal = self.behaviour.before(Incoming { kind, is_probes }).err();
        Turn { server: self, refusal }
    }

    /// Returns the files, for a request that has no answer.
    pub fn volume(&self) -> MutexGuard<'_, Volume> {
        self.disk.volume()
    }

    pub fn locks(&self) -> MutexGuard<'_, Locks> {
        self.locks.lock().expect("no thread panics while it holds the lock")
    }

    /// Returns the flags of an opened file.
    pub fn open_flags(&self) -> FopenFlags {
        match self.caching {
            Caching::Nothing => FopenFlags::empty(),
            Caching::Names => FopenFlags::FOPEN_KEEP_CACHE,
        }
    }
}

/// Attributes to set; `None` leaves an attribute unchanged.
pub struct Change {
    pub mode: Option<u32>,
    pub size: Option<u64>,
    pub accessed: Option<TimeOrNow>,
    pub modified: Option<TimeOrNow>,
}

/// Returns a name as text. Fails with EILSEQ if it is not UTF-8, as a Mac's file systems do.
pub fn text(name: &OsStr) -> Result<&str, Errno> {
    name.to_str().ok_or(Errno::EILSEQ)
}

/// Answers that a request is done or failed.
pub fn done(result: Result<(), Errno>, reply: ReplyEmpty) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

/// Answers with attributes.
pub fn attributes(found: Result<FileAttr, Errno>, reply: ReplyAttr) {
    match found {
        Ok(attributes) => reply.attr(&NO_CACHE, &attributes),
        Err(error) => reply.error(error),
    }
}

/// Answers with the value of an extended attribute, or with its size if the requested size is 0.
pub fn value(found: Result<Vec<u8>, Errno>, size: u32, reply: ReplyXattr) {
    match found {
        Err(error) => reply.error(error),
        Ok(value) if size == 0 => reply.size(value.len() as u32),
        Ok(value) if value.len() > size as usize => reply.error(Errno::ERANGE),
        Ok(value) => reply.data(&value),
    }
}

/// Returns the attributes of a node in the form that the kernel expects.
pub fn facts(volume: &Volume, number: u64) -> Result<FileAttr, Errno> {
    let node = volume.node(number)?;
    let kind = if node.is_folder() { FileType::Directory } else { FileType::RegularFile };
    Ok(FileAttr {
        ino: INodeNo(number),
        size: node.size(),
        blocks: node.size().div_ceil(512),
        atime: node.accessed,
        mtime: node.modified,
        ctime: node.changed,
        crtime: node.modified,
        kind,
        perm: node.mode,
        nlink: node.links(),
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        rdev: 0,
        blksize: BLOCK as u32,
        flags: 0,
    })
}
