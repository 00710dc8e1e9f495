//! Conversions between what the kernel asks and what system calls take.

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, INodeNo, TimeOrNow};
use longhaul_recording::{Access, ActionResult, CreateMode, FoundFile, OpenMode};
use rustix::fs::{OFlags, Stat, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};

/// Returns the attributes of a file in the form that the kernel expects.
pub fn attributes(found: &Stat, number: u64) -> FileAttr {
    let changed = time(found.st_ctime, found.st_ctime_nsec as i64);
    FileAttr {
        ino: INodeNo(number),
        size: found.st_size.cast_unsigned(),
        blocks: found.st_blocks.cast_unsigned(),
        atime: time(found.st_atime, found.st_atime_nsec as i64),
        mtime: time(found.st_mtime, found.st_mtime_nsec as i64),
        ctime: changed,
        crtime: changed,
        kind: kind(rustix::fs::FileType::from_raw_mode(found.st_mode)),
        perm: (found.st_mode & 0o7777) as u16,
        nlink: u32::try_from(found.st_nlink).unwrap_or(u32::MAX),
        uid: found.st_uid,
        gid: found.st_gid,
        rdev: found.st_rdev as u32,
        blksize: u32::try_from(found.st_blksize).unwrap_or(4096),
        flags: 0,
    }
}

/// Returns a kind of file in the form that the kernel expects.
pub fn kind(kind: rustix::fs::FileType) -> FileType {
    use rustix::fs::FileType as Kind;
    match kind {
        Kind::Directory => FileType::Directory,
        Kind::Symlink => FileType::Symlink,
        Kind::Fifo => FileType::NamedPipe,
        Kind::Socket => FileType::Socket,
        Kind::CharacterDevice => FileType::CharDevice,
        Kind::BlockDevice => FileType::BlockDevice,
        Kind::RegularFile | Kind::Unknown => FileType::RegularFile,
    }
}

fn time(seconds: i64, nanoseconds: i64) -> SystemTime {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let base = if seconds < 0 { UNIX_EPOCH.checked_sub(whole) } else { UNIX_EPOCH.checked_add(whole) };
    base.unwrap_or(UNIX_EPOCH) + Duration::from_nanos(nanoseconds.unsigned_abs())
}

/// Returns the times to set; an absent one stays as it is.
pub fn timestamps(accessed: Option<TimeOrNow>, modified: Option<TimeOrNow>) -> Timestamps {
    Timestamps { last_access: timespec(accessed), last_modification: timespec(modified) }
}

fn timespec(time: Option<TimeOrNow>) -> Timespec {
    match time {
        None => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        Some(TimeOrNow::Now) => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        Some(TimeOrNow::SpecificTime(time)) => match time.duration_since(UNIX_EPOCH) {
            Ok(after) => {
                Timespec { tv_sec: after.as_secs() as i64, tv_nsec: i64::from(after.subsec_nanos()) }
            }
            Err(before) => before_epoch(before.duration()),
        },
    }
}

/// Seconds are rounded down, because the nanoseconds always count forward.
fn before_epoch(before: Duration) -> Timespec {
    let seconds = before.as_secs() as i64;
    match before.subsec_nanos() {
        0 => Timespec { tv_sec: -seconds, tv_nsec: 0 },
        nanoseconds => Timespec { tv_sec: -seconds - 1, tv_nsec: 1_000_000_000 - i64::from(nanoseconds) },
    }
}

/// Returns the flags with which a program opened a file, without those that the kernel handles itself, or adds for itself, as it does
/// for a program that is started: `openat2` refuses what it does not know. `O_DIRECT` would need aligned buffers.
pub fn open_flags(flags: i32) -> OFlags {
    let passed_on = OFlags::RWMODE
        | OFlags::APPEND
        | OFlags::DIRECTORY
        | OFlags::NOATIME
        | OFlags::NONBLOCK
        | OFlags::SYNC
        | OFlags::TRUNC;
    OFlags::from_bits_retain(flags.cast_unsigned()) & passed_on
}

/// Returns the way in which a file was opened, by the flags of the program.
pub fn open_mode(flags: i32) -> OpenMode {
    let asked = OFlags::from_bits_retain(flags.cast_unsigned());
    let access = match flags & libc::O_ACCMODE {
        libc::O_WRONLY => Access::Write,
        libc::O_RDWR => Access::ReadWrite,
        _ => Access::Read,
    };
    let create = match (asked.contains(OFlags::CREATE), asked.contains(OFlags::EXCL)) {
        (false, _) => CreateMode::Never,
        (true, false) => CreateMode::IfAbsent,
        (true, true) => CreateMode::Exclusive,
    };
    OpenMode {
        access,
        create,
        truncate: asked.contains(OFlags::TRUNC),
        folder: asked.contains(OFlags::DIRECTORY),
    }
}

/// Returns what a trace shows of a file.
pub fn found_file(found: &FileAttr) -> FoundFile {
    match found.kind {
        FileType::Directory => FoundFile::Folder,
        FileType::Symlink => FoundFile::Link,
        _ => FoundFile::File(found.size),
    }
}

/// Returns the answer of a call as it is recorded.
pub fn result_of<T>(answer: &io::Result<T>) -> ActionResult {
    match answer.as_ref().map_err(|error| error.raw_os_error()) {
        Ok(_) => ActionResult::Done,
        Err(Some(libc::ENOENT)) => ActionResult::NotFound,
        Err(Some(libc::EEXIST)) => ActionResult::Exists,
        Err(_) => ActionResult::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_1970_are_kept() {
        for nanoseconds in [0, 1, 999_999_999] {
            let moment = UNIX_EPOCH - Duration::new(5, nanoseconds);
            let set = timespec(Some(TimeOrNow::SpecificTime(moment)));
            assert_eq!(time(set.tv_sec, set.tv_nsec), moment);
        }
    }

    #[test]
    fn ways_of_opening_are_recognized() {
        let mode = open_mode(libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_TRUNC);
        let expected = OpenMode {
            access: Access::ReadWrite,
            create: CreateMode::Exclusive,
            truncate: true,
            folder: false,
        };
        assert_eq!(mode, expected);
        assert_eq!(
            open_flags(libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND),
            OFlags::WRONLY | OFlags::APPEND
        );
    }

    #[test]
    fn flags_that_openat2_refuses_are_left_out() {
        // `__FMODE_EXEC` (linux/fs.h): the kernel opens a program to start it.
        let start = 0x20;
        assert_eq!(open_flags(libc::O_RDONLY | start), OFlags::RDONLY);
        assert_eq!(open_flags(libc::O_RDWR | libc::O_DIRECT | libc::O_SYNC), OFlags::RDWR | OFlags::SYNC);
    }
}
