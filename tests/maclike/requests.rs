//! The requests of the kernel, answered from memory.

use std::ffi::OsStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyLock, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow,
    WriteFlags,
};

use super::Quirk;
use super::locks::{Lock, Locks};
use super::volume::{BLOCK, CAPACITY, ROOT, Volume, facts};

/// Nothing is remembered: twins come and go without the kernel's doing.
const NOTHING_HOLDS: Duration = Duration::ZERO;
/// `F_WRLCK` and `F_UNLCK` of Linux.
const WRITE_LOCK: i32 = 1;
const UNLOCK: i32 = 2;

/// The file system as the kernel asks for it.
pub struct Files {
    volume: Mutex<Volume>,
    locks: Mutex<Locks>,
    has_locks: bool,
    is_private: Arc<AtomicBool>,
    refused: Arc<AtomicU64>,
}

impl Files {
    /// An empty one. The two switches are those of [`super::MacLike`].
    pub fn new(quirks: &[Quirk], (is_private, refused): (Arc<AtomicBool>, Arc<AtomicU64>)) -> Self {
        Self {
            volume: Mutex::new(Volume::new(quirks.iter().copied().collect())),
            locks: Mutex::default(),
            has_locks: !quirks.contains(&Quirk::NoLocks),
            is_private,
            refused,
        }
    }

    fn volume(&self) -> MutexGuard<'_, Volume> {
        self.volume.lock().expect("no thread panics with it")
    }

    fn locks(&self) -> MutexGuard<'_, Locks> {
        self.locks.lock().expect("no thread panics with it")
    }

    fn require_consent(&self) -> Result<(), Errno> {
        match self.is_private.load(Ordering::Relaxed) {
            true => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                Err(Errno::EPERM)
            }
            false => Ok(()),
        }
    }

    fn open_file(&self, node: u64) -> Result<(), Errno> {
        self.require_consent()?;
        self.volume().node_mut(node)?.open += 1;
        Ok(())
    }

    /// Makes a file and opens it. The kernel holds it from then on.
    fn make(&self, parent: u64, name: &str, mode: u16) -> Result<FileAttr, Errno> {
        self.require_consent()?;
        let mut volume = self.volume();
        let node = volume.make_file((parent, name), mode)?;
        volume.node_mut(node)?.open += 1;
        volume.hold(node);
        facts(&volume, node)
    }

    fn change(&self, number: u64, change: Change) -> Result<FileAttr, Errno> {
        let mut volume = self.volume();
        if let Some(size) = change.size {
            volume.resize(number, size as usize)?;
        }
        let now = volume.now();
        let [accessed, modified] = [change.accessed, change.modified].map(|time| match time? {
            TimeOrNow::Now => Some(now),
            TimeOrNow::SpecificTime(time) => Some(volume.kept(time)),
        });
        let node = volume.node_mut(number)?;
        node.mode = change.mode.map_or(node.mode, |mode| (mode & 0o7777) as u16);
        node.accessed = accessed.unwrap_or(node.accessed);
        node.modified = modified.unwrap_or(node.modified);
        node.changed = now;
        facts(&volume, number)
    }

    /// Answers with a node, which the kernel holds from then on.
    fn entry(volume: &mut Volume, node: Result<u64, Errno>, reply: ReplyEntry) {
        match node.and_then(|node| Ok((node, facts(volume, node)?))) {
            Err(error) => reply.error(error),
            Ok((node, attributes)) => {
                volume.hold(node);
                reply.entry(&NOTHING_HOLDS, &attributes, Generation(0));
            }
        }
    }
}

/// Attributes that are set.
struct Change {
    mode: Option<u32>,
    size: Option<u64>,
    accessed: Option<TimeOrNow>,
    modified: Option<TimeOrNow>,
}

/// A name as text: what a Mac's file systems take.
fn text(name: &OsStr) -> Result<&str, Errno> {
    name.to_str().ok_or(Errno::EILSEQ)
}

fn done(result: Result<(), Errno>, reply: ReplyEmpty) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

/// Answers with a value, or with its size where only that is asked for.
fn value(found: Result<Vec<u8>, Errno>, size: u32, reply: ReplyXattr) {
    match found {
        Err(error) => reply.error(error),
        Ok(value) if size == 0 => reply.size(value.len() as u32),
        Ok(value) if value.len() > size as usize => reply.error(Errno::ERANGE),
        Ok(value) => reply.data(&value),
    }
}

