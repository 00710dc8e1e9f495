//! The requests of the kernel: each is answered by [`Answers`] and reported to the recorder before the answer leaves.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use fuser::{
    AccessFlags, BsdFileFlags, Errno, FileHandle, Filesystem, FopenFlags, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyLock, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow,
    WriteFlags,
};
use rustix::fs::SeekFrom;

use super::answers::{Answers, Change};
use super::attributes::kind;
use super::file_answers::{LockRequest, Use};
use super::folder::ListedName;
use super::locks::Lock;
use super::node_answers::NewAttribute;
use super::replies::{NOT_CACHED, empty, entry, value};
use super::tree::NameIn;

/// The file system that the kernel asks.
pub struct Requests {
    /// The work behind the requests.
    pub answers: Arc<Answers>,
    /// Flags of each opened file.
    pub opened: FopenFlags,
}

impl Filesystem for Requests {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Without this, a program that opens with O_TRUNC makes two requests.
        let _ = config.add_capabilities(InitFlags::FUSE_ATOMIC_O_TRUNC);
        let _ = config.add_capabilities(InitFlags::FUSE_POSIX_LOCKS);
        let _ = config.add_capabilities(InitFlags::FUSE_PARALLEL_DIROPS);
        let _ = config.set_max_write(1 << 20);
        // Reads arrive as programs make them, if files can be mapped to memory nevertheless (Linux 6.6).
        if config.add_capabilities(InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP).is_ok() {
            self.opened = FopenFlags::FOPEN_DIRECT_IO;
        }
        Ok(())
    }

    fn destroy(&mut self) {
        self.answers.recorder.finish();
    }

    fn lookup(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        entry(self.answers.look_up(request.pid(), NameIn::new(parent.0, name)), reply);
    }

    fn forget(&self, _request: &Request, node: INodeNo, references: u64) {
        self.answers.tree.write().forget(node.0, references);
    }

    fn getattr(&self, request: &Request, node: INodeNo, handle: Option<FileHandle>, reply: ReplyAttr) {
        match self.answers.get_attributes(request.pid(), node.0, handle.map(|handle| handle.0)) {
            Ok(attributes) => reply.attr(&NOT_CACHED, &attributes),
            Err(error) => reply.error(error.into()),
        }
    }

    fn setattr(
        &self,
        request: &Request,
        node: INodeNo,
        mode: Option<u32>,
        user: Option<u32>,
        group: Option<u32>,
        size: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _changed: Option<SystemTime>,
        handle: Option<FileHandle>,
        _created: Option<SystemTime>,
        _attributes_changed: Option<SystemTime>,
        _backed_up: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let handle = handle.map(|handle| handle.0);
        let change = Change { mode, user, group, size, accessed, modified, handle };
        match self.answers.change(request.pid(), node.0, &change) {
            Ok(attributes) => reply.attr(&NOT_CACHED, &attributes),
            Err(error) => reply.error(error.into()),
        }
    }

    fn readlink(&self, request: &Request, node: INodeNo, reply: ReplyData) {
        match self.answers.read_link(request.pid(), node.0) {
            Ok(target) => reply.data(&target),
            Err(error) => reply.error(error.into()),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _mask: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        let name = NameIn::new(parent.0, name);
        entry(self.answers.make_node(request.pid(), name, mode, device), reply);
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _mask: u32,
        reply: ReplyEntry,
    ) {
        entry(self.answers.make_folder(request.pid(), NameIn::new(parent.0, name), mode), reply);
    }

    fn unlink(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(self.answers.remove_file(request.pid(), NameIn::new(parent.0, name)), reply);
    }

    fn rmdir(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(self.answers.remove_folder(request.pid(), NameIn::new(parent.0, name)), reply);
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        entry(self.answers.make_link(request.pid(), NameIn::new(parent.0, name), target), reply);
    }

    fn rename(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let (from, to) = (NameIn::new(parent.0, name), NameIn::new(new_parent.0, new_name));
        let flags = rustix::fs::RenameFlags::from_bits_retain(flags.bits());
        empty(self.answers.move_name(request.pid(), &from, to, flags), reply);
    }

    fn link(
        &self,
        request: &Request,
        node: INodeNo,
        new_parent: INodeNo,
        new_name: &OsStr,
        reply: ReplyEntry,
    ) {
        let name = NameIn::new(new_parent.0, new_name);
        entry(self.answers.make_name(request.pid(), node.0, name), reply);
    }

    fn open(&self, request: &Request, node: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match self.answers.open_node(request.pid(), node.0, flags.0) {
            Ok(handle) => reply.opened(FileHandle(handle), self.opened),
            Err(error) => reply.error(error.into()),
        }
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _mask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        match self.answers.create_open(request.pid(), NameIn::new(parent.0, name), flags, mode) {
            Ok((found, handle)) => {
                let generation = fuser::Generation(found.entry.generation);
                reply.created(&NOT_CACHED, &found.attributes, generation, FileHandle(handle), self.opened);
            }
            Err(error) => reply.error(error.into()),
        }
    }

    fn read(
        &self,
        request: &Request,
        _node: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let by = Use { thread: request.pid(), handle: handle.0 };
        match self.answers.read(by, offset, size) {
            Ok(bytes) => reply.data(&bytes),
            Err(error) => reply.error(error.into()),
        }
    }

    fn write(
        &self,
        request: &Request,
        _node: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let by = Use { thread: request.pid(), handle: handle.0 };
        match self.answers.write(by, offset, data) {
            Ok(written) => reply.written(written as u32),
            Err(error) => reply.error(error.into()),
        }
    }

    fn flush(
        &self,
        request: &Request,
        _node: INodeNo,
        handle: FileHandle,
        owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        let by = Use { thread: request.pid(), handle: handle.0 };
        empty(self.answers.flush(by, owner.0), reply);
    }

    fn release(
        &self,
        request: &Request,
        _node: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.answers.release(Use { thread: request.pid(), handle: handle.0 });
        reply.ok();
    }

    fn fsync(
        &self,
        request: &Request,
        _node: INodeNo,
        handle: FileHandle,
        only_data: bool,
        reply: ReplyEmpty,
    ) {
        let by = Use { thread: request.pid(), handle: handle.0 };
        empty(self.answers.sync(by, only_data), reply);
    }

    fn opendir(&self, request: &Request, node: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match self.answers.open_node(request.pid(), node.0, flags.0 | libc::O_DIRECTORY) {
            Ok(handle) => reply.opened(FileHandle(handle), FopenFlags::empty()),
            Err(error) => reply.error(error.into()),
        }
    }

    fn readdir(
        &self,
        request: &Request,
        _node: INodeNo,
        handle: FileHandle,
        place: u64,
        mut reply: ReplyDirectory,
    ) {
        let by = Use { thread: request.pid(), handle: handle.0 };
        let mut add = |number, one: &ListedName, next| {
            reply.add(INodeNo(number), next, kind(one.kind), OsStr::from_bytes(&one.name))
        };
        match self.answers.list(by, place, &mut add) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error.into()),
        }
    }

    fn releasedir(
        &self,
        request: &Request,
        _node: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.answers.release(Use { thread: request.pid(), handle: handle.0 });
        reply.ok();
    }

    fn fsyncdir(
        &self,
        request: &Request,
        node: INodeNo,
        handle: FileHandle,
        only_data: bool,
        reply: ReplyEmpty,
    ) {
        self.fsync(request, node, handle, only_data, reply);
    }

    fn statfs(&self, request: &Request, node: INodeNo, reply: ReplyStatfs) {
        match self.answers.space(request.pid(), node.0) {
            Ok(found) => reply.statfs(
                found.f_blocks,
                found.f_bfree,
                found.f_bavail,
                found.f_files,
                found.f_ffree,
                found.f_bsize as u32,
                found.f_namemax as u32,
                found.f_frsize as u32,
            ),
            Err(error) => reply.error(error.into()),
        }
    }

    fn setxattr(
        &self,
        request: &Request,
        node: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        let new = NewAttribute { name, value, flags };
        empty(self.answers.set_extended(request.pid(), node.0, &new), reply);
    }

    fn getxattr(&self, request: &Request, node: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        value(self.answers.get_extended(request.pid(), node.0, name), size, reply);
    }

    fn listxattr(&self, request: &Request, node: INodeNo, size: u32, reply: ReplyXattr) {
        value(self.answers.list_extended(request.pid(), node.0), size, reply);
    }

    fn removexattr(&self, request: &Request, node: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(self.answers.remove_extended(request.pid(), node.0, name), reply);
    }

    fn access(&self, request: &Request, node: INodeNo, mask: AccessFlags, reply: ReplyEmpty) {
        empty(self.answers.may_access(request.pid(), node.0, mask.bits()), reply);
    }

    fn getlk(
        &self,
        _request: &Request,
        _node: INodeNo,
        handle: FileHandle,
        owner: LockOwner,
        start: u64,
        end: u64,
        kind: i32,
        _process: u32,
        reply: ReplyLock,
    ) {
        let wanted = LockRequest { lock: Lock { start, end, kind }, owner: owner.0, waits: false };
        match self.answers.conflict(handle.0, wanted) {
            // Locks belong to open files here, so the process that holds one is unknown: 0.
            Ok(found) => reply.locked(found.start, found.end, found.kind, 0),
            Err(error) => reply.error(error.into()),
        }
    }

    fn setlk(
        &self,
        request: &Request,
        _node: INodeNo,
        handle: FileHandle,
        owner: LockOwner,
        start: u64,
        end: u64,
        kind: i32,
        _process: u32,
        waits: bool,
        reply: ReplyEmpty,
    ) {
        let by = Use { thread: request.pid(), handle: handle.0 };
        let wanted = LockRequest { lock: Lock { start, end, kind }, owner: owner.0, waits };
        let answers = Arc::clone(&self.answers);
        let set = move || empty(answers.lock(by, wanted), reply);
        // A program that waits must not keep a thread from answering the program that holds the lock.
        if waits { drop(std::thread::spawn(set)) } else { set() }
    }

    fn fallocate(
        &self,
        request: &Request,
        _node: INodeNo,
        handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let by = Use { thread: request.pid(), handle: handle.0 };
        empty(self.answers.allocate(by, offset..offset.saturating_add(length), mode), reply);
    }

    fn lseek(
        &self,
        _request: &Request,
        _node: INodeNo,
        handle: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let to = match whence {
            libc::SEEK_DATA => SeekFrom::Data(offset.cast_unsigned()),
            libc::SEEK_HOLE => SeekFrom::Hole(offset.cast_unsigned()),
            _ => return reply.error(Errno::EINVAL),
        };
        match self.answers.seek(handle.0, to) {
            Ok(found) => reply.offset(found.cast_signed()),
            Err(error) => reply.error(error.into()),
        }
    }
}
