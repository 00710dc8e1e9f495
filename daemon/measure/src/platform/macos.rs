//! Platform calls on macOS, through libSystem and Apple's own tools only: no framework is linked.
//!
//! The author never ran this code on a Mac. Layouts and constants are asserted against what Apple publishes;
//! each fact names its source. Lines are those of the tags in docs/macos.md#sources.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};

use super::apple_tools::{self, Tools};
use super::types::{IoPolicy, ListingFields};
use super::unix::{self, ByteRange};
// macOS has no handle that only refers to a file, and a call on an open one would send other requests.
pub use super::unix::set_times_by_name as set_times_at;
use crate::parse::{self, Attributes, Entry, FINDER_INFO_BYTES};
use crate::private_files;
use longhaul_model::{Mount, NegotiatedOptions, Power, Protocol, SyncKind};

/// Extended attribute that holds Finder info (xnu bsd/sys/xattr.h:57, `XATTR_FINDERINFO_NAME`).
pub const FINDER_INFO: &CStr = c"com.apple.FinderInfo";

/// Extended attribute by which the backup workload checks which metadata a target preserves.
pub const TEST_XATTR: &CStr = c"org.longhaul.note";

/// True if [`list`] returns attributes too. One `getattrlistbulk` call returns them, which is how Finder requests them.
pub const LISTS_ATTRIBUTES: bool = true;

// Layout of `statfs` in xnu bsd/sys/mount.h:110, 64-bit inode variant.
const _: () = assert!(size_of::<libc::statfs>() == 2168);
const _: () = assert!(std::mem::offset_of!(libc::statfs, f_flags) == 64);
const _: () = assert!(std::mem::offset_of!(libc::statfs, f_fstypename) == 72);
const _: () = assert!(std::mem::offset_of!(libc::statfs, f_mntonname) == 88);
const _: () = assert!(std::mem::offset_of!(libc::statfs, f_mntfromname) == 1112);
// Sizes of the structs in xnu bsd/sys/attr.h.
const _: () = assert!(size_of::<libc::attrlist>() == 24 && size_of::<libc::attrreference_t>() == 8);
const _: () = assert!(size_of::<libc::attribute_set_t>() == 20);

fn checked(answer: c_int) -> io::Result<usize> {
    usize::try_from(answer).map_err(|_| io::Error::last_os_error())
}

/// Returns the time of a clock in nanoseconds.
pub(super) fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for the call. The clocks exist since 10.12, so the return value is not checked.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns the time in nanoseconds of a clock that never steps and stops while the machine sleeps
/// (`mach_absolute_time`; Libc gen/clock_gettime.c:121).
#[inline]
pub fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_UPTIME_RAW)
}

/// Returns the time in nanoseconds of a clock that never steps and continues while the machine sleeps
/// (`mach_continuous_time`; Libc gen/clock_gettime.c:115). On Linux the clock with this name stops.
pub fn continuous_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC_RAW)
}

/// Returns the mount table without accessing a mount: `getfsstat(MNT_NOWAIT)` never talks to a server, and
/// its sizes are those that the system last received. With `MNT_WAIT` it would block on a dead server and
/// then leave that mount out (xnu bsd/vfs/vfs_syscalls.c:4153, `getfsstat64_callback`).
pub fn mounts() -> io::Result<Vec<Mount>> {
    Ok(parse::with_data_volume(mount_table()?.iter().map(mount).collect()))
}

/// Reads the mount table into a buffer with spare room, and again into a larger one as long as the buffer
/// comes back full.
fn mount_table() -> io::Result<Vec<libc::statfs>> {
    // SAFETY: with a null buffer the call writes nothing and returns how many mounts there are.
    let mut room = checked(unsafe { libc::getfsstat(std::ptr::null_mut(), 0, libc::MNT_NOWAIT) })? + 8;
    loop {
        let mut table = Vec::<libc::statfs>::with_capacity(room);
        let bytes =
            c_int::try_from(room * size_of::<libc::statfs>()).map_err(|_| io::ErrorKind::OutOfMemory)?;
        // SAFETY: the kernel writes at most `bytes` bytes, which is the capacity of the table.
        let count = checked(unsafe { libc::getfsstat(table.as_mut_ptr(), bytes, libc::MNT_NOWAIT) })?;
        if count < room {
            // SAFETY: the kernel has filled this many entries.
            unsafe { table.set_len(count) };
            return Ok(table);
        }
        room *= 2;
    }
}