impl Filesystem for Files {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        let _ = config.add_capabilities(InitFlags::FUSE_POSIX_LOCKS);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let mut volume = self.volume();
        let node = text(name).and_then(|name| volume.find((parent.0, name)));
        Self::entry(&mut volume, node, reply);
    }

    fn forget(&self, _: &Request, node: INodeNo, times: u64) {
        if node.0 != ROOT {
            self.volume().forget(node.0, times);
        }
    }

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match facts(&self.volume(), node.0) {
            Ok(attributes) => reply.attr(&NOTHING_HOLDS, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        mode: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let change = Change { mode, size, accessed, modified };
        match self.change(number.0, change) {
            Ok(attributes) => reply.attr(&NOTHING_HOLDS, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn mkdir(&self, _: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        let mut volume = self.volume();
        let mode = (mode & !umask & 0o7777) as u16;
        let node = text(name).and_then(|name| volume.make_folder((parent.0, name), mode));
        Self::entry(&mut volume, node, reply);
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        let mode = (mode & !umask & 0o7777) as u16;
        match text(name).and_then(|name| self.make(parent.0, name, mode)) {
            Ok(made) => {
                reply.created(&NOTHING_HOLDS, &made, Generation(0), FileHandle(0), FopenFlags::empty());
            }
            Err(error) => reply.error(error),
        }
    }

    fn link(&self, _: &Request, node: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let mut volume = self.volume();
        let linked = text(name).and_then(|name| volume.link(node.0, (parent.0, name))).map(|()| node.0);
        Self::entry(&mut volume, linked, reply);
    }

    fn open(&self, _: &Request, node: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.open_file(node.0) {
            Ok(()) => reply.opened(FileHandle(0), FopenFlags::empty()),
            Err(error) => reply.error(error),
        }
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
        match self.volume().read(node.0, offset as usize, size as usize) {
            Ok(bytes) => reply.data(bytes),
            Err(error) => reply.error(error),
        }
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
        match self.volume().write(node.0, offset as usize, data) {
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(error),
        }
    }

    /// The locks of a process end when it closes the file. The file stays open where another process has the handle too.
    fn flush(&self, _: &Request, node: INodeNo, _: FileHandle, owner: LockOwner, reply: ReplyEmpty) {
        let whole = Lock { node: node.0, owner: owner.0, first: 0, last: u64::MAX, exclusive: true };
        self.locks().release(whole);
        reply.ok();
    }

    fn release(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        if let Ok(node) = self.volume().node_mut(node.0) {
            node.open -= 1;
        }
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn readdir(&self, _: &Request, node: INodeNo, _: FileHandle, after: u64, mut reply: ReplyDirectory) {
        let volume = self.volume();
        let entries = match volume.list(node.0, after) {
            Ok(entries) => entries,
            Err(error) => return reply.error(error),
        };
        for (place, name, node) in entries {
            let is_folder = volume.node(node).is_ok_and(|node| node.is_folder());
            let kind = if is_folder { FileType::Directory } else { FileType::RegularFile };
            if reply.add(INodeNo(node), place, kind, name) {
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
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let rename = || {
            let (from, to) = ((parent.0, text(name)?), (new_parent.0, text(new_name)?));
            match flags.is_empty() {
                true => self.volume().rename(from, to),
                false => Err(Errno::EINVAL),
            }
        };
        done(rename(), reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(text(name).and_then(|name| self.volume().remove((parent.0, name))), reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(text(name).and_then(|name| self.volume().remove_folder((parent.0, name))), reply);
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let free = (CAPACITY - self.volume().used) / BLOCK;
        reply.statfs(CAPACITY / BLOCK, free, free, 1 << 20, 1 << 19, BLOCK as u32, 255, BLOCK as u32);
    }

    fn setxattr(
        &self,
        _: &Request,
        node: INodeNo,
        name: &OsStr,
        value: &[u8],
        _: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        let set = || match text(name)? {
            name if name.starts_with("user.") => self.volume().set_attribute(node.0, name, value),
            _ => Err(Errno::ENOTSUP),
        };
        done(set(), reply);
    }

    fn getxattr(&self, _: &Request, node: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let find = || match text(name)? {
            name if name.starts_with("user.") => {
                self.volume().attributes(node.0)?.remove(name).ok_or(Errno::NO_XATTR)
            }
            // Asked for by the kernel itself, before each write.
            _ => Err(Errno::NO_XATTR),
        };
        value(find(), size, reply);
    }

    fn listxattr(&self, _: &Request, node: INodeNo, size: u32, reply: ReplyXattr) {
        let names = self.volume().attributes(node.0).map(|attributes| {
            attributes.keys().flat_map(|name| name.bytes().chain([0])).collect::<Vec<u8>>()
        });
        value(names, size, reply);
    }

    fn removexattr(&self, _: &Request, node: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(text(name).and_then(|name| self.volume().remove_attribute(node.0, name)), reply);
    }

    fn getlk(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        owner: LockOwner,
        first: u64,
        last: u64,
        kind: i32,
        _: u32,
        reply: ReplyLock,
    ) {
        let wanted = Lock { node: node.0, owner: owner.0, first, last, exclusive: kind == WRITE_LOCK };
        match self.locks().conflict(&wanted) {
            _ if !self.has_locks => reply.error(Errno::ENOTSUP),
            Some(lock) => reply.locked(lock.first, lock.last, i32::from(lock.exclusive), 0),
            None => reply.locked(first, last, UNLOCK, 0),
        }
    }

    fn setlk(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        owner: LockOwner,
        first: u64,
        last: u64,
        kind: i32,
        _: u32,
        _: bool,
        reply: ReplyEmpty,
    ) {
        let lock = Lock { node: node.0, owner: owner.0, first, last, exclusive: kind == WRITE_LOCK };
        let set = || match kind {
            _ if !self.has_locks => Err(Errno::ENOTSUP),
            UNLOCK => {
                self.locks().release(lock);
                Ok(())
            }
            _ if self.locks().take(lock) => Ok(()),
            _ => Err(Errno::EAGAIN),
        };
        done(set(), reply);
    }
}
