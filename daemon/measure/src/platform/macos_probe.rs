//! What only the light probe asks of macOS. Nothing here was run on a Mac by who wrote it.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;

/// Processor time that this thread has taken, in nanoseconds (`CLOCK_THREAD_CPUTIME_ID`; Libc gen/clock_gettime.c).
pub fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for the call. The clock exists since 10.12, so the answer is not looked at.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Lets reads through this handle fetch what they ask for and no more.
///
/// `F_RDAHEAD` off, and `F_NOCACHE`, without which a page of 16 KiB would be fetched and the places beside this one be
/// cached. On a fresh handle after an eviction the two make a read cold: `F_NOCACHE` alone still finds what was cached
/// before (SMBClient kernel/smbfs/smbfs_vnops.c; NFS kext/nfs_bio.c). On NFS read-ahead is the mount's.
pub fn without_read_ahead(file: BorrowedFd<'_>) -> io::Result<()> {
    for (command, value) in [(libc::F_RDAHEAD, 0), (libc::F_NOCACHE, 1)] {
        // SAFETY: the descriptor is open, and both commands take an integer.
        if unsafe { libc::fcntl(file.as_raw_fd(), command, value) } == -1 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// The number of the file system that an open file lies on.
pub fn device_of(file: BorrowedFd<'_>) -> io::Result<u64> {
    Ok(rustix::fs::fstat(file)?.st_dev as u64)
}

/// Hears of changes in a folder: not here. `EVFILT_VNODE` needs the folder open, and an open folder keeps its share from
/// being ejected (xnu bsd/vfs/vfs_subr.c, `vflush`: EBUSY); FSEvents is a framework.
pub struct FolderWatch;

impl FolderWatch {
    /// `None`: it cannot see.
    ///
    /// # Errors
    ///
    /// None here.
    pub fn new(_folder: &Path) -> io::Result<Option<Self>> {
        Ok(None)
    }

    /// Nothing was seen.
    pub fn changed(&self, _ours: impl Fn(&[u8]) -> bool) -> bool {
        false
    }
}
