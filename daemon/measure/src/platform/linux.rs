//! Linux.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Write};
use std::num::NonZeroU64;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::PathBuf;

use rustix::fs::{Advice, AtFlags, FileType, MemfdFlags, StatxFlags};
use rustix::time::{ClockId, clock_gettime};

use super::parse::{self, Attributes, Entry, EntryKind};
use super::{IoPolicy, Wanted, unix};
use crate::model::{Mount, Negotiated, Power, SyncKind};

/// The extended attribute that holds Finder info here: what a Mac's `com.apple.FinderInfo` becomes on a Linux client.
pub const FINDER_INFO: &CStr = c"user.com.apple.FinderInfo";

/// The extended attribute by which the backup learns what survives the way to a target.
pub const NOTE_ATTRIBUTE: &CStr = c"user.longhaul.note";

/// Whether [`list`] brings attributes along: not on Linux, where they are asked for name by name.
pub const LISTS_ATTRIBUTES: bool = false;

fn clock_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds of a clock that never steps and stops while the machine sleeps.
#[inline]
pub fn monotonic_ns() -> u64 {
    clock_ns(ClockId::Monotonic)
}

/// Nanoseconds of a clock that never steps and goes on while the machine sleeps.
pub fn continuous_ns() -> u64 {
    clock_ns(ClockId::Boottime)
}

/// The mount table, from `/proc/self/mountinfo`. Only local disks are asked for their space, so nothing can block on a
/// network.
pub fn mounts() -> io::Result<Vec<Mount>> {
    let table = std::fs::read("/proc/self/mountinfo")?;
    let mut mounts = parse::mountinfo(&table);
    for place in parse::askable(&mounts) {
        let mount = &mut mounts[place];
        if let Ok(facts) = rustix::fs::statvfs(&mount.point) {
            mount.free_bytes = Some(facts.f_bavail.saturating_mul(facts.f_frsize));
            mount.total_bytes = Some(facts.f_blocks.saturating_mul(facts.f_frsize));
        }
    }
    Ok(mounts)
}

/// What was negotiated on a mount. On Linux the mount table has said it already.
pub fn negotiated(mount: &Mount) -> Negotiated {
    mount.negotiated.clone()
}

/// The attributes of a name, following nothing.
pub fn attributes_at(directory: BorrowedFd<'_>, name: &CStr) -> io::Result<Attributes> {
    let facts = rustix::fs::statx(directory, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS)?;
    Ok(Attributes {
        kind: match FileType::from_raw_mode(facts.stx_mode.into()) {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Folder,
            FileType::Symlink => EntryKind::Link,
            _ => EntryKind::Other,
        },
        size: facts.stx_size,
        modified_ns: facts.stx_mtime.tv_sec * 1_000_000_000 + i64::from(facts.stx_mtime.tv_nsec),
        mode: facts.stx_mode & 0o7777,
    })
}

/// An extended attribute of a name in a folder; `None` if it is absent.
///
/// `getxattrat` came with Linux 6.13; `/proc/self/fd/N/name` says the same on every kernel, with no round trip more.
pub fn getxattr_at(
    directory: BorrowedFd<'_>,
    name: &CStr,
    attribute: &CStr,
    buffer: &mut [u8],
) -> io::Result<Option<usize>> {
    let mut path = [0u8; 320];
    let mut rest = &mut path[..319];
    write!(rest, "/proc/self/fd/{}/", directory.as_raw_fd())?;
    rest.write_all(name.to_bytes())?;
    let path = CStr::from_bytes_until_nul(&path).map_err(|_| io::ErrorKind::InvalidFilename)?;
    unix::absent_xattr_is_none(rustix::fs::lgetxattr(path, attribute, buffer))
}

/// One `getdents64`: fills the buffer with the next entries of a folder and returns how many bytes they take; 0 at the end.
pub fn list(directory: BorrowedFd<'_>, _wanted: Wanted, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the kernel writes at most `buffer.len()` bytes into `buffer`.
    let length = unsafe {
        libc::syscall(libc::SYS_getdents64, directory.as_raw_fd(), buffer.as_mut_ptr(), buffer.len())
    };
    usize::try_from(length).map_err(|_| io::Error::last_os_error())
}

/// The entries that [`list`] put into a buffer, without `.` and `..`.
pub fn entries(buffer: &[u8], _wanted: Wanted) -> impl Iterator<Item = Entry<'_>> {
    parse::dirents(buffer)
}

