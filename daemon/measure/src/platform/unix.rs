//! POSIX calls that are the same on Linux and macOS. Each function is one system call unless it says
//! otherwise.

use std::ffi::{CStr, c_int};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Timespec, Timestamps, XattrFlags};
use rustix::io::Errno;

use crate::parse::EntryKind;
use longhaul_model::{SyncKind, Timestamp};

/// Access mode of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read access.
    Read,
    /// Write access.
    Write,
    /// Read and write access.
    ReadWrite,
}

impl Access {
    pub(super) const fn flags(self) -> OFlags {
        match self {
            Self::Read => OFlags::RDONLY,
            Self::Write => OFlags::WRONLY,
            Self::ReadWrite => OFlags::RDWR,
        }
    }
}

/// Opens a folder by path, without following a link in the last component.
pub fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, directory_flags(), Mode::empty())?)
}

/// Opens a folder in a folder, without following links.
pub fn open_directory_at(directory: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(directory, name, directory_flags(), Mode::empty())?)
}

fn directory_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

/// Opens an existing file, without following links.
///
/// `O_NONBLOCK` changes nothing for files. Without it, opening a pipe that another client of the share put there would wait for
/// ever (open(2)).
pub fn open_at(directory: BorrowedFd<'_>, name: &CStr, access: Access) -> io::Result<OwnedFd> {
    let flags = access.flags() | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(directory, name, flags, Mode::empty())?)
}

/// Creates and opens a file that must not exist yet, with mode 0644.
pub fn create_at(directory: BorrowedFd<'_>, name: &CStr, access: Access) -> io::Result<OwnedFd> {
    let flags = access.flags() | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(directory, name, flags, Mode::from_raw_mode(0o644))?)
}

/// Returns the kind of an entry from the type of its file.
pub(super) fn entry_kind(kind: FileType) -> EntryKind {
    match kind {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Folder,
        FileType::Symlink => EntryKind::Symlink,
        _ => EntryKind::Other,
    }
}

/// Returns the user ID of a name's owner, without following links.
pub fn owner_at(directory: BorrowedFd<'_>, name: &CStr) -> io::Result<u32> {
    Ok(rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?.st_uid)
}

/// Reads at an offset and returns the number of bytes. Fewer bytes than requested are not an error; 0 means
/// the end of the file.
pub fn read_at(file: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    Ok(rustix::io::pread(file, buffer, offset)?)
}

/// Writes at an offset and returns the number of bytes. Fewer bytes than requested are not an error.
pub fn write_at(file: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> io::Result<usize> {
    Ok(rustix::io::pwrite(file, bytes, offset)?)
}

/// Operation on a byte-range lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockAction {
    /// Takes the lock, exclusively and without waiting. The file must be open for writing.
    Take,
    /// Takes the lock together with others, without waiting. The file must be open for reading.
    TakeShared,
    /// Releases the lock.
    Release,
}

/// Range of bytes in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteRange {
    /// Offset of the first byte.
    pub begin: u64,
    /// Number of bytes.
    pub length: u64,
}

/// Takes or releases a POSIX lock on a byte range (`fcntl` with `F_SETLK`).
pub fn lock_range(file: BorrowedFd<'_>, action: LockAction, bytes: ByteRange) -> io::Result<()> {
    set_lock(file, libc::F_SETLK, action, bytes)
}