fn mount(facts: &libc::statfs) -> Mount {
    let (protocol, source) =
        parse::statfs(&bytes(&facts.f_fstypename), &bytes(&facts.f_mntfromname), facts.f_flags);
    let point = bytes(&facts.f_mntonname);
    let protocol = match parse::is_time_machine_mount(&point) {
        true => Protocol::Other("mount of Time Machine".to_owned()),
        false => protocol,
    };
    let known = |blocks: u64| (facts.f_blocks > 0).then(|| blocks.saturating_mul(facts.f_bsize.into()));
    Mount {
        read_only: facts.f_flags & libc::MNT_RDONLY as u32 != 0,
        free_bytes: known(facts.f_bavail),
        total_bytes: known(facts.f_blocks),
        owner: (!parse::is_guest_share(&bytes(&facts.f_mntfromname))).then_some(facts.f_owner),
        ..Mount::new(PathBuf::from(OsStr::from_bytes(&point)), source, protocol)
    }
}

/// Returns the bytes of a name up to its first NUL.
fn bytes(name: &[c_char]) -> Vec<u8> {
    name.iter().map(|unit| *unit as u8).take_while(|byte| *byte != 0).collect()
}

/// Returns the negotiated options of a mount from `smbutil` or `nfsstat`, or those of the mount table if the
/// tools have no answer.
pub fn negotiated(mount: &Mount) -> NegotiatedOptions {
    let options = apple_tools::negotiated_with(&Tools::system(), mount);
    options.unwrap_or_else(|_| mount.negotiated.clone())
}

/// Returns the attributes of a name in a folder, without following links.
pub fn attributes_at(directory: BorrowedFd<'_>, name: &CStr) -> io::Result<Attributes> {
    let facts = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(Attributes {
        kind: unix::entry_kind(FileType::from_raw_mode(facts.st_mode)),
        size: u64::try_from(facts.st_size).unwrap_or(0),
        modified_ns: facts.st_mtime.saturating_mul(1_000_000_000).saturating_add(facts.st_mtime_nsec),
        mode: facts.st_mode & 0o7777,
    })
}

/// Reads an extended attribute of a name in a folder and returns its length; `None` if the attribute is absent.
///
/// macOS has no `getxattrat`. Finder info comes from one `getattrlistat`, as Finder requests it. Any other
/// attribute costs three calls (open, get and close), and a server sees the open and the close too.
pub fn getxattr_at(
    directory: BorrowedFd<'_>,
    name: &CStr,
    attribute: &CStr,
    buffer: &mut [u8],
) -> io::Result<Option<usize>> {
    if attribute == FINDER_INFO {
        return finder_info_at(directory, name, buffer);
    }
    let flags = OFlags::from_bits_retain(libc::O_EVTONLY as u32) | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // A pipe without a writer would block the open for ever (xnu bsd/miscfs/fifofs/fifo_vnops.c:254).
    let flags = flags | OFlags::NONBLOCK;
    let file = rustix::fs::openat(directory, name, flags, Mode::empty())?;
    unix::getxattr(file.as_fd(), attribute, buffer)
}

/// Reads the Finder info of a name in a folder and returns its length; `None` if it is absent. Finder info of
/// zeros counts as absent (xnu bsd/vfs/vfs_xattr.c:1532, `emptyfinfo`).
fn finder_info_at(directory: BorrowedFd<'_>, name: &CStr, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    let mut wanted = attributes_wanted([libc::ATTR_CMN_RETURNED_ATTRS | libc::ATTR_CMN_FNDRINFO, 0, 0]);
    let mut answer = [0u8; 24 + FINDER_INFO_BYTES];
    // SAFETY: the name ends in NUL, `wanted` is an attrlist, and the kernel writes at most `answer.len()`
    // bytes.
    checked(unsafe {
        libc::getattrlistat(
            directory.as_raw_fd(),
            name.as_ptr(),
            (&raw mut wanted).cast(),
            answer.as_mut_ptr().cast(),
            answer.len(),
            libc::FSOPT_NOFOLLOW.into(),
        )
    })?;
    match parse::finder_info(&answer) {
        None => Ok(None),
        Some(info) if info.iter().all(|byte| *byte == 0) => Ok(None),
        Some(info) => {
            let room = buffer.get_mut(..FINDER_INFO_BYTES).ok_or(rustix::io::Errno::RANGE)?;
            room.copy_from_slice(info);
            Ok(Some(FINDER_INFO_BYTES))
        }
    }
}

