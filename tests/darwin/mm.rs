//! Mappings under the names of `rustix::mm`: those of Linux, which faults can fail.

use std::ffi::{c_int, c_void};
use std::os::fd::BorrowedFd;

use crate::kernel::{Call, with};
use linux_rustix::io::{Errno, Result};

pub use linux_rustix::mm::*;

fn enter(call: Call) -> Result<()> {
    with(|kernel| kernel.enter(call)).map_err(|error: c_int| Errno::from_raw_os_error(error))
}

/// Maps a file.
///
/// # Safety
///
/// As for `rustix::mm::mmap`.
pub unsafe fn mmap(
    at: *mut c_void,
    length: usize,
    protection: ProtFlags,
    flags: MapFlags,
    file: BorrowedFd<'_>,
    offset: u64,
) -> Result<*mut c_void> {
    enter(Call::Mmap)?;
    // SAFETY: the caller keeps to the rules of the call.
    unsafe { linux_rustix::mm::mmap(at, length, protection, flags, file, offset) }
}

/// Writes a mapping back, or drops it from the cache.
///
/// # Safety
///
/// As for `rustix::mm::msync`.
pub unsafe fn msync(at: *mut c_void, length: usize, flags: MsyncFlags) -> Result<()> {
    enter(Call::Msync)?;
    // SAFETY: the caller keeps to the rules of the call.
    unsafe { linux_rustix::mm::msync(at, length, flags) }
}

/// Ends a mapping.
///
/// # Safety
///
/// As for `rustix::mm::munmap`.
pub unsafe fn munmap(at: *mut c_void, length: usize) -> Result<()> {
    // The mapping is always ended, so that a fault leaves none behind.
    // SAFETY: the caller keeps to the rules of the call.
    unsafe { linux_rustix::mm::munmap(at, length) }?;
    enter(Call::Munmap)
}
