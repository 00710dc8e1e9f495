//! Locks on ranges of open files. They belong to the open file, so that two programs that use the pass-through exclude each other. All
//! locks of one program on a file go through the same open file where possible, so that they do not exclude each other. They do not
//! go through one that is opened for them: an SMB server lets only the locked handle write.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// Time between two attempts to get a lock for a program that waits for it.
const RETRY: Duration = Duration::from_millis(20);

/// A lock on a range of bytes, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lock {
    /// First byte.
    pub start: u64,
    /// Last byte; that of the largest possible file for a lock up to the end.
    pub end: u64,
    /// `F_RDLCK`, `F_WRLCK` or `F_UNLCK`.
    pub kind: i32,
}

impl Lock {
    /// The end of all locks.
    pub const ALL_ENDED: Self = Self { start: 0, end: i64::MAX as u64, kind: libc::F_UNLCK };

    /// Takes, changes or ends the lock.
    pub fn set(self, file: &impl AsFd) -> io::Result<()> {
        control(file, libc::F_OFD_SETLK, &mut self.argument())
    }

    /// Waits for the lock, at most until `is_interrupted` returns true.
    pub fn wait(self, file: &impl AsFd, is_interrupted: impl Fn() -> bool) -> io::Result<()> {
        loop {
            match self.set(file) {
                Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => {}
                done => return done,
            }
            if is_interrupted() {
                return Err(rustix::io::Errno::INTR.into());
            }
            std::thread::sleep(RETRY);
        }
    }

    /// Returns a lock that is in the way of this one; of kind `F_UNLCK` if there is none.
    pub fn conflict(self, file: &impl AsFd) -> io::Result<Self> {
        let mut found = self.argument();
        control(file, libc::F_OFD_GETLK, &mut found)?;
        let start = found.l_start.cast_unsigned();
        let end = if found.l_len == 0 { i64::MAX as u64 } else { start + found.l_len.cast_unsigned() - 1 };
        Ok(Self { start, end, kind: found.l_type.into() })
    }

    fn argument(self) -> libc::flock {
        let length = if self.end >= i64::MAX as u64 { 0 } else { self.end + 1 - self.start };
        libc::flock {
            l_type: self.kind as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: self.start.cast_signed(),
            l_len: length.cast_signed(),
            l_pid: 0,
        }
    }
}

fn control(file: &impl AsFd, command: libc::c_int, lock: &mut libc::flock) -> io::Result<()> {
    // SAFETY: the descriptor is open as long as `file` is borrowed, and `lock` is a valid `flock` for these commands.
    let answer = unsafe { libc::fcntl(file.as_fd().as_raw_fd(), command, std::ptr::from_mut(lock)) };
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_ends_when_the_program_is_interrupted() {
        let scratch = tempfile::NamedTempFile::new().unwrap();
        let lock = Lock { start: 0, end: 9, kind: libc::F_WRLCK };
        let [holder, waiting] = [scratch.reopen().unwrap(), scratch.reopen().unwrap()];
        lock.set(&holder).unwrap();
        assert_eq!(lock.wait(&waiting, || true).unwrap_err().kind(), io::ErrorKind::Interrupted);
        Lock::ALL_ENDED.set(&holder).unwrap();
        lock.wait(&waiting, || true).unwrap();
    }
}