/// Fills the buffer with the next entries of a folder, with one `getattrlistbulk` call, and returns the number of bytes
/// that they take; 0 at the end. The buffer needs room for at least one entry: 128 KiB are ample.
pub fn list(directory: BorrowedFd<'_>, wanted: ListingFields, buffer: &mut [u8]) -> io::Result<usize> {
    let mut wanted = attributes_wanted(match wanted {
        ListingFields::Names => NAMES,
        ListingFields::FinderAttributes => FINDER_ATTRIBUTES,
    });
    // SAFETY: `wanted` is an attrlist, and the kernel writes at most `buffer.len()` bytes.
    let count = checked(unsafe {
        libc::getattrlistbulk(
            directory.as_raw_fd(),
            (&raw mut wanted).cast(),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            0,
        )
    })?;
    parse::bulk_length(buffer, count).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Returns the entries that [`list`] wrote into a buffer.
pub fn entries(buffer: &[u8]) -> impl Iterator<Item = Entry<'_>> {
    parse::bulk(buffer)
}

/// Common, folder and file attributes that request names and kinds only. The first two attributes are
/// mandatory (`ATTR_BULK_REQUIRED`, xnu bsd/sys/attr.h:600).
const NAMES: [u32; 3] =
    [libc::ATTR_CMN_RETURNED_ATTRS | libc::ATTR_CMN_NAME | parse::BULK_ERROR | libc::ATTR_CMN_OBJTYPE, 0, 0];

/// Common, folder and file attributes that a Finder-style view shows. The list that Finder requests is not
/// published. With Finder info in it, NFS has to do the work that makes its folders slow (NFS
/// kext/nfs_vnops.c:128: it has no call for either).
const FINDER_ATTRIBUTES: [u32; 3] = [
    NAMES[0]
        | libc::ATTR_CMN_FSID
        | libc::ATTR_CMN_CRTIME
        | libc::ATTR_CMN_MODTIME
        | libc::ATTR_CMN_CHGTIME
        | libc::ATTR_CMN_FNDRINFO
        | libc::ATTR_CMN_OWNERID
        | libc::ATTR_CMN_GRPID
        | libc::ATTR_CMN_ACCESSMASK
        | libc::ATTR_CMN_FLAGS
        | libc::ATTR_CMN_USERACCESS
        | libc::ATTR_CMN_FILEID
        | libc::ATTR_CMN_ADDEDTIME,
    libc::ATTR_DIR_ENTRYCOUNT | libc::ATTR_DIR_MOUNTSTATUS,
    libc::ATTR_FILE_TOTALSIZE
        | libc::ATTR_FILE_ALLOCSIZE
        | libc::ATTR_FILE_DATALENGTH
        | libc::ATTR_FILE_RSRCLENGTH,
];

fn attributes_wanted([common, folder, file]: [u32; 3]) -> libc::attrlist {
    libc::attrlist {
        bitmapcount: libc::ATTR_BIT_MAP_COUNT,
        reserved: 0,
        commonattr: common,
        volattr: 0,
        dirattr: folder,
        fileattr: file,
        forkattr: 0,
    }
}

/// Drops the pages of a range (start, length) from the cache, with a mapping without access and
/// `msync(MS_INVALIDATE)` on it (fio os/mac/posix.c, contributed by Apple). Dirty pages are written first.
///
/// `F_NOCACHE` is not set. By itself it drops nothing. It would also stay set on the descriptor, and then
/// smbfs reads without clusters and closes at once (SMBClient kernel/smbfs/smbfs_vnops.c:7016, 1403), so that
/// the measured behavior would not be that of any other program.
pub fn evict(file: BorrowedFd<'_>, range: ByteRange) -> io::Result<()> {
    let ByteRange { begin, length } = unix::whole_pages(range);
    let length = usize::try_from(length).map_err(|_| io::ErrorKind::FileTooLarge)?;
    if length == 0 {
        return Ok(());
    }
    // SAFETY: a fresh mapping that overlaps nothing; without access it is never read, so the file may change
    // beneath it.
    let base =
        unsafe { mmap(std::ptr::null_mut(), length, ProtFlags::empty(), MapFlags::SHARED, file, begin) }?;
    // SAFETY: `base` is the mapping of `length` bytes made above, which holds no value of this program.
    let dropped = unsafe { msync(base, length, MsyncFlags::INVALIDATE) };
    // SAFETY: exactly what was mapped above.
    unsafe { munmap(base, length) }?;
    Ok(dropped?)
}

