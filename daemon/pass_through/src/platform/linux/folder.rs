//! The folder that is shown, through its directory handle: no path leads out of it, and no symbolic link is followed, because the
//! kernel follows links itself before it asks.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, RawDir, ResolveFlags, Stat, openat2};

use super::tree::Identity;

/// Size of the buffer for names, as the C library uses it, so that as many names come in one batch.
const NAMES_BUFFER: usize = 32 << 10;

/// The folder that is shown.
#[derive(Debug)]
pub struct Folder {
    root: OwnedFd,
}

/// A name in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedName {
    /// The name.
    pub name: Vec<u8>,
    /// Inode number.
    pub inode: u64,
    /// Kind of file.
    pub kind: rustix::fs::FileType,
}

impl Folder {
    /// Opens the folder.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { root: openat2(CWD, path, flags, Mode::empty(), ResolveFlags::empty())? })
    }

    /// Opens a file below the folder.
    pub fn open_file(&self, path: &Path, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let below = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        Ok(openat2(&self.root, path, flags, mode, below)?)
    }

    /// Returns a handle of a file or link that can be used to read and change attributes, not content.
    pub fn handle(&self, path: &Path) -> io::Result<OwnedFd> {
        self.open_file(path, OFlags::PATH, Mode::empty())
    }
}

/// Returns a path that leads to an open file, for calls that do not accept handles of this kind.
pub fn magic_path(file: &impl AsFd) -> String {
    format!("/proc/self/fd/{}", file.as_fd().as_raw_fd())
}

/// Opens a file again through a handle of it.
pub fn reopen(handle: &impl AsFd, flags: OFlags) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(CWD, magic_path(handle), flags | OFlags::CLOEXEC, Mode::empty())?)
}

/// Returns the identity of a file.
pub fn identity(found: &Stat) -> Identity {
    Identity { device: found.st_dev, inode: found.st_ino }
}

/// Reads one batch of names of an open folder; empty at its end.
pub fn read_names(folder: &impl AsFd) -> io::Result<Vec<ListedName>> {
    let mut buffer = [MaybeUninit::uninit(); NAMES_BUFFER];
    let mut reader = RawDir::new(folder.as_fd(), &mut buffer);
    let mut names = vec![];
    while let Some(entry) = reader.next() {
        let entry = entry?;
        names.push(ListedName {
            name: entry.file_name().to_bytes().to_owned(),
            inode: entry.ino(),
            kind: entry.file_type(),
        });
        if reader.is_buffer_empty() {
            break;
        }
    }
    Ok(names)
}
