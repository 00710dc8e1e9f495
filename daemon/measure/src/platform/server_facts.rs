//! Facts about a file that the server reports, and not this machine's cache.
//!
//! `identity` answers fewer questions, but about open files too, and needs nothing that a mount may not report.

use std::ffi::CStr;
use std::io;
use std::os::fd::BorrowedFd;

use super::unix::entry_kind;
use crate::parse::EntryKind;

/// Facts about a file, as the server reports them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerFacts {
    /// Kind of the entry.
    pub kind: EntryKind,
    /// Size in bytes.
    pub size: u64,
    /// Space that the file takes, in bytes.
    pub allocated_bytes: u64,
    /// Number of names of the file.
    pub links: u64,
    /// Permission bits.
    pub mode: u16,
    /// Modification time in nanoseconds since 1970 UTC.
    pub modified_ns: i64,
    /// Time of creation in nanoseconds since 1970 UTC; `None` if the mount does not report it.
    pub created_ns: Option<i64>,
}

/// Returns the facts about a name in a folder, without following links.
///
/// On macOS they come from the attribute cache if it is young: no call there asks the server regardless of it.
pub fn server_facts_at(directory: BorrowedFd<'_>, name: &CStr) -> io::Result<ServerFacts> {
    system::facts(directory, name)
}

/// Unit of the number of blocks that both systems report, in bytes (stat(2)).
const BLOCK_BYTES: u64 = 512;

#[cfg(target_os = "linux")]
mod system {
    use super::*;
    use rustix::fs::{AtFlags, FileType, StatxFlags, StatxTimestamp, statx};

    fn nanoseconds(time: &StatxTimestamp) -> i64 {
        time.tv_sec.saturating_mul(1_000_000_000).saturating_add(i64::from(time.tv_nsec))
    }

    pub fn facts(directory: BorrowedFd<'_>, name: &CStr) -> io::Result<ServerFacts> {
        let flags = AtFlags::STATX_FORCE_SYNC | AtFlags::SYMLINK_NOFOLLOW;
        let facts = statx(directory, name, flags, StatxFlags::BASIC_STATS | StatxFlags::BTIME)?;
        let has_birth = StatxFlags::from_bits_retain(facts.stx_mask).contains(StatxFlags::BTIME);
        Ok(ServerFacts {
            kind: entry_kind(FileType::from_raw_mode(facts.stx_mode.into())),
            size: facts.stx_size,
            allocated_bytes: facts.stx_blocks.saturating_mul(BLOCK_BYTES),
            links: facts.stx_nlink.into(),
            mode: facts.stx_mode & 0o7777,
            modified_ns: nanoseconds(&facts.stx_mtime),
            created_ns: has_birth.then(|| nanoseconds(&facts.stx_btime)),
        })
    }
}

#[cfg(target_os = "macos")]
mod system {
    use super::*;
    use rustix::fs::{AtFlags, FileType, statat};

    fn nanoseconds(seconds: i64, nanoseconds: i64) -> i64 {
        seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
    }

    pub fn facts(directory: BorrowedFd<'_>, name: &CStr) -> io::Result<ServerFacts> {
        let facts = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let created_ns = nanoseconds(facts.st_birthtime, facts.st_birthtime_nsec);
        Ok(ServerFacts {
            kind: entry_kind(FileType::from_raw_mode(facts.st_mode)),
            size: facts.st_size.cast_unsigned(),
            allocated_bytes: facts.st_blocks.cast_unsigned().saturating_mul(BLOCK_BYTES),
            links: facts.st_nlink.into(),
            mode: facts.st_mode & 0o7777,
            modified_ns: nanoseconds(facts.st_mtime, facts.st_mtime_nsec),
            // A file system without birth times reports 0 or -1 (xnu bsd/vfs/vfs_vnops.c:1634, vn_stat).
            created_ns: Some(created_ns).filter(|created| *created > 0),
        })
    }
}
