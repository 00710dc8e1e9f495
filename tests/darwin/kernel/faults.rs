//! Faults that tests inject: each call can fail with each error that it documents.

use std::ffi::c_int;
use std::ops::{Bound, RangeBounds};

use super::Kernel;
use crate::errno::*;

/// Call of the kernel or of libSystem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the variants are the names of the calls")]
pub enum Call {
    ClockGettime,
    Fcntl,
    Fgetxattr,
    Fsetxattr,
    Fstat,
    Fstatat,
    Fstatfs,
    Fsync,
    Getattrlistat,
    Getattrlistbulk,
    Getfsstat,
    Gethostuuid,
    Getiopolicy,
    Getrusage,
    Kevent,
    Kqueue,
    Mincore,
    Mmap,
    Msync,
    Munmap,
    NotifyGetState,
    NotifyRegisterCheck,
    Openat,
    ProcPidRusage,
    Setiopolicy,
    Sysctl,
    Sysctlbyname,
}

pub(super) struct Fault {
    call: Call,
    error: c_int,
    numbers: (Bound<usize>, Bound<usize>),
}

/// Errors that the manual page of each call documents (xnu bsd/man/man2, for `sysctl` Libc gen/sysctl.3, for
/// `proc_pid_rusage` xnu bsd/kern/proc_info.c), and those that xnu passes on from a file system.
pub const DOCUMENTED_ERRORS: &[(Call, &[c_int])] = &[
    (Call::Fcntl, &[EBADF, EINTR, EINVAL, EIO, ENOSPC, ENOTSUP, ENOTTY, EPERM]),
    (
        Call::Fgetxattr,
        &[EACCES, EFAULT, EINVAL, EIO, EISDIR, ELOOP, ENAMETOOLONG, ENOATTR, ENOTDIR, ENOTSUP, EPERM, ERANGE],
    ),
    (Call::Fsetxattr, &[EACCES, EEXIST, EFAULT, EINVAL, EIO, ENOSPC, ENOTSUP, EPERM, ERANGE, EROFS]),
    (Call::Fstat, &[EBADF, EFAULT, EIO]),
    (Call::Fstatat, &[EACCES, EBADF, EFAULT, EIO, ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR]),
    (Call::Fstatfs, &[EBADF, EFAULT, EIO]),
    (Call::Fsync, &[EBADF, EINTR, EINVAL, EIO]),
    (
        Call::Getattrlistat,
        &[
            EACCES,
            EBADF,
            EFAULT,
            EINTR,
            EINVAL,
            EIO,
            ELOOP,
            ENAMETOOLONG,
            ENOENT,
            ENOTDIR,
            ENOTSUP,
            EPERM,
            ERANGE,
            EROFS,
            ESTALE,
            ETIMEDOUT,
        ],
    ),
    (
        Call::Getattrlistbulk,
        &[EACCES, EBADF, EFAULT, EINTR, EINVAL, EIO, ENOTDIR, ENOTSUP, EPERM, ERANGE, ESTALE, ETIMEDOUT],
    ),
    (Call::Getfsstat, &[EFAULT, EINVAL, EIO, ENOMEM]),
    (Call::Gethostuuid, &[EAGAIN, EFAULT, EPERM]),
    (Call::Getiopolicy, &[EINVAL]),
    (Call::Getrusage, &[EFAULT, EINVAL]),
    (Call::Kevent, &[EACCES, EBADF, EFAULT, EINTR, EINVAL, ENOENT, ENOMEM, ESRCH]),
    (Call::Kqueue, &[EMFILE, ENFILE, ENOMEM]),
    (Call::Mincore, &[EFAULT, EINVAL]),
    (Call::Mmap, &[EACCES, EBADF, EINVAL, ENODEV, ENOMEM, ENXIO]),
    (Call::Msync, &[EBUSY, EINVAL, EIO, ENOMEM]),
    (Call::Munmap, &[EINVAL]),
    (Call::Openat, &[EACCES, EBADF, EINTR, EIO, ELOOP, EMFILE, ENFILE, ENOENT, ENOTDIR, ETIMEDOUT]),
    (Call::ProcPidRusage, &[EFAULT, EINVAL, EPERM, ESRCH]),
    (Call::Setiopolicy, &[EINVAL]),
    (Call::Sysctl, &[EFAULT, EINVAL, EISDIR, ENOENT, ENOMEM, ENOTDIR, EPERM]),
    (Call::Sysctlbyname, &[EFAULT, EINVAL, EISDIR, ENOENT, ENOMEM, ENOTDIR, EPERM, ESRCH]),
];

impl Kernel {
    /// Lets a call fail with an error number: each call with one of these numbers, counted from 0.
    pub fn fail(&mut self, call: Call, error: c_int, numbers: impl RangeBounds<usize>) {
        self.counts.remove(&call);
        let numbers = (numbers.start_bound().cloned(), numbers.end_bound().cloned());
        self.faults.push(Fault { call, error, numbers });
    }

    /// Ends all faults.
    pub fn heal(&mut self) {
        self.faults.clear();
    }

    /// Returns how often a call was made since the start, or since its last fault was set.
    pub fn count(&self, call: Call) -> usize {
        self.counts.get(&call).copied().unwrap_or(0)
    }

    pub(crate) fn enter(&mut self, call: Call) -> Result<(), c_int> {
        let number = self.count(call);
        self.counts.insert(call, number + 1);
        let applies = |fault: &&Fault| fault.call == call && fault.numbers.contains(&number);
        self.faults.iter().find(applies).map_or(Ok(()), |fault| Err(fault.error))
    }
}
