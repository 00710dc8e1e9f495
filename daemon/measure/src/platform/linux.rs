//! Platform calls on Linux.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Write};
use std::num::NonZeroU64;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, AtFlags, FileType, MemfdFlags, Mode, OFlags, StatxFlags};
use rustix::time::{ClockId, clock_gettime};

use super::linux_counters::cifs_connections;
use super::types::{IoPolicy, ListingFields};
use super::unix::{self, ByteRange};
use crate::parse::{self, Attributes, Entry, PowerSupply};
use longhaul_model::{Mount, NegotiatedOptions, Power, Protocol, SyncKind};

/// Extended attribute that holds Finder info on Linux: a Mac's `com.apple.FinderInfo` has this name on a
/// Linux client.
pub const FINDER_INFO: &CStr = c"user.com.apple.FinderInfo";

/// Extended attribute by which the backup workload checks which metadata a target preserves.
pub const TEST_XATTR: &CStr = c"user.longhaul.note";

/// True if [`list`] returns attributes too. It does not on Linux, where they are requested name by name.
pub const LISTS_ATTRIBUTES: bool = false;

/// Returns the time of a clock in nanoseconds.
pub(super) fn clock_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns the time in nanoseconds of a clock that never steps and stops while the machine sleeps.
#[inline]
pub fn monotonic_ns() -> u64 {
    clock_ns(ClockId::Monotonic)
}

/// Returns the time in nanoseconds of a clock that never steps and continues while the machine sleeps.
pub fn continuous_ns() -> u64 {
    clock_ns(ClockId::Boottime)
}

/// Sets the access and modification times of a name, in nanoseconds since 1970 UTC, without following links.
///
/// The file is looked up once and checked, so that another client of the share cannot put a second name of another user's file
/// in its place in between. That asks the server no more than a call by name: the attributes come with the lookup.
///
/// # Errors
///
/// `EMLINK` if the file has further names.
pub fn set_times_at(directory: BorrowedFd<'_>, name: &CStr, modified_ns: i64) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(directory, name, flags, Mode::empty())?;
    let as_known = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let facts = rustix::fs::statx(&file, c"", as_known, StatxFlags::NLINK | StatxFlags::TYPE)?;
    if FileType::from_raw_mode(facts.stx_mode.into()) == FileType::RegularFile && facts.stx_nlink > 1 {
        return Err(rustix::io::Errno::MLINK.into());
    }
    match rustix::fs::utimensat(&file, c"", &unix::both_times(modified_ns), AtFlags::EMPTY_PATH) {
        // Old kernels do not accept this flag here.
        Err(rustix::io::Errno::INVAL) => unix::set_times_by_name(directory, name, modified_ns),
        set => Ok(set?),
    }
}

/// Returns the mount table from `/proc/self/mountinfo`. Free space is queried on local disks only, so the
/// call cannot block on a network.
pub fn mounts() -> io::Result<Vec<Mount>> {
    let table = std::fs::read("/proc/self/mountinfo")?;
    let mut mounts = parse::mountinfo(&table);
    for index in parse::safe_to_statfs(&mounts) {
        let mount = &mut mounts[index];
        if let Ok(facts) = rustix::fs::statvfs(&mount.point) {
            mount.free_bytes = Some(facts.f_bavail.saturating_mul(facts.f_frsize));
            mount.total_bytes = Some(facts.f_blocks.saturating_mul(facts.f_frsize));
        }
    }
    Ok(mounts)
}

/// Returns the negotiated options of a mount: those of the mount table and, for SMB 3, whether the server grants leases of
/// directories. With them the client answers from listings that it keeps.
pub fn negotiated(mount: &Mount) -> NegotiatedOptions {
    let mut options = mount.negotiated.clone();
    if matches!(mount.protocol, Protocol::Smb(_)) {
        let leases = parse::directory_leases(&cifs_connections(), mount);
        let value = leases.map(|leases| if leases { "granted" } else { "none" });
        options.extend(value.map(|value| ("directory-leases".to_owned(), value.to_owned())));
    }
    options
}

