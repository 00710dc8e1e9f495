//! Facts about a file, from this machine's memory or from the server.
//!
//! On Linux, `statx(2)` returns them from the client's cache or from the server. Measured with Linux 6.1 and Samba
//! 4.22: an open over SMB 2 and 3 sets the cached link count to 1, so only a query to the server
//! (`STATX_FORCE_SYNC`) returns the true count; over NFS and SMB 1 and on local disks the count that comes with an
//! open is correct. On macOS all facts come from the attribute cache, which may query the server if an entry is
//! old: no call there queries the server regardless of it.

use std::ffi::CStr;
use std::io;
use std::os::fd::BorrowedFd;

use super::unix::entry_kind;
use crate::parse::EntryKind;

/// Facts about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileFacts {
    /// Kind of the entry.
    pub kind: EntryKind,
    /// Size in bytes.
    pub size: u64,
    /// Space that the file takes, in bytes.
    pub allocated_bytes: u64,
    /// Number of hard links, which are names of the same file.
    pub links: u64,
    /// Device number of the file system that holds the file.
    pub device: u64,
    /// Permission bits.
    pub mode: u16,
    /// Modification time in nanoseconds since 1970 UTC.
    pub modified_ns: i64,
    /// Time of creation in nanoseconds since 1970 UTC; `None` if the mount does not report it.
    pub created_ns: Option<i64>,
}

/// Returns the facts about an open file from this machine's memory.
pub fn open_file_facts(file: BorrowedFd<'_>) -> io::Result<FileFacts> {
    system::open_file_facts(file)
}

/// Returns the facts about a name in a folder from the server. Follows no links and opens no file, so that a pipe
/// cannot block the call.
pub fn server_facts_at(directory: BorrowedFd<'_>, name: &CStr) -> io::Result<FileFacts> {
    system::server_facts_at(directory, name)
}

/// Unit of the number of blocks that both systems report, in bytes (stat(2)).
const BLOCK_BYTES: u64 = 512;

fn nanoseconds(seconds: i64, nanoseconds: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
}

#[cfg(target_os = "linux")]
mod system {
    use super::*;
    use rustix::fs::{AtFlags, FileType, StatxFlags, makedev, statx};

    pub fn open_file_facts(file: BorrowedFd<'_>) -> io::Result<FileFacts> {
        facts(file, c"", AtFlags::STATX_DONT_SYNC | AtFlags::EMPTY_PATH)
    }

    pub fn server_facts_at(directory: BorrowedFd<'_>, name: &CStr) -> io::Result<FileFacts> {
        facts(directory, name, AtFlags::STATX_FORCE_SYNC | AtFlags::SYMLINK_NOFOLLOW)
    }

    fn facts(at: BorrowedFd<'_>, name: &CStr, flags: AtFlags) -> io::Result<FileFacts> {
        let facts = statx(at, name, flags, StatxFlags::BASIC_STATS | StatxFlags::BTIME)?;
        let has_birth = StatxFlags::from_bits_retain(facts.stx_mask).contains(StatxFlags::BTIME);
        let (modified, created) = (facts.stx_mtime, facts.stx_btime);
        Ok(FileFacts {
            kind: entry_kind(FileType::from_raw_mode(facts.stx_mode.into())),
            size: facts.stx_size,
            allocated_bytes: facts.stx_blocks.saturating_mul(BLOCK_BYTES),
            links: facts.stx_nlink.into(),
            device: makedev(facts.stx_dev_major, facts.stx_dev_minor),
            mode: facts.stx_mode & 0o7777,
            modified_ns: nanoseconds(modified.tv_sec, modified.tv_nsec.into()),
            created_ns: has_birth.then(|| nanoseconds(created.tv_sec, created.tv_nsec.into())),
        })
    }
}

#[cfg(target_os = "macos")]
mod system {
    use super::*;
    use rustix::fs::{AtFlags, FileType, Stat, fstat, statat};

    pub fn open_file_facts(file: BorrowedFd<'_>) -> io::Result<FileFacts> {
        Ok(facts(&fstat(file)?))
    }

    pub fn server_facts_at(directory: BorrowedFd<'_>, name: &CStr) -> io::Result<FileFacts> {
        Ok(facts(&statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    fn facts(facts: &Stat) -> FileFacts {
        let created_ns = nanoseconds(facts.st_birthtime, facts.st_birthtime_nsec);
        FileFacts {
            kind: entry_kind(FileType::from_raw_mode(facts.st_mode)),
            size: facts.st_size.cast_unsigned(),
            allocated_bytes: facts.st_blocks.cast_unsigned().saturating_mul(BLOCK_BYTES),
            links: facts.st_nlink.into(),
            device: facts.st_dev as u64,
            mode: facts.st_mode & 0o7777,
            modified_ns: nanoseconds(facts.st_mtime, facts.st_mtime_nsec),
            // A file system without birth times reports 0 or -1 (xnu bsd/vfs/vfs_vnops.c:1634, vn_stat).
            created_ns: Some(created_ns).filter(|created| *created > 0),
        }
    }
}
