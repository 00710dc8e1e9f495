//! The work behind each request of the kernel, without its form.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fuser::{FileAttr, INodeNo, TimeOrNow};
use longhaul_recording::TraceAction;
use parking_lot::RwLock;
use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, Stat, Uid};

use super::attributes::{attributes, open_flags, result_of, timestamps};
use super::folder::{Folder, identity, magic_path, reopen};
use super::open_files::{OpenFile, OpenFiles};
use super::recorder::{Recorder, Request, Subject};
use super::tree::{Entry, NameIn, Tree};

/// The shown folder with all that the kernel knows of it.
pub struct Answers {
    pub folder: Folder,
    /// Absolute path of the folder, for the operations that are reported.
    pub shown: PathBuf,
    pub tree: RwLock<Tree>,
    /// Held for reading while a path is used, and for writing while a name changes, so that no path is out of date.
    pub renames: RwLock<()>,
    pub files: OpenFiles,
    pub recorder: Arc<Recorder>,
}

/// A file that the kernel was told of.
pub struct FoundEntry {
    pub attributes: FileAttr,
    pub entry: Entry,
}

/// Attributes to set; an absent one stays as it is.
pub struct Change {
    pub mode: Option<u32>,
    pub user: Option<u32>,
    pub group: Option<u32>,
    pub size: Option<u64>,
    pub accessed: Option<TimeOrNow>,
    pub modified: Option<TimeOrNow>,
    /// The open file through which the size is set, if there is one.
    pub handle: Option<u64>,
}

/// A handle of a file: one of its own, or that of a program that has it open.
pub enum NodeHandle {
    Own(OwnedFd),
    Open(Arc<OpenFile>),
}

impl AsFd for NodeHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Own(file) => file.as_fd(),
            Self::Open(file) => file.as_fd(),
        }
    }
}

impl Answers {
    /// Returns the path of a file relative to the folder.
    fn path(&self, number: u64) -> io::Result<PathBuf> {
        self.tree.read().path(number).ok_or_else(|| rustix::io::Errno::NOENT.into())
    }

    /// Returns the path of a name relative to the folder.
    pub fn path_of_name(&self, name: &NameIn) -> io::Result<PathBuf> {
        self.tree.read().path_of_name(name).ok_or_else(|| rustix::io::Errno::NOENT.into())
    }

    /// Returns a handle of a file. A file without a name is reached through a program that has it open.
    pub fn handle(&self, number: u64) -> io::Result<NodeHandle> {
        let _unchanged = self.renames.read();
        match self.path(number) {
            Ok(path) => Ok(NodeHandle::Own(self.folder.handle(&path)?)),
            Err(error) => self.latest_opening(number).map(NodeHandle::Open).ok_or(error),
        }
    }

    /// Returns the latest opening of a file.
    fn latest_opening(&self, number: u64) -> Option<Arc<OpenFile>> {
        self.files.handle_of(number, |_| true).and_then(|handle| self.files.get(handle).ok())
    }

    /// Returns a handle of a file with these flags.
    pub fn open(&self, number: u64, flags: OFlags) -> io::Result<u64> {
        let _unchanged = self.renames.read();
        let file = match self.path(number) {
            Ok(path) => self.folder.open_file(&path, flags, Mode::empty())?,
            // Not through `handle`: its lock would wait for a rename, and that for the lock of this function.
            Err(error) => reopen(&self.latest_opening(number).ok_or(error)?, flags)?,
        };
        Ok(self.files.add(file, number))
    }

    /// Returns the absolute path of a path relative to the folder.
    fn absolute(&self, path: &Path) -> Vec<u8> {
        let path = if path == Path::new(".") { self.shown.clone() } else { self.shown.join(path) };
        path.as_os_str().as_bytes().to_owned()
    }

    /// Returns the absolute path of a file, if it has one.
    pub fn absolute_path(&self, number: u64) -> Option<Vec<u8>> {
        self.path(number).ok().map(|path| self.absolute(&path))
    }

    /// Returns the absolute path of a name.
    pub fn absolute_name(&self, name: &NameIn) -> Option<Vec<u8>> {
        self.path_of_name(name).ok().map(|path| self.absolute(&path))
    }

