//! Platform calls on macOS that only the latency probe uses. The author never ran this code on a Mac.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;

use super::macos::clock_ns;

/// Returns the CPU time that this thread has used, in nanoseconds (`CLOCK_THREAD_CPUTIME_ID`; Libc
/// gen/clock_gettime.c:127).
pub fn thread_cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Disables read-ahead for this file handle, so that reads fetch only the requested bytes.
///
/// Sets `F_RDAHEAD` off, and `F_NOCACHE`, without which a page of 16 KiB would be fetched and the data next
/// to the requested bytes be cached. On a fresh handle after an eviction the two make a read cold. Without the
/// eviction, a read with `F_NOCACHE` over NFS returns what was cached before (NFS kext/nfs_bio.c:2469); over SMB
/// it drops that first (SMBClient kernel/smbfs/smbfs_vnops.c:7016, 7123). On NFS, read-ahead is a property of the
/// mount.
pub fn disable_read_ahead(file: BorrowedFd<'_>) -> io::Result<()> {
    for (command, value) in [(libc::F_RDAHEAD, 0), (libc::F_NOCACHE, 1)] {
        // SAFETY: the descriptor is open, and both commands take an integer.
        if unsafe { libc::fcntl(file.as_raw_fd(), command, value) } == -1 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Returns the device number of the file system that holds an open file.
pub fn device_of(file: BorrowedFd<'_>) -> io::Result<u64> {
    Ok(rustix::fs::fstat(file)?.st_dev as u64)
}

/// Watch for changes in a folder, which is not available on macOS. `EVFILT_VNODE` needs the folder open, and
/// an open folder keeps its share from being ejected (xnu bsd/vfs/vfs_subr.c:2839, 3001: EBUSY); FSEvents is a
/// framework.
pub struct FolderWatch;

impl FolderWatch {
    /// Returns `None`, because the watch is not available on macOS.
    ///
    /// # Errors
    ///
    /// Never fails on macOS.
    pub fn new(_folder: &Path) -> io::Result<Option<Self>> {
        Ok(None)
    }

    /// Returns false: no change is ever reported on macOS.
    pub fn has_changed(&self, _ours: impl Fn(&[u8]) -> bool) -> bool {
        false
    }
}
