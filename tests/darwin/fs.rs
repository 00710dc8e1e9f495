//! File calls under the names of `rustix::fs`. A descriptor that stands for a node of the stand-in is handled there, with the
//! structs of macOS; all other calls are those of Linux.

use std::ffi::{CStr, c_int};
use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use crate::errno::*;
use crate::kernel::{Call, Kernel, Node, with};
use linux_rustix::io::{Errno, Result};

pub use linux_rustix::fs::*;

/// Attributes of a file, with the types that macOS has (xnu bsd/sys/stat.h:140-152).
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "the fields are those of Apple's header")]
pub struct Stat {
    pub st_dev: i32,
    pub st_mode: u16,
    pub st_uid: u32,
    pub st_size: i64,
    pub st_mtime: i64,
    pub st_mtime_nsec: i64,
}

/// Type of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of rustix")]
pub enum FileType {
    RegularFile,
    Directory,
    Symlink,
    Fifo,
}

/// Bits of a mode that hold the type (xnu bsd/sys/stat.h, `S_IFMT`).
const TYPE_BITS: u16 = 0o170_000;

impl FileType {
    /// Converts a mode, which has 16 bits on macOS.
    pub fn from_raw_mode(mode: u16) -> Self {
        match mode & TYPE_BITS {
            0o100_000 => Self::RegularFile,
            0o040_000 => Self::Directory,
            0o120_000 => Self::Symlink,
            _ => Self::Fifo,
        }
    }
}

/// Makes a call on the kernel of this thread, or fails it if a fault is set.
fn call<T>(call: Call, function: impl FnOnce(&mut Kernel) -> std::result::Result<T, c_int>) -> Result<T> {
    with(|kernel| kernel.enter(call).and_then(|()| function(kernel))).map_err(Errno::from_raw_os_error)
}

fn stat_of(node: &Node) -> Stat {
    Stat {
        st_dev: 16_777_234,
        st_mode: node.mode_with_type(),
        st_uid: 501,
        st_size: node.size as i64,
        st_mtime: node.modified.0,
        st_mtime_nsec: node.modified.1,
    }
}

/// Returns the attributes of a name in a folder.
pub fn statat(folder: BorrowedFd<'_>, name: &CStr, _: AtFlags) -> Result<Stat> {
    call(Call::Fstatat, |kernel| Ok(stat_of(&kernel.named(folder.as_raw_fd(), name)?)))
}

/// Returns the attributes of an open file.
pub fn fstat(file: BorrowedFd<'_>) -> Result<Stat> {
    call(Call::Fstat, |kernel| Ok(stat_of(kernel.node_mut(file.as_raw_fd())?)))
}

/// Returns the mount of an open file.
pub fn fstatfs(file: BorrowedFd<'_>) -> Result<crate::statfs> {
    call(Call::Fstatfs, |kernel| kernel.mount_of(file.as_raw_fd()))
}

/// Opens a name in a folder. A folder that is no node of the stand-in is a real one.
pub fn openat(folder: BorrowedFd<'_>, name: &CStr, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
    if !with(|kernel| kernel.is_open(folder.as_raw_fd())) {
        return linux_rustix::fs::openat(folder, name, flags, mode);
    }
    call(Call::Openat, |kernel| {
        let node = kernel.named(folder.as_raw_fd(), name)?;
        // A link that may not be followed (open(2), O_NOFOLLOW).
        if node.kind == 5 && flags.contains(OFlags::NOFOLLOW) {
            return Err(ELOOP);
        }
        // A pipe without a writer would block the call until a signal ends it (bsd/miscfs/fifofs/fifo_vnops.c:254).
        if node.kind == 7 && !flags.contains(OFlags::NONBLOCK) {
            return Err(EINTR);
        }
        let file = OwnedFd::from(File::open("/dev/null").map_err(|_| EMFILE)?);
        kernel.open(std::os::fd::AsFd::as_fd(&file), node);
        Ok(file)
    })
}

/// Sets an extended attribute (fsetxattr(2); on macOS it has a position, which rustix sets to 0).
pub fn fsetxattr(file: BorrowedFd<'_>, name: &CStr, value: &[u8], _: XattrFlags) -> Result<()> {
    let answer = call(Call::Fsetxattr, |kernel| {
        kernel.node_mut(file.as_raw_fd())?.xattrs.insert(name.to_owned(), value.to_vec());
        Ok(())
    });
    answer.map_err(linux_name)
}

/// Reads an extended attribute (fgetxattr(2)) and returns its length.
pub fn fgetxattr(file: BorrowedFd<'_>, name: &CStr, buffer: &mut [u8]) -> Result<usize> {
    let answer = call(Call::Fgetxattr, |kernel| {
        let value = kernel.node_mut(file.as_raw_fd())?.xattrs.get(name).ok_or(ENOATTR)?;
        buffer.get_mut(..value.len()).ok_or(ERANGE)?.copy_from_slice(value);
        Ok(value.len())
    });
    answer.map_err(linux_name)
}

/// `unix.rs` is compiled for Linux here and knows the Linux name of this error.
fn linux_name(error: Errno) -> Errno {
    if error.raw_os_error() == ENOATTR { Errno::NODATA } else { error }
}

/// Writes a file to its disk.
pub fn fsync(file: BorrowedFd<'_>) -> Result<()> {
    call(Call::Fsync, |kernel| kernel.node_mut(file.as_raw_fd()).map(drop))
}