    /// Ends a request about a file, as an operation on its path.
    pub fn end_on_file<T>(
        &self,
        request: Request<'_>,
        number: u64,
        answer: &io::Result<T>,
        action: impl for<'path> FnOnce(&'path [u8]) -> TraceAction<'path>,
    ) {
        let path = self.absolute_path(number);
        request.end(Subject::File(number), result_of(answer), path.as_deref().map(action));
    }

    /// Ends a request about a name, as an operation on its path.
    pub fn end_on_name<T>(
        &self,
        request: Request<'_>,
        name: NameIn,
        answer: &io::Result<T>,
        action: impl for<'path> FnOnce(&'path [u8]) -> TraceAction<'path>,
    ) {
        let path = self.absolute_name(&name);
        request.end(Subject::Name(name), result_of(answer), path.as_deref().map(action));
    }

    /// Looks a name up, and counts the reference that the kernel then holds.
    pub fn find(&self, name: &NameIn) -> io::Result<FoundEntry> {
        let found = {
            let _unchanged = self.renames.read();
            self.folder.handle(&self.path_of_name(name)?).and_then(|file| Ok(rustix::fs::fstat(&file)?))
        };
        match found {
            Ok(found) => Ok(self.remember(name, &found)),
            Err(error) => {
                if error.raw_os_error() == Some(libc::ENOENT) {
                    self.tree.write().removed(name);
                }
                Err(error)
            }
        }
    }

    fn remember(&self, name: &NameIn, found: &Stat) -> FoundEntry {
        let entry = self.tree.write().found(name.clone(), identity(found));
        FoundEntry { attributes: attributes(found, entry.number), entry }
    }

    /// Creates something under a name with a call that gets the handle of the folder, and returns what was created.
    pub fn create(
        &self,
        name: &NameIn,
        call: impl FnOnce(NodeHandle) -> rustix::io::Result<()>,
    ) -> io::Result<FoundEntry> {
        call(self.handle(name.folder)?)?;
        self.find(name)
    }

    /// Creates and opens a file.
    pub fn create_file(&self, name: &NameIn, flags: i32, mode: u32) -> io::Result<(FoundEntry, u64)> {
        let file = {
            let _unchanged = self.renames.read();
            let creation = OFlags::from_bits_retain(flags.cast_unsigned()) & (OFlags::CREATE | OFlags::EXCL);
            let (path, mode) = (self.path_of_name(name)?, Mode::from_raw_mode(mode & 0o7777));
            self.folder.open_file(&path, open_flags(flags) | creation, mode)?
        };
        let found = self.remember(name, &rustix::fs::fstat(&file)?);
        let handle = self.files.add(file, found.entry.number);
        Ok((found, handle))
    }

    /// Removes a name.
    pub fn remove(&self, name: &NameIn, flags: AtFlags) -> io::Result<()> {
        let _only = self.renames.write();
        let folder = self.folder.handle(&self.path(name.folder)?)?;
        rustix::fs::unlinkat(&folder, &name.name, flags)?;
        self.tree.write().removed(name);
        Ok(())
    }

    /// Renames a file.
    pub fn rename(&self, from: &NameIn, to: &NameIn, flags: rustix::fs::RenameFlags) -> io::Result<()> {
        let _only = self.renames.write();
        let [old, new] = [from, to].map(|name| self.folder.handle(&self.path(name.folder)?));
        rustix::fs::renameat_with(old?, &from.name, new?, &to.name, flags)?;
        let mut tree = self.tree.write();
        match flags.contains(rustix::fs::RenameFlags::EXCHANGE) {
            true => tree.exchanged(from, to),
            false => tree.renamed(from, to.clone()),
        }
        Ok(())
    }

    /// Returns the attributes of a file, through an open handle if one is given.
    pub fn attributes(&self, number: u64, open: Option<u64>) -> io::Result<FileAttr> {
        let handle = match open {
            Some(handle) => NodeHandle::Open(self.files.get(handle)?),
            None => self.handle(number)?,
        };
        Ok(FileAttr { ino: INodeNo(number), ..attributes(&rustix::fs::fstat(&handle)?, number) })
    }

    /// Sets attributes.
    pub fn set_attributes(&self, number: u64, change: &Change) -> io::Result<FileAttr> {
        let open = change.handle.and_then(|handle| self.files.get(handle).ok());
        let handle = open.map_or_else(|| self.handle(number), |open| Ok(NodeHandle::Open(open)))?;
        let path = magic_path(&handle);
        if let Some(mode) = change.mode {
            rustix::fs::chmod(&path, Mode::from_raw_mode(mode & 0o7777))?;
        }
        if change.user.is_some() || change.group.is_some() {
            let (user, group) = (change.user.map(Uid::from_raw), change.group.map(Gid::from_raw));
            rustix::fs::chownat(&handle, "", user, group, AtFlags::EMPTY_PATH)?;
        }
        if let Some(size) = change.size {
            set_size(&handle, size)?;
        }
        if change.accessed.is_some() || change.modified.is_some() {
            set_times(&handle, change)?;
        }
        Ok(attributes(&rustix::fs::fstat(&handle)?, number))
    }
}

fn set_size(handle: &NodeHandle, size: u64) -> io::Result<()> {
    match handle {
        NodeHandle::Open(file) => Ok(rustix::fs::ftruncate(file, size)?),
        NodeHandle::Own(file) => Ok(rustix::fs::ftruncate(reopen(file, OFlags::WRONLY)?, size)?),
    }
}

/// The times of a symbolic link cannot be set through `/proc`, which leads to the link's own target.
fn set_times(handle: &NodeHandle, change: &Change) -> io::Result<()> {
    let times = timestamps(change.accessed, change.modified);
    match rustix::fs::utimensat(handle, "", &times, AtFlags::EMPTY_PATH) {
        // Before Linux 5.8, an empty path was refused here.
        Err(rustix::io::Errno::INVAL) => {
            Ok(rustix::fs::utimensat(CWD, magic_path(handle), &times, AtFlags::empty())?)
        }
        done => Ok(done?),
    }
}