/// Writes a file's data and metadata to stable storage and returns the kind of sync that was used.
///
/// Only for Time Machine workloads and longhaul's own files: `rsync` and the originals of presets call `fsync`, and
/// over SMB `F_FULLFSYNC` costs twice its round trips (SMBClient kernel/smbfs/smbfs_vnops.c:10467). `F_FULLFSYNC` is
/// tried first. Many SMB servers do not offer it, and then the client refuses it (line 10441 of the same file) and
/// `fsync` is used. The two have different durations and must not be compared.
pub fn full_sync(file: BorrowedFd<'_>) -> io::Result<SyncKind> {
    // SAFETY: the descriptor is open, and this command takes no argument.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_FULLFSYNC) } != -1 {
        return Ok(SyncKind::FullFsync);
    }
    let refusal = io::Error::last_os_error();
    match refusal.raw_os_error() {
        Some(libc::ENOTSUP | libc::EOPNOTSUPP | libc::EINVAL | libc::ENOTTY) => unix::fsync(file),
        _ => Err(refusal),
    }
}

unsafe extern "C" {
    /// Sets an I/O policy (xnu bsd/sys/resource.h:648); the libc crate lacks this function.
    fn setiopolicy_np(kind: c_int, scope: c_int, policy: c_int) -> c_int;
    /// Returns an I/O policy (xnu bsd/sys/resource.h:642); the libc crate lacks this function.
    fn getiopolicy_np(kind: c_int, scope: c_int) -> c_int;
}

// Constants of xnu bsd/sys/resource.h:568-589.
const TYPE_DISK: c_int = 0;
const SCOPE_PROCESS: c_int = 0;
const POLICY_DEFAULT: c_int = 0;
const POLICY_THROTTLE: c_int = 3;

/// Gives this process's disk I/O a lower priority than that of other processes, or the default priority
/// again. The policy is that of the process, because a thread does not inherit the policy of the thread that
/// starts it (xnu osfmk/kern/thread_policy.c:1578), and several threads write in one run.
///
/// Throttling affects local disks, SMB and AFP, but not NFS (xnu bsd/man/man3/getiopolicy_np.3:58). Figures that
/// are compared are therefore measured with the default policy.
pub fn set_io_policy(policy: IoPolicy) -> io::Result<()> {
    let policy = match policy {
        IoPolicy::Default => POLICY_DEFAULT,
        IoPolicy::Throttled => POLICY_THROTTLE,
    };
    // SAFETY: three integers.
    checked(unsafe { setiopolicy_np(TYPE_DISK, SCOPE_PROCESS, policy) }).map(drop)
}

/// Returns the policy of this process's disk I/O, as the kernel reports it (getiopolicy_np(3)).
pub fn io_policy() -> io::Result<IoPolicy> {
    // SAFETY: two integers.
    match checked(unsafe { getiopolicy_np(TYPE_DISK, SCOPE_PROCESS) })? as c_int {
        POLICY_THROTTLE => Ok(IoPolicy::Throttled),
        _ => Ok(IoPolicy::Default),
    }
}

/// Returns whether link counts of files in a folder can be trusted on all mounts of this kind: only on a Mac's own disks. Its SMB client
/// refuses links and counts one link for each file (SMBClient kernel/smbfs/smbfs_vnops.c:9119-9133, smbfs_node.c:2512-2516), its NFS
/// client says what the server says. What a task does must not depend on the protocol, so that none is trusted.
pub fn can_trust_link_counts(folder: BorrowedFd<'_>) -> bool {
    rustix::fs::fstatfs(folder).is_ok_and(|facts| facts.f_flags & libc::MNT_LOCAL as u32 != 0)
}

/// Excludes a folder from Time Machine backups, as `tmutil addexclusion` does (tmutil(8)): sets an extended attribute with a binary
/// property list of one string, only on local disks that store attributes: elsewhere it would become a file `._NAME` next to the folder.
pub fn exclude_from_backup(folder: BorrowedFd<'_>) -> io::Result<()> {
    const EXCLUDED: &CStr = c"com.apple.metadata:com_apple_backup_excludeItem";
    let facts = rustix::fs::fstatfs(folder)?;
    match (facts.f_flags & libc::MNT_LOCAL as u32, bytes(&facts.f_fstypename).as_slice()) {
        (1.., b"apfs" | b"hfs") => {
            unix::setxattr(folder, EXCLUDED, &parse::binary_plist_text("com.apple.backupd"))
        }
        _ => Ok(()),
    }
}

