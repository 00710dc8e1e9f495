//! What a file is before it is written in place: whether it is longhaul's alone.
//!
//! Linux knows link counts by two ways (`statx(2)`). Measured over Linux 6.1 and Samba 4.22: an open over SMB 2 and 3 sets
//! the count that the client remembers to 1, so that only a question to the server (`STATX_FORCE_SYNC`) tells the truth;
//! over NFS and SMB 1 and on local disks what an open brings along is right.

use std::ffi::CStr;
use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::AtFlags;

/// What a file is, as far as it decides whether it may be written in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    /// Whether it is a regular file: no folder, link, pipe, socket or device.
    pub is_regular: bool,
    /// How many names lead to it: hard links.
    pub links: u64,
    /// Its size in bytes.
    pub size: u64,
    /// The number of the file system that it lies on.
    pub device: u64,
}

/// Whom to ask about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// This machine's memory: no request crosses the wire. On macOS the attribute cache, which may ask when it is old.
    Client,
    /// The server. On macOS the attribute cache: no call there asks the server whatever the cache holds.
    Server,
}

/// The identity of an open file.
pub fn identity_of(file: BorrowedFd<'_>, source: Source) -> io::Result<FileIdentity> {
    system::identity(file, c"", source)
}

/// The identity of a name in a folder, following nothing and opening nothing: a pipe cannot block it.
pub fn identity_at(directory: BorrowedFd<'_>, name: &CStr, source: Source) -> io::Result<FileIdentity> {
    system::identity(directory, name, source)
}

/// Gives a file in a folder a second name there.
pub fn link_at(directory: BorrowedFd<'_>, from: &CStr, to: &CStr) -> io::Result<()> {
    Ok(rustix::fs::linkat(directory, from, directory, to, AtFlags::empty())?)
}

#[cfg(target_os = "linux")]
mod system {
    use super::*;
    use rustix::fs::{FileType, StatxFlags, makedev, statx};

    pub fn identity(at: BorrowedFd<'_>, name: &CStr, source: Source) -> io::Result<FileIdentity> {
        let sync = match source {
            Source::Client => AtFlags::STATX_DONT_SYNC,
            Source::Server => AtFlags::STATX_FORCE_SYNC,
        };
        let flags = sync | AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH;
        let facts = statx(at, name, flags, StatxFlags::BASIC_STATS)?;
        Ok(FileIdentity {
            is_regular: FileType::from_raw_mode(facts.stx_mode.into()) == FileType::RegularFile,
            links: facts.stx_nlink.into(),
            size: facts.stx_size,
            device: makedev(facts.stx_dev_major, facts.stx_dev_minor),
        })
    }
}

#[cfg(target_os = "macos")]
mod system {
    use super::*;
    use rustix::fs::{FileType, fstat, statat};

    pub fn identity(at: BorrowedFd<'_>, name: &CStr, _: Source) -> io::Result<FileIdentity> {
        let facts = match name.is_empty() {
            true => fstat(at)?,
            false => statat(at, name, AtFlags::SYMLINK_NOFOLLOW)?,
        };
        Ok(FileIdentity {
            is_regular: FileType::from_raw_mode(facts.st_mode) == FileType::RegularFile,
            links: facts.st_nlink.into(),
            size: facts.st_size.cast_unsigned(),
            device: facts.st_dev as u64,
        })
    }
}