/// Drops clean pages of a range, where it begins and how long it is, from the page cache. File systems are free to ignore it:
/// see `resident_share`.
///
/// The range grows to whole pages: of a page that it ends in, nothing would be dropped (posix_fadvise(2)).
pub fn evict(file: BorrowedFd<'_>, range: (u64, u64)) -> io::Result<()> {
    let (begin, length) = unix::whole_pages(range);
    Ok(rustix::fs::fadvise(file, begin, NonZeroU64::new(length), Advice::DontNeed)?)
}

/// What this longhaul does otherwise on this system than an earlier one did, for what tells epochs apart: nothing.
pub const OWN_CIRCUMSTANCES: &[(&str, &str)] = &[];

/// Asks for a file's data and metadata to be on stable storage whatever happens: `fsync(2)` asks the disk, too.
pub fn full_sync(file: BorrowedFd<'_>) -> io::Result<SyncKind> {
    unix::fsync(file)
}

/// Puts this thread, and threads it starts from now on, at the idle I/O priority (`ioprio_set(2)`, class 3) or back.
///
/// It says something only to local disks whose scheduler knows priorities; network clients ignore it.
pub fn set_io_policy(policy: IoPolicy) -> io::Result<()> {
    const WHO_PROCESS: libc::c_int = 1;
    let class: libc::c_int = match policy {
        IoPolicy::Throttled => 3,
        IoPolicy::Default => 0,
    };
    // SAFETY: three integers; 0 means the calling thread.
    match unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, class << 13) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The policy that this thread's I/O is under, as the kernel says (`ioprio_get(2)`).
pub fn io_policy() -> io::Result<IoPolicy> {
    const WHO_PROCESS: libc::c_int = 1;
    // SAFETY: two integers; 0 means the calling thread.
    match unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_PROCESS, 0) } {
        -1 => Err(io::Error::last_os_error()),
        priority if priority >> 13 == 3 => Ok(IoPolicy::Throttled),
        _ => Ok(IoPolicy::Default),
    }
}

/// Marks a folder for backups to leave out: there is no such mark that is common here.
pub fn exclude_from_backup(_folder: BorrowedFd<'_>) -> io::Result<()> {
    Ok(())
}

/// Peak resident memory of this process in bytes; `None` if the system does not say.
pub fn peak_memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    parse::status_peak_bytes(&status)
}

/// What the machine runs on, from `/sys/class/power_supply`; `None` where no supply is listed.
pub fn power() -> Option<Power> {
    let supplies = std::fs::read_dir("/sys/class/power_supply").ok()?;
    let read = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    let facts: Vec<(String, String)> = supplies
        .flatten()
        .map(|supply| (read(supply.path().join("type")), read(supply.path().join("online"))))
        .collect();
    parse::power_supplies(&facts)
}

/// Nothing to do: Linux has no switch against hanging in a dead mount.
pub fn prepare_worker() {}

/// Refuses: there is no such switch.
pub fn forbid_remote_hang() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// `Linux` with the kernel's release.
pub fn system_version() -> String {
    format!("Linux {}", rustix::system::uname().release().to_string_lossy())
}

/// An empty file for memory that processes share, and where another one opens it while this one holds it.
///
/// It lives in memory, so that its pages are never written to a disk under test, and has no name, so that nothing is
/// left behind by a process that is killed.
pub fn shared_file() -> io::Result<(File, PathBuf)> {
    let file = File::from(rustix::fs::memfd_create("longhaul-recorder", MemfdFlags::CLOEXEC)?);
    let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    Ok((file, path.into()))
}

/// Where the database lives: `$XDG_DATA_HOME/longhaul`, by default `~/.local/share/longhaul` (XDG Base Directory 0.8).
pub fn data_directory() -> Option<PathBuf> {
    absolute("XDG_DATA_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/share")))
        .map(|base| base.join("longhaul"))
}

/// Where systemd looks for the units of a person: `$XDG_CONFIG_HOME/systemd/user` (systemd.unit(5)).
pub fn service_directory() -> Option<PathBuf> {
    Some(config_directory()?.parent()?.join("systemd/user"))
}

/// Where the configuration lives: `$XDG_CONFIG_HOME/longhaul`, by default `~/.config/longhaul`.
pub fn config_directory() -> Option<PathBuf> {
    absolute("XDG_CONFIG_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".config")))
        .map(|base| base.join("longhaul"))
}

/// Where logs live: `$XDG_STATE_HOME/longhaul`, by default `~/.local/state/longhaul` (XDG Base Directory 0.8).
pub fn log_directory() -> Option<PathBuf> {
    absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
        .map(|base| base.join("longhaul"))
}

/// A path from the environment; a relative one is ignored, as the specification asks.
fn absolute(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}