/// Returns the peak resident memory of this process in bytes, the unit that macOS uses (getrusage(2)); `None`
/// if the system does not report it.
pub fn peak_memory_bytes() -> Option<u64> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is valid for the call, which fills it; zeroes are a valid rusage.
    let (answer, usage) =
        unsafe { (libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()), usage.assume_init()) };
    if answer == 0 { u64::try_from(usage.ru_maxrss).ok() } else { None }
}

/// Returns the power source of the machine; `None` if the system does not report it.
pub fn power() -> Option<Power> {
    apple_tools::power_with(&Tools::system()).ok()
}

/// Makes requests of this process to an NFS mount that does not respond fail with `EIO` instead of hanging, by setting
/// `vfs.generic.noremotehang` (xnu bsd/vfs/vfs_subr.c:5229). Returns an error if the system does not accept it.
///
/// 12 s without an answer are enough for that (NFS kext/nfs_socket.c:4632, 5659, 5953), and SMB ignores the setting. So a
/// worker makes it only when its supervisor is gone. SIGKILL ends a wait for NFS without it, within two seconds (4219, 5974).
/// umount(8) makes it for itself, too (diskdev_cmds umount.tproj/umount.c:197). Every process may make it for itself, and
/// children do not inherit it (xnu bsd/kern/kern_fork.c:1046). It is documented nowhere, so its absence is no error for a worker.
pub fn forbid_remote_hang() -> io::Result<()> {
    let mut own: libc::pid_t = rustix::process::getpid().as_raw_nonzero().get();
    // SAFETY: the name ends in NUL, and the new value is a pid of the length that is given; no old value is
    // requested.
    checked(unsafe {
        libc::sysctlbyname(
            c"vfs.generic.noremotehang".as_ptr(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            (&raw mut own).cast(),
            size_of::<libc::pid_t>(),
        )
    })
    .map(drop)
}

/// Returns `macOS` with its version and build (xnu bsd/kern/kern_sysctl.c:2036, 2129), without those that the
/// system does not report. macOS 26 can call itself 16 to a program that was built with an older SDK (line 2185).
pub fn system_version() -> String {
    let version = system_text(c"kern.osproductversion").map_or_else(String::new, |text| format!(" {text}"));
    let build = system_text(c"kern.osversion").map_or_else(String::new, |text| format!(" ({text})"));
    format!("macOS{version}{build}")
}

fn system_text(name: &CStr) -> Option<String> {
    let mut text = [0u8; 128];
    let mut length = text.len();
    let value: *mut c_void = text.as_mut_ptr().cast();
    // SAFETY: the name ends in NUL, and the kernel writes at most `length` bytes of `text`.
    let answer = unsafe { libc::sysctlbyname(name.as_ptr(), value, &mut length, std::ptr::null_mut(), 0) };
    let text = CStr::from_bytes_until_nul(&text).ok().filter(|_| answer == 0)?;
    Some(text.to_string_lossy().into_owned())
}

/// Creates an empty file for memory that processes share. Returns the file, and the path at which another process opens
/// it. The file is on the local disk, as macOS has no files in memory. The process that opens it removes the name.
pub fn shared_file() -> io::Result<(File, PathBuf)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("longhaul-{}-{}-{number}", std::process::id(), super::wall_clock().as_us());
    let path = std::env::temp_dir().join(name);
    let file = private_files::options().read(true).write(true).create_new(true).open(&path)?;
    Ok((file, path))
}

fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Returns the folder of the database: `~/Library/Application Support/longhaul`.
pub fn data_directory() -> Option<PathBuf> {
    Some(home()?.join("Library/Application Support/longhaul"))
}

/// Returns the folder of the log files: `~/Library/Logs/longhaul`, where Console looks.
pub fn log_directory() -> Option<PathBuf> {
    Some(home()?.join("Library/Logs/longhaul"))
}

/// Returns the folder of the configuration. It is that of the data, because macOS has no folder for the
/// configuration of command line tools.
pub fn config_directory() -> Option<PathBuf> {
    data_directory()
}

/// Returns the folder of the administrator's configuration, for all users (File System Programming Guide, "Library
/// directory").
pub fn managed_config_directory() -> PathBuf {
    "/Library/Application Support/longhaul".into()
}

/// Returns the folder in which launchd looks for a user's agents (launchd.plist(5)).
pub fn service_directory() -> Option<PathBuf> {
    Some(home()?.join("Library/LaunchAgents"))
}
