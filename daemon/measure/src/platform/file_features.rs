//! Calls on files that only the check of fidelity and replays of recordings make.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::fs::FallocateFlags;
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};

use super::unix::{ByteRange, LockAction, set_lock};

#[cfg(target_os = "linux")]
pub use linux::{ACCESS_CONTROL_LIST, FINDER_TAGS, RESOURCE_FORK, set_created};
#[cfg(target_os = "macos")]
pub use macos::{ACCESS_CONTROL_LIST, FINDER_TAGS, RESOURCE_FORK, set_created};

/// Creates a symbolic link in a folder.
pub fn symlink_at(directory: BorrowedFd<'_>, destination: &CStr, name: &CStr) -> io::Result<()> {
    Ok(rustix::fs::symlinkat(destination, directory, name)?)
}

/// Returns the destination of a symbolic link in a folder.
pub fn read_link_at(directory: BorrowedFd<'_>, name: &CStr) -> io::Result<CString> {
    Ok(rustix::fs::readlinkat(directory, name, vec![])?)
}

/// Reserves space for the first bytes of an empty file, which grows to this length.
pub fn preallocate(file: BorrowedFd<'_>, length: u64) -> io::Result<()> {
    Ok(rustix::fs::fallocate(file, FallocateFlags::empty(), 0, length)?)
}

/// Takes or releases a lock that belongs to this open file, so that another open file of the same process conflicts
/// with it (`F_OFD_SETLK`).
pub fn lock_open_file(file: BorrowedFd<'_>, action: LockAction, bytes: ByteRange) -> io::Result<()> {
    set_lock(file, SET_OPEN_FILE_LOCK, action, bytes)
}

/// Command of `fcntl` for locks of open files.
#[cfg(target_os = "linux")]
const SET_OPEN_FILE_LOCK: libc::c_int = libc::F_OFD_SETLK;
/// Command of `fcntl` for locks of open files: `F_OFD_SETLK` (xnu bsd/sys/fcntl.h:355).
#[cfg(target_os = "macos")]
const SET_OPEN_FILE_LOCK: libc::c_int = 90;

/// Writes bytes to the start of a file through memory that the file is mapped to, and waits until they are written.
pub fn write_mapped(file: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<()> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // The system would end the process with SIGBUS if the file were shorter than the mapping.
    if rustix::fs::fstat(file)?.st_size < bytes.len() as i64 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    // SAFETY: a fresh mapping that overlaps nothing and that only this function uses.
    let base = unsafe { mmap(std::ptr::null_mut(), bytes.len(), protection, MapFlags::SHARED, file, 0) }?;
    // SAFETY: the mapping has this length, can be written, and the file was just seen to be at least as long; it
    // belongs to the check, which runs alone.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), base.cast::<u8>(), bytes.len()) };
    // SAFETY: exactly what was mapped above.
    let written = unsafe { msync(base, bytes.len(), MsyncFlags::SYNC) };
    // SAFETY: as above.
    unsafe { munmap(base, bytes.len()) }?;
    Ok(written?)
}

/// Value of an extended attribute, with its name.
#[derive(Debug, Clone, Copy)]
pub struct XattrValue {
    /// Name of the attribute.
    pub name: &'static CStr,
    /// Bytes of the attribute.
    pub value: &'static [u8],
}

/// The Finder tag `Red`, with its colour, as a binary property list.
const RED_TAG: &[u8] = b"bplist00\xa1\x01URed\n6\x08\x0a\0\0\0\0\0\0\x01\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10";

#[cfg(target_os = "linux")]
mod linux {
    use super::*;

    /// Fails: Linux has no call that sets the time at which a file was created.
    ///
    /// # Errors
    ///
    /// Always [`io::ErrorKind::Unsupported`].
    pub fn set_created(_: BorrowedFd<'_>, _: Duration) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Tags of the Finder, under the name that a Linux client gives to a Mac's attribute.
    pub const FINDER_TAGS: XattrValue =
        XattrValue { name: c"user.com.apple.metadata:_kMDItemUserTags", value: RED_TAG };

    /// Resource fork: Linux has none.
    pub const RESOURCE_FORK: Option<XattrValue> = None;

    /// POSIX access control list (acl(5)), in the form of the kernel: version 2, then tag, permissions and id of each
    /// entry. The owner may read and write; user 65533, the group and all others may read.
    pub const ACCESS_CONTROL_LIST: Option<XattrValue> = Some(XattrValue {
        name: c"system.posix_acl_access",
        value: &[
            2, 0, 0, 0, // version
            1, 0, 6, 0, 255, 255, 255, 255, // owner
            2, 0, 4, 0, 253, 255, 0, 0, // user 65533
            4, 0, 4, 0, 255, 255, 255, 255, // group
            16, 0, 4, 0, 255, 255, 255, 255, // mask
            32, 0, 4, 0, 255, 255, 255, 255, // others
        ],
    });
}

#[cfg(target_os = "macos")]
mod macos {
    use super::*;
    use std::fs::{File, FileTimes};
    use std::os::macos::fs::FileTimesExt;
    use std::time::UNIX_EPOCH;

    /// Sets the time at which a file was created, since 1970 UTC.
    pub fn set_created(file: BorrowedFd<'_>, created: Duration) -> io::Result<()> {
        let file = File::from(file.try_clone_to_owned()?);
        file.set_times(FileTimes::new().set_created(UNIX_EPOCH + created))
    }

    /// Tags of the Finder.
    pub const FINDER_TAGS: XattrValue =
        XattrValue { name: c"com.apple.metadata:_kMDItemUserTags", value: RED_TAG };

    /// Resource fork (man setxattr(2), `XATTR_RESOURCEFORK_NAME`).
    pub const RESOURCE_FORK: Option<XattrValue> =
        Some(XattrValue { name: c"com.apple.ResourceFork", value: b"resource fork of longhaul" });

    /// Access control list: no extended attribute gives access to it.
    pub const ACCESS_CONTROL_LIST: Option<XattrValue> = None;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn lock_of_an_open_file_excludes_another_open_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (one, other) = (file.reopen().unwrap(), file.reopen().unwrap());
        let range = ByteRange { begin: 0, length: 4 };
        lock_open_file(one.as_fd(), LockAction::Take, range).unwrap();
        let refused = lock_open_file(other.as_fd(), LockAction::Take, range).unwrap_err();
        assert!(matches!(refused.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)), "{refused}");
        lock_open_file(one.as_fd(), LockAction::Release, range).unwrap();
        lock_open_file(other.as_fd(), LockAction::Take, range).unwrap();
    }

    #[test]
    fn mapped_write_is_refused_beyond_the_end_of_a_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "1234").unwrap();
        let open = std::fs::File::options().read(true).write(true).open(file.path()).unwrap();
        assert!(write_mapped(open.as_fd(), b"12345").is_err());
        write_mapped(open.as_fd(), b"abcd").unwrap();
        assert_eq!(std::fs::read(file.path()).unwrap(), b"abcd");
    }
}
