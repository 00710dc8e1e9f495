//! Answers the FUSE requests of the kernel.

use std::ffi::OsStr;
use std::time::SystemTime;

use fuser::{
    Errno, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyLock, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};

use super::apple_double::Attributes;
use super::locks::Lock;
use super::server::{BLOCK, Change, NO_CACHE, Server, attributes, done, facts, text, value};
use super::volume::{CAPACITY, Entry, ROOT};
use super::{Quirk, RequestKind};

/// Value of `F_WRLCK` on Linux.
const WRITE_LOCK: i32 = 1;
/// Value of `F_UNLCK` on Linux.
const UNLOCK: i32 = 2;

impl Filesystem for Server {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        if self.volume().has(Quirk::AppleDouble) {
            let _ = config.add_capabilities(InitFlags::FUSE_POSIX_LOCKS);
        }
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let turn = self.begin(RequestKind::Other, parent);
        turn.answer(reply, |volume| volume.find((parent.0, text(name)?)));
    }

    fn forget(&self, _: &Request, node: INodeNo, times: u64) {
        if node.0 != ROOT {
            self.volume().forget(node.0, times);
        }
    }

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let turn = self.begin(RequestKind::Attributes, node);
        attributes(turn.volume().and_then(|volume| facts(&volume, node.0)), reply);
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
        let turn = self.begin(RequestKind::Other, number);
        let mode = mode.filter(|_| !self.volume().has(Quirk::LosesMetadata));
        attributes(turn.change(number.0, Change { mode, size, accessed, modified }), reply);
    }

    fn mkdir(&self, _: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        let turn = self.begin(RequestKind::Other, parent);
        let mode = (mode & !umask & 0o7777) as u16;
        turn.answer(reply, |volume| volume.make_folder((parent.0, text(name)?), mode));
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
        let turn = self.begin(RequestKind::Open, parent);
        let mode = (mode & !umask & 0o7777) as u16;
        match text(name).and_then(|name| turn.make(parent.0, name, mode)) {
            Ok(made) => {
                reply.created(&NO_CACHE, &made, Generation(0), FileHandle(0), FopenFlags::empty());
            }
            Err(error) => reply.error(error),
        }
    }

    fn link(&self, _: &Request, node: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let turn = self.begin(RequestKind::Other, node);
        turn.answer(reply, |volume| volume.link(node.0, (parent.0, text(name)?)).map(|()| node.0));
    }

    fn open(&self, _: &Request, node: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let turn = self.begin(RequestKind::Open, node);
        match turn.open(node.0) {
            Ok(()) => reply.opened(FileHandle(0), self.open_flags()),
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
        let turn = self.begin(RequestKind::Read, node);
        match turn.volume() {
            Ok(volume) => match volume.read(node.0, offset as usize, size as usize) {
                Ok(bytes) => reply.data(bytes),
                Err(error) => reply.error(error),
            },
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
        let turn = self.begin(RequestKind::Write, node);
        match turn.volume().and_then(|mut volume| volume.write(node.0, offset as usize, data)) {
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(error),
        }
    }

    /// Releases the locks of the process, because POSIX locks end when the process closes the file. The file itself
    /// stays open while another process shares the handle.
    fn flush(&self, _: &Request, node: INodeNo, _: FileHandle, owner: LockOwner, reply: ReplyEmpty) {
        let _turn = self.begin(RequestKind::Close, node);
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
        let _turn = self.begin(RequestKind::Close, node);
        if let Ok(node) = self.volume().node_mut(node.0) {
            node.open -= 1;
        }
        reply.ok();
    }

    fn fsync(&self, _: &Request, node: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let turn = self.begin(RequestKind::Other, node);
        done(turn.volume().map(drop), reply);
    }

    fn fsyncdir(&self, _: &Request, node: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let turn = self.begin(RequestKind::Other, node);
        done(turn.volume().map(drop), reply);
    }

    fn opendir(&self, _: &Request, node: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.begin(RequestKind::OpenFolder, node).volume() {
            Ok(_) => reply.opened(FileHandle(0), FopenFlags::empty()),
            Err(error) => reply.error(error),
        }
    }

    fn readdir(&self, _: &Request, node: INodeNo, _: FileHandle, after: u64, mut reply: ReplyDirectory) {
        let turn = self.begin(RequestKind::Other, node);
        let entries = match turn.volume().and_then(|volume| volume.list(node.0, after)) {
            Ok(entries) => entries,
            Err(error) => return reply.error(error),
        };
        for Entry { place, name, node, is_folder } in entries {
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
        let turn = self.begin(RequestKind::Other, parent);
        let rename = || {
            let (from, to) = ((parent.0, text(name)?), (new_parent.0, text(new_name)?));
            match flags.is_empty() {
                true => turn.volume()?.rename(from, to),
                false => Err(Errno::EINVAL),
            }
        };
        done(rename(), reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let turn = self.begin(RequestKind::Other, parent);
        done(text(name).and_then(|name| turn.volume()?.remove((parent.0, name))), reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let turn = self.begin(RequestKind::Other, parent);
        done(text(name).and_then(|name| turn.volume()?.remove_folder((parent.0, name))), reply);
    }

    fn statfs(&self, _: &Request, node: INodeNo, reply: ReplyStatfs) {
        let turn = self.begin(RequestKind::Other, node);
        let free = match turn.volume() {
            Ok(volume) => (CAPACITY - volume.used) / BLOCK,
            Err(error) => return reply.error(error),
        };
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
        let turn = self.begin(RequestKind::Other, node);
        let set = || match (turn.volume_with_attributes()?, text(name)?) {
            (volume, _) if volume.has(Quirk::LosesMetadata) => Ok(()),
            (mut volume, name) if name.starts_with("user.") => volume.set_attribute(node.0, name, value),
            _ => Err(Errno::ENOTSUP),
        };
        done(set(), reply);
    }

    fn getxattr(&self, _: &Request, node: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let turn = self.begin(RequestKind::Other, node);
        let find = || match (turn.volume_with_attributes()?, text(name)?) {
            (volume, name) if name.starts_with("user.") => {
                volume.attributes(node.0)?.remove(name).ok_or(Errno::NO_XATTR)
            }
            // The kernel itself requests other attributes, such as `security.capability`, before each write.
            _ => Err(Errno::NO_XATTR),
        };
        value(find(), size, reply);
    }

    fn listxattr(&self, _: &Request, node: INodeNo, size: u32, reply: ReplyXattr) {
        let turn = self.begin(RequestKind::Other, node);
        let found = turn.volume_with_attributes().and_then(|volume| volume.attributes(node.0));
        let names = |attributes: Attributes| {
            attributes.keys().flat_map(|name| name.bytes().chain([0])).collect::<Vec<u8>>()
        };
        value(found.map(names), size, reply);
    }

    fn removexattr(&self, _: &Request, node: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let turn = self.begin(RequestKind::Other, node);
        let remove = || turn.volume_with_attributes()?.remove_attribute(node.0, text(name)?);
        done(remove(), reply);
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
        let _turn = self.begin(RequestKind::Other, node);
        let wanted = Lock { node: node.0, owner: owner.0, first, last, exclusive: kind == WRITE_LOCK };
        match self.locks().conflict(&wanted) {
            _ if self.volume().has(Quirk::NoLocks) => reply.error(Errno::ENOTSUP),
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
        let _turn = self.begin(RequestKind::Other, node);
        let lock = Lock { node: node.0, owner: owner.0, first, last, exclusive: kind == WRITE_LOCK };
        let set = || match kind {
            _ if self.volume().has(Quirk::NoLocks) => Err(Errno::ENOTSUP),
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
