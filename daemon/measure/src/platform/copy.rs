//! Copies from one file to another that do not move the bytes through this process.

use std::io;
use std::os::fd::BorrowedFd;

#[cfg(target_os = "linux")]
use rustix::io::Errno;

/// Part of a file that is copied to another file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyRange {
    /// Offset in the file that is read.
    pub read_at: u64,
    /// Offset in the file that is written.
    pub write_at: u64,
    /// Number of bytes.
    pub length: u64,
}

/// Makes a file share the blocks of another one, whose content it then has (`FICLONE`).
///
/// # Errors
///
/// `ENOTSUP` where the system has no such call (macOS clones by name only), or refuses it for these files (ioctl_ficlone(2):
/// `EXDEV`, `EINVAL`, `ENOTTY`).
pub fn share_blocks(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        rustix::fs::ioctl_ficlone(to, from).map_err(|error| match error {
            Errno::XDEV | Errno::INVAL | Errno::NOTTY => io::Error::from_raw_os_error(libc::ENOTSUP),
            other => other.into(),
        })
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (from, to);
        Err(io::Error::from_raw_os_error(libc::ENOTSUP))
    }
}

/// Copies bytes between two files without moving them through this process, and returns their number; 0 at the end of the first
/// file. The server copies where it offers that.
///
/// # Errors
///
/// `ENOTSUP` where the system has no such call (macOS), or refuses it for these files (copy_file_range(2): `EXDEV`, `EINVAL`).
pub fn copy_range(from: BorrowedFd<'_>, to: BorrowedFd<'_>, range: CopyRange) -> io::Result<u64> {
    #[cfg(target_os = "linux")]
    {
        let (mut read_at, mut write_at) = (range.read_at, range.write_at);
        let length = usize::try_from(range.length).unwrap_or(usize::MAX);
        match rustix::fs::copy_file_range(from, Some(&mut read_at), to, Some(&mut write_at), length) {
            Ok(copied) => Ok(copied as u64),
            Err(Errno::XDEV | Errno::INVAL) => Err(io::Error::from_raw_os_error(libc::ENOTSUP)),
            Err(error) => Err(error.into()),
        }
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (from, to, range);
        Err(io::Error::from_raw_os_error(libc::ENOTSUP))
    }
}