/// Returns the attributes of a name in a folder, without following links.
pub fn attributes_at(directory: BorrowedFd<'_>, name: &CStr) -> io::Result<Attributes> {
    let facts = rustix::fs::statx(directory, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS)?;
    Ok(Attributes {
        kind: unix::entry_kind(FileType::from_raw_mode(facts.stx_mode.into())),
        size: facts.stx_size,
        modified_ns: facts.stx_mtime.tv_sec * 1_000_000_000 + i64::from(facts.stx_mtime.tv_nsec),
        mode: facts.stx_mode & 0o7777,
    })
}

/// Reads an extended attribute of a name in a folder and returns its length; `None` if the attribute is
/// absent.
///
/// `getxattrat` exists only since Linux 6.13; the path `/proc/self/fd/N/name` gives the same result on every
/// kernel, without an additional round trip.
pub fn getxattr_at(
    directory: BorrowedFd<'_>,
    name: &CStr,
    attribute: &CStr,
    buffer: &mut [u8],
) -> io::Result<Option<usize>> {
    let mut path = [0u8; libc::PATH_MAX as usize];
    let mut rest = &mut path[..libc::PATH_MAX as usize - 1];
    let too_long = |_| io::Error::from_raw_os_error(libc::ENAMETOOLONG);
    write!(rest, "/proc/self/fd/{}/", directory.as_raw_fd()).map_err(too_long)?;
    rest.write_all(name.to_bytes()).map_err(too_long)?;
    let path = CStr::from_bytes_until_nul(&path).map_err(|_| io::ErrorKind::InvalidFilename)?;
    unix::none_if_xattr_absent(rustix::fs::lgetxattr(path, attribute, buffer))
}

/// Fills the buffer with the next entries of a folder, with one `getdents64` call, and returns the number of
/// bytes that they take; 0 at the end.
pub fn list(directory: BorrowedFd<'_>, _wanted: ListingFields, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the kernel writes at most `buffer.len()` bytes into `buffer`.
    let length = unsafe {
        libc::syscall(libc::SYS_getdents64, directory.as_raw_fd(), buffer.as_mut_ptr(), buffer.len())
    };
    usize::try_from(length).map_err(|_| io::Error::last_os_error())
}

/// Returns the entries that [`list`] wrote into a buffer, without `.` and `..`.
pub fn entries(buffer: &[u8]) -> impl Iterator<Item = Entry<'_>> {
    parse::dirents(buffer)
}

/// Drops the clean pages of a range from the page cache. File systems are free to ignore
/// this: see `resident_share`.
///
/// The range is extended to whole pages, because a page that is only partly covered would not be dropped
/// (posix_fadvise(2)).
pub fn evict(file: BorrowedFd<'_>, range: ByteRange) -> io::Result<()> {
    // The system call takes a length of zero as the rest of the file.
    if range.length == 0 {
        return Ok(());
    }
    let ByteRange { begin, length } = unix::whole_pages(range);
    Ok(rustix::fs::fadvise(file, begin, NonZeroU64::new(length), Advice::DontNeed)?)
}

/// Writes a file's data and metadata to stable storage. On Linux, `fsync(2)` also makes the disk write its
/// cache.
pub fn full_sync(file: BorrowedFd<'_>) -> io::Result<SyncKind> {
    unix::fsync(file)
}

/// Sets this thread, and the threads that it starts from now on, to the idle I/O priority (`ioprio_set(2)`,
/// class 3) or back to the default.
///
/// Only local disks whose scheduler supports priorities obey this; network clients ignore it.
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

/// Returns the I/O policy of this thread, as the kernel reports it (`ioprio_get(2)`).
pub fn io_policy() -> io::Result<IoPolicy> {
    const WHO_PROCESS: libc::c_int = 1;
    // SAFETY: two integers; 0 means the calling thread.
    match unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_PROCESS, 0) } {
        -1 => Err(io::Error::last_os_error()),
        priority if priority >> 13 == 3 => Ok(IoPolicy::Throttled),
        _ => Ok(IoPolicy::Default),
    }
}