/// Takes or releases a lock on a byte range with this command of `fcntl`.
pub fn set_lock(
    file: BorrowedFd<'_>,
    command: c_int,
    action: LockAction,
    bytes: ByteRange,
) -> io::Result<()> {
    let too_far = |_| io::Error::from(io::ErrorKind::InvalidInput);
    // SAFETY: zeroes are a valid flock.
    let mut range: libc::flock = unsafe { std::mem::zeroed() };
    range.l_type = match action {
        LockAction::Take => libc::F_WRLCK as libc::c_short,
        LockAction::TakeShared => libc::F_RDLCK as libc::c_short,
        LockAction::Release => libc::F_UNLCK as libc::c_short,
    };
    range.l_whence = libc::SEEK_SET as libc::c_short;
    range.l_start = libc::off_t::try_from(bytes.begin).map_err(too_far)?;
    range.l_len = libc::off_t::try_from(bytes.length).map_err(too_far)?;
    // SAFETY: the descriptor is open for the call, and the struct lives as long.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, &range) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Closes a file and returns the error of closing: on NFS, delayed writes fail there.
pub fn close(file: OwnedFd) -> io::Result<()> {
    // SAFETY: the descriptor is owned, and ownership ends here whatever close returns.
    match unsafe { libc::close(file.into_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Renames a file within or between folders, also over an existing file.
pub fn rename_at(directory: BorrowedFd<'_>, from: &CStr, to: &CStr) -> io::Result<()> {
    Ok(rustix::fs::renameat(directory, from, directory, to)?)
}

/// Creates a hard link to a file, in the same folder.
pub fn link_at(directory: BorrowedFd<'_>, from: &CStr, to: &CStr) -> io::Result<()> {
    Ok(rustix::fs::linkat(directory, from, directory, to, AtFlags::empty())?)
}

/// Removes a file.
pub fn unlink_at(directory: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    Ok(rustix::fs::unlinkat(directory, name, AtFlags::empty())?)
}

/// Removes an empty folder.
pub fn remove_directory_at(directory: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    Ok(rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR)?)
}

/// Creates a folder with mode 0755.
pub fn make_directory_at(directory: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    Ok(rustix::fs::mkdirat(directory, name, Mode::from_raw_mode(0o755))?)
}

/// Sets the access and modification times of a name, in nanoseconds since 1970 UTC, without following links.
pub fn set_times_by_name(directory: BorrowedFd<'_>, name: &CStr, modified_ns: i64) -> io::Result<()> {
    let times = both_times(modified_ns);
    Ok(rustix::fs::utimensat(directory, name, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Returns one time, in nanoseconds since 1970 UTC, as access and modification times.
pub fn both_times(time_ns: i64) -> Timestamps {
    let time =
        Timespec { tv_sec: time_ns.div_euclid(1_000_000_000), tv_nsec: time_ns.rem_euclid(1_000_000_000) };
    Timestamps { last_access: time, last_modification: time }
}

/// Sets the permission bits of an open file.
pub fn set_mode(file: BorrowedFd<'_>, mode: u16) -> io::Result<()> {
    Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(mode as rustix::fs::RawMode))?)
}

/// Truncates or extends a file to this length in bytes.
pub fn truncate(file: BorrowedFd<'_>, length: u64) -> io::Result<()> {
    Ok(rustix::fs::ftruncate(file, length)?)
}

/// Writes a file's data and metadata to stable storage, as most programs do (`fsync(2)`). On macOS a drive's
/// own cache may still hold them (fsync(2) there).
pub fn fsync(file: BorrowedFd<'_>) -> io::Result<SyncKind> {
    rustix::fs::fsync(file)?;
    Ok(SyncKind::Fsync)
}

/// The error "no such attribute".
#[cfg(target_os = "linux")]
const NO_ATTRIBUTE: Errno = Errno::NODATA;
#[cfg(target_os = "macos")]
const NO_ATTRIBUTE: Errno = Errno::NOATTR;

/// Sets an extended attribute of an open file. A Mac whose helper for `._` files cannot be reached answers "no such
/// attribute" (docs/macos.md#appledouble-files), which means that the file system has none.
pub fn setxattr(file: BorrowedFd<'_>, name: &CStr, value: &[u8]) -> io::Result<()> {
    match rustix::fs::fsetxattr(file, name, value, XattrFlags::empty()) {
        Err(NO_ATTRIBUTE) => Err(Errno::NOTSUP.into()),
        other => Ok(other?),
    }
}

/// Reads an extended attribute of an open file and returns its length; `None` if the attribute is absent or
/// if the file system has no attributes.
pub fn getxattr(file: BorrowedFd<'_>, name: &CStr, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    none_if_xattr_absent(rustix::fs::fgetxattr(file, name, &mut *buffer))
}

/// Removes an extended attribute of an open file.
pub fn remove_xattr(file: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    Ok(rustix::fs::fremovexattr(file, name)?)
}

/// Converts the errors "no such attribute" and "no attributes on this file system" into `None`.
pub(super) fn none_if_xattr_absent(result: rustix::io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(length) => Ok(Some(length)),
        Err(NO_ATTRIBUTE) => Ok(None),
        Err(error) if is_unsupported(error.raw_os_error()) => Ok(None),
        Err(other) => Err(other.into()),
    }
}

/// Returns whether a system error means that the file system does not support an operation.
///
/// Compares the number, not `ErrorKind::Unsupported`: on macOS ENOTSUP is 45 and EOPNOTSUPP is 102 (xnu
/// bsd/sys/errno.h:146, 253), and std 1.95 knows only the second (library/std/src/sys/io/error/unix.rs). On Linux both
/// are 95.
pub const fn is_unsupported(error: i32) -> bool {
    error == libc::ENOTSUP || error == libc::EOPNOTSUPP || error == libc::ENOSYS
}

/// Errors of a user who has no valid key for a server: NFS takes them from rpc.gssd (net/sunrpc/auth_gss/auth_gss.c,
/// `gss_pipe_downcall`), SMB from cifs.upcall (fs/smb/client/cifs_spnego.c).
#[cfg(target_os = "linux")]
pub const KEY_ERRORS: &[i32] = &[libc::EKEYEXPIRED, libc::ENOKEY, libc::EKEYREVOKED, libc::EKEYREJECTED];
/// Errors of a user who has no valid key for a server: only Linux has errors of their own for that.
#[cfg(target_os = "macos")]
pub const KEY_ERRORS: &[i32] = &[];

// This holds on every system that longhaul is built for, whatever its error numbers are.
const _: () = assert!(is_unsupported(libc::ENOTSUP) && is_unsupported(libc::EOPNOTSUPP));

/// Size and free space of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Free space for this user, in bytes.
    pub free_bytes: u64,
    /// Total size, in bytes.
    pub total_bytes: u64,
}

/// Returns the size and free space of an open file's file system. Blocks on a dead share.
#[cfg(not(target_os = "macos"))]
pub fn space(file: BorrowedFd<'_>) -> io::Result<Space> {
    let facts = rustix::fs::fstatvfs(file)?;
    let bytes = |blocks: u64| blocks.saturating_mul(facts.f_frsize);
    Ok(Space { free_bytes: bytes(facts.f_bavail), total_bytes: bytes(facts.f_blocks) })
}

/// Returns the size and free space of an open file's file system. Blocks on a dead share.
///
/// Does not use `fstatvfs`, whose number of blocks is 32 bits wide (xnu bsd/sys/_types.h:81,
/// `__darwin_fsblkcnt_t`), too few for a large NAS.
#[cfg(target_os = "macos")]
pub fn space(file: BorrowedFd<'_>) -> io::Result<Space> {
    let facts = rustix::fs::fstatfs(file)?;
    let bytes = |blocks: u64| blocks.saturating_mul(facts.f_bsize.into());
    Ok(Space { free_bytes: bytes(facts.f_bavail), total_bytes: bytes(facts.f_blocks) })
}

/// Returns the page size in bytes: the smallest part of a file that the page cache holds.
pub fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

/// Extends a range of a file to whole pages.
pub fn whole_pages(range: ByteRange) -> ByteRange {
    let (page, end) = (page_bytes(), range.begin.saturating_add(range.length));
    let begin = range.begin - range.begin % page;
    ByteRange { begin, length: end.div_ceil(page).saturating_mul(page).saturating_sub(begin) }
}

/// Returns the share of a file's pages that this machine's page cache holds, from 0 to 1; `None` for an empty
/// file.
///
/// Maps the file and calls `mincore`; no data is read. Linux answers truthfully only to a process that may
/// write the file.
pub fn resident_share(file: BorrowedFd<'_>, length: u64) -> io::Result<Option<f64>> {
    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
    let length = usize::try_from(length).map_err(|_| io::ErrorKind::FileTooLarge)?;
    let pages = length.div_ceil(page_bytes() as usize);
    if pages == 0 {
        return Ok(None);
    }
    // SAFETY: a fresh mapping that overlaps nothing; it is never read, so the file may change or vanish
    // beneath it.
    let base = unsafe { mmap(std::ptr::null_mut(), length, ProtFlags::READ, MapFlags::SHARED, file, 0) }?;
    let held = resident_pages(base.cast(), length);
    // SAFETY: exactly what was mapped above.
    unsafe { munmap(base, length) }?;
    Ok(Some(held? as f64 / pages as f64))
}

/// Returns the number of a mapping's pages that are in memory. The pages are queried in parts, so that a
/// large mapping needs no large buffer.
fn resident_pages(base: *mut libc::c_void, length: usize) -> io::Result<usize> {
    const PART: usize = 4096;
    let (page, mut resident, mut held) = (page_bytes() as usize, [0u8; PART], 0);
    for begin in (0..length).step_by(PART * page) {
        let part = (PART * page).min(length - begin);
        // SAFETY: the part lies in a mapping of `length` bytes, and `resident` has one byte for each of its
        // pages.
        let answer = unsafe { libc::mincore(base.byte_add(begin), part, resident.as_mut_ptr().cast()) };
        if answer != 0 {
            return Err(io::Error::last_os_error());
        }
        held += resident[..part.div_ceil(page)].iter().filter(|held| **held & 1 == 1).count();
    }
    Ok(held)
}

/// Returns the effective user ID.
pub fn user_id() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Returns whether this process ignores a signal, as one that `nohup` started ignores SIGHUP.
pub fn ignores_signal(signal: c_int) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: without a new action, the call only writes the present one, which is initialized if it returns 0.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// Returns the name of this machine in the network.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Maximum number of file descriptors that a process on macOS should request (`OPEN_MAX`, xnu
/// bsd/sys/syslimits.h:108; setrlimit(2), "COMPATIBILITY").
const MAX_DESCRIPTORS: u64 = 10_240;

/// Raises the soft limit of open files to the hard limit, but to 10,240 at most; never lowers it. Child
/// processes inherit the limit.
///
/// Terminals on macOS start with a limit of 256, and a preset opens files from a hundred threads.
///
/// # Errors
///
/// If the system rejects the limit: the previous one stays in force.
pub fn raise_descriptor_limit() -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    match raised_limit(current, maximum) {
        None => Ok(()),
        current => Ok(setrlimit(Resource::Nofile, Rlimit { current, maximum })?),
    }
}

/// Returns the soft limit to set, given the present soft and hard limits (`None` for no limit); `None` if the
/// soft limit is high enough.
fn raised_limit(soft: Option<u64>, hard: Option<u64>) -> Option<u64> {
    let wanted = hard.map_or(MAX_DESCRIPTORS, |hard| hard.min(MAX_DESCRIPTORS));
    (soft? < wanted).then_some(wanted)
}

/// Returns the one-minute load average; `None` if the system does not report it.
pub fn load_average() -> Option<f64> {
    let mut averages = [0.0f64; 1];
    // SAFETY: the array has room for the one number that is asked for.
    (unsafe { libc::getloadavg(averages.as_mut_ptr(), 1) } == 1).then(|| averages[0])
}

/// Returns the wall-clock time: a label, never a measurement.
pub fn wall_clock() -> Timestamp {
    Timestamp::UNIX_EPOCH + SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Returns the name of a system error, such as `ENOSPC`; `None` if the error did not come from the system.
pub fn error_name(error: &io::Error) -> Option<String> {
    let code = error.raw_os_error()?;
    let known = NAMED_ERRORS.iter().chain(SYSTEM_SPECIFIC_ERRORS).find(|(number, _)| *number == code);
    Some(known.map_or_else(|| format!("errno {code}"), |(_, name)| (*name).to_owned()))
}

macro_rules! named_errors {
    ($($name:ident)*) => { &[$((libc::$name, stringify!($name))),*] };
}

/// Errors that file systems are known to return.
const NAMED_ERRORS: &[(i32, &str)] = named_errors![
    EACCES EAGAIN EBADF EBUSY ECANCELED ECONNABORTED ECONNREFUSED ECONNRESET EDEADLK EDQUOT EEXIST EFAULT EFBIG
    EHOSTDOWN EHOSTUNREACH EILSEQ EINTR EINVAL EIO EISDIR ELOOP EMFILE EMLINK ENAMETOOLONG ENETDOWN ENETUNREACH
    ENFILE ENOBUFS ENODATA ENODEV ENOENT ENOLCK ENOMEM ENOSPC ENOSYS ENOTCONN ENOTDIR ENOTEMPTY ENOTSUP ENXIO
    EOVERFLOW EPERM EPIPE EPROTO EPROTONOSUPPORT ERANGE EROFS ESTALE ETIMEDOUT ETXTBSY EXDEV
];
/// Errors that only Linux has: of a server that failed, and of keys.
#[cfg(target_os = "linux")]
const SYSTEM_SPECIFIC_ERRORS: &[(i32, &str)] =
    named_errors![EKEYEXPIRED EKEYREJECTED EKEYREVOKED ENOKEY EREMOTEIO];
/// Errors that only macOS has (`sys/errno.h`): of remote procedure calls, of authentication, of a missing
/// attribute.
#[cfg(target_os = "macos")]
const SYSTEM_SPECIFIC_ERRORS: &[(i32, &str)] = named_errors![EAUTH EBADRPC ENEEDAUTH ENOATTR EOPNOTSUPP EPROCUNAVAIL EPROGMISMATCH EPROGUNAVAIL ERPCMISMATCH];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_descriptor_limit_is_raised_and_never_lowered() {
        assert_eq!(raised_limit(Some(256), None), Some(10_240));
        assert_eq!(raised_limit(Some(1024), Some(524_288)), Some(10_240));
        assert_eq!(raised_limit(Some(256), Some(4096)), Some(4096));
        for high_enough in [(Some(4096), Some(4096)), (Some(20_000), None), (None, None)] {
            assert_eq!(raised_limit(high_enough.0, high_enough.1), None);
        }
    }

    #[test]
    fn an_ignored_signal_is_known() {
        // The standard library ignores SIGPIPE.
        assert!(ignores_signal(libc::SIGPIPE) && !ignores_signal(libc::SIGSEGV));
    }
}