/// Returns true: measured, Linux tells the link counts of NFS and of SMB (docs/macos.md, "Link counts").
pub fn can_trust_link_counts(_folder: BorrowedFd<'_>) -> bool {
    true
}

/// Does nothing: Linux has no common mark that excludes a folder from backups.
pub fn exclude_from_backup(_folder: BorrowedFd<'_>) -> io::Result<()> {
    Ok(())
}

/// Returns the peak resident memory of this process in bytes; `None` if the system does not report it.
pub fn peak_memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    parse::status_peak_bytes(&status)
}

/// Returns the power source of the machine from `/sys/class/power_supply`; `None` if no supply tells it.
pub fn power() -> Option<Power> {
    let supplies = std::fs::read_dir("/sys/class/power_supply").ok()?;
    let supplies: Vec<PowerSupply> = supplies.flatten().map(|entry| power_supply(&entry.path())).collect();
    parse::power_supplies(&supplies)
}

/// Reads an entry of `/sys/class/power_supply`.
pub(super) fn power_supply(folder: &Path) -> PowerSupply {
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    PowerSupply { kind: text("type"), scope: text("scope"), online: text("online") }
}

/// Returns the error `Unsupported`: Linux has no setting that keeps a process from hanging in a dead mount.
pub fn forbid_remote_hang() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns `Linux` with the kernel release.
pub fn system_version() -> String {
    format!("Linux {}", rustix::system::uname().release().to_string_lossy())
}

/// Creates an empty file for memory that processes share. Returns the file, and the path at which another
/// process opens it while this process holds it.
///
/// The file lives in memory, so that its pages are never written to a disk under test, and has no name, so
/// that a killed process leaves nothing behind.
pub fn shared_file() -> io::Result<(File, PathBuf)> {
    let file = File::from(rustix::fs::memfd_create("longhaul-recorder", MemfdFlags::CLOEXEC)?);
    let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    Ok((file, path.into()))
}

/// Returns the folder of the database: `$XDG_DATA_HOME/longhaul`, by default `~/.local/share/longhaul` (XDG
/// Base Directory 0.8).
pub fn data_directory() -> Option<PathBuf> {
    absolute_path_from_env("XDG_DATA_HOME")
        .or_else(|| absolute_path_from_env("HOME").map(|home| home.join(".local/share")))
        .map(|base| base.join("longhaul"))
}

/// Returns the folder in which systemd looks for a user's units: `$XDG_CONFIG_HOME/systemd/user`
/// (systemd.unit(5)).
pub fn service_directory() -> Option<PathBuf> {
    Some(config_directory()?.parent()?.join("systemd/user"))
}

/// Returns the folder of the configuration: `$XDG_CONFIG_HOME/longhaul`, by default `~/.config/longhaul`.
pub fn config_directory() -> Option<PathBuf> {
    absolute_path_from_env("XDG_CONFIG_HOME")
        .or_else(|| absolute_path_from_env("HOME").map(|home| home.join(".config")))
        .map(|base| base.join("longhaul"))
}

/// Returns the folder of the administrator's configuration, for all users (Filesystem Hierarchy Standard 3.0, 3.7).
pub fn managed_config_directory() -> PathBuf {
    "/etc/longhaul".into()
}

/// Returns the folder of the log files: `$XDG_STATE_HOME/longhaul`, by default `~/.local/state/longhaul` (XDG
/// Base Directory 0.8).
pub fn log_directory() -> Option<PathBuf> {
    absolute_path_from_env("XDG_STATE_HOME")
        .or_else(|| absolute_path_from_env("HOME").map(|home| home.join(".local/state")))
        .map(|base| base.join("longhaul"))
}

/// Returns a path from an environment variable. A relative path is ignored, as the specification requires.
fn absolute_path_from_env(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}
