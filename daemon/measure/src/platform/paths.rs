//! Calls on names below a folder, at any depth. No link on the way is followed.
//!
//! A program that uses a long path makes the client look up each folder on the way. So does this, unlike a call that is
//! relative to an open folder.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};

use super::unix::{self, Access};

/// Place of a name below a folder: the path of the folder that contains it (`.` for the folder itself), and the name.
#[derive(Debug, Clone, Copy)]
pub struct NameBelow<'a> {
    /// Path of the folder that contains the name.
    pub parent: &'a CStr,
    /// The name.
    pub name: &'a CStr,
}

/// Opens a folder below a folder.
pub fn open_folder_below(directory: BorrowedFd<'_>, path: &CStr) -> io::Result<OwnedFd> {
    system::open_below(directory, path, OFlags::RDONLY | OFlags::DIRECTORY)
}

/// Opens only the path of a file or folder below a folder.
pub fn open_path_only_below(directory: BorrowedFd<'_>, path: &CStr) -> io::Result<OwnedFd> {
    system::open_below(directory, path, system::PATH_ONLY)
}

/// Opens an existing file below a folder. A pipe that another client of the share put there is not waited for.
pub fn open_below(directory: BorrowedFd<'_>, path: &CStr, access: Access) -> io::Result<OwnedFd> {
    system::open_below(directory, path, access.flags() | OFlags::NONBLOCK)
}

/// Creates and opens a file below a folder, which must not exist yet, with mode 0644.
pub fn create_below(directory: BorrowedFd<'_>, path: &CStr, access: Access) -> io::Result<OwnedFd> {
    system::open_below(directory, path, access.flags() | OFlags::CREATE | OFlags::EXCL)
}

/// Change of a name below a folder.
#[derive(Debug, Clone, Copy)]
pub enum NameChange<'a> {
    /// Removes a file.
    Unlink(NameBelow<'a>),
    /// Creates a folder, with mode 0755.
    CreateFolder(NameBelow<'a>),
    /// Removes an empty folder.
    RemoveFolder(NameBelow<'a>),
    /// Renames a file or folder, also over an existing file.
    Rename(NameBelow<'a>, NameBelow<'a>),
    /// Renames a file or folder to a name that does not exist. Linux refuses an existing one for every file system
    /// (`renameat2(2)`, since 3.15); a Mac where the file system can (`renameatx_np(2)`).
    RenameToNew(NameBelow<'a>, NameBelow<'a>),
    /// Creates a second name of a file.
    HardLink(NameBelow<'a>, NameBelow<'a>),
    /// Creates a symbolic link to a name that does not exist.
    SymbolicLink(NameBelow<'a>),
    /// Sets the modification time, in nanoseconds since 1970 UTC.
    SetTimes(NameBelow<'a>, i64),
}

/// Destination of the symbolic links that replays make.
const NOWHERE: &CStr = c"nowhere";

/// Changes a name below a folder.
pub fn change_name_below(directory: BorrowedFd<'_>, change: NameChange<'_>) -> io::Result<()> {
    use NameChange as C;
    let open = |at: NameBelow<'_>| open_parent(directory, at);
    match change {
        C::Unlink(at) => unix::unlink_at(open(at)?.as_fd(), at.name),
        C::CreateFolder(at) => unix::make_directory_at(open(at)?.as_fd(), at.name),
        C::RemoveFolder(at) => unix::remove_directory_at(open(at)?.as_fd(), at.name),
        C::Rename(from, to) => Ok(rustix::fs::renameat(open(from)?, from.name, open(to)?, to.name)?),
        C::RenameToNew(from, to) => {
            let (old, new) = (open(from)?, open(to)?);
            Ok(rustix::fs::renameat_with(old, from.name, new, to.name, RenameFlags::NOREPLACE)?)
        }
        C::HardLink(from, to) => {
            let (old, new) = (open(from)?, open(to)?);
            Ok(rustix::fs::linkat(old, from.name, new, to.name, AtFlags::empty())?)
        }
        C::SymbolicLink(at) => Ok(rustix::fs::symlinkat(NOWHERE, open(at)?, at.name)?),
        // Not through a checked handle: a recording may have made hard links of the file in its tree.
        C::SetTimes(at, modified_ns) => unix::set_times_by_name(open(at)?.as_fd(), at.name, modified_ns),
    }
}

/// Sets both times of an open file, in nanoseconds since 1970 UTC.
pub fn set_handle_times(file: BorrowedFd<'_>, time_ns: i64) -> io::Result<()> {
    Ok(rustix::fs::futimens(file, &unix::both_times(time_ns))?)
}

/// Reads the attributes of an open file.
pub fn read_handle_attributes(file: BorrowedFd<'_>) -> io::Result<()> {
    rustix::fs::fstat(file)?;
    Ok(())
}

/// Reads the attributes of a name below a folder without the time of the last access, where the system can leave it out (Linux). Asking
/// for it is a request more over NFS for a folder that was just listed (`nfs_getattr` in fs/nfs/inode.c of Linux 6.1).
pub fn read_attributes_but_access_time(directory: BorrowedFd<'_>, path: &CStr) -> io::Result<()> {
    system::attributes_but_access_time(directory, path)
}

/// Returns the folder that contains a name, for calls that take one.
fn open_parent(directory: BorrowedFd<'_>, at: NameBelow<'_>) -> io::Result<OwnedFd> {
    system::open_below(directory, at.parent, system::FOLDER_PATH_ONLY)
}

#[cfg(target_os = "linux")]
mod system {
    use super::*;
    use rustix::fs::{ResolveFlags, StatxFlags};

    /// `O_PATH` refers to a folder without opening it, so no request is sent for it (open(2)).
    pub const FOLDER_PATH_ONLY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);
    /// `O_PATH` refers to a file or folder without opening it.
    pub const PATH_ONLY: OFlags = OFlags::PATH;

    pub fn open_below(directory: BorrowedFd<'_>, path: &CStr, flags: OFlags) -> io::Result<OwnedFd> {
        let mode = if flags.contains(OFlags::CREATE) { Mode::from_raw_mode(0o644) } else { Mode::empty() };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        Ok(rustix::fs::openat2(directory, path, flags | OFlags::CLOEXEC, mode, resolve)?)
    }

    pub fn attributes_but_access_time(directory: BorrowedFd<'_>, path: &CStr) -> io::Result<()> {
        let wanted = StatxFlags::BASIC_STATS.difference(StatxFlags::ATIME);
        rustix::fs::statx(directory, path, AtFlags::SYMLINK_NOFOLLOW, wanted)?;
        Ok(())
    }
}

#[cfg(target_os = "macos")]
mod system {
    use super::*;

    /// `O_SEARCH` opens a folder only for searching it (xnu bsd/sys/fcntl.h:187).
    pub const FOLDER_PATH_ONLY: OFlags = OFlags::from_bits_retain(0x4000_0000).union(OFlags::DIRECTORY);
    /// `O_RDONLY` opens a file or folder for reading, because macOS has nothing like `O_PATH` for files. `O_NONBLOCK` does not wait for
    /// the writer of a pipe.
    pub const PATH_ONLY: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK);
    /// No link is followed in any part of a path (`O_NOFOLLOW_ANY`, xnu bsd/sys/fcntl.h:182).
    const NO_LINKS: OFlags = OFlags::from_bits_retain(0x2000_0000);

    pub fn open_below(directory: BorrowedFd<'_>, path: &CStr, flags: OFlags) -> io::Result<OwnedFd> {
        let mode = if flags.contains(OFlags::CREATE) { Mode::from_raw_mode(0o644) } else { Mode::empty() };
        Ok(rustix::fs::openat(directory, path, flags | NO_LINKS | OFlags::CLOEXEC, mode)?)
    }

    pub fn attributes_but_access_time(directory: BorrowedFd<'_>, path: &CStr) -> io::Result<()> {
        rustix::fs::statat(directory, path, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn opening_a_pipe_does_not_wait() {
        let folder = tempfile::tempdir().unwrap();
        let made = std::process::Command::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap();
        assert!(made.success());
        let folder = unix::open_directory(folder.path()).unwrap();
        drop(open_below(folder.as_fd(), c"pipe", Access::Read));
        drop(open_path_only_below(folder.as_fd(), c"pipe"));
        assert!(open_below(folder.as_fd(), c"pipe", Access::Write).is_err(), "there is no reader");
    }

    #[test]
    fn no_link_on_the_way_is_followed() {
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(outside.path().join("file"), "theirs").unwrap();
        symlink(outside.path(), inside.path().join("link")).unwrap();
        let folder = unix::open_directory(inside.path()).unwrap();
        let at = NameBelow { parent: c"link", name: c"file" };
        assert!(open_below(folder.as_fd(), c"link/file", Access::Read).is_err());
        assert!(open_folder_below(folder.as_fd(), c"link").is_err());
        assert!(open_path_only_below(folder.as_fd(), c"link").is_err());
        let change = |change| change_name_below(folder.as_fd(), change);
        assert!(change(NameChange::Unlink(at)).is_err());
        assert!(change(NameChange::CreateFolder(NameBelow { parent: c"link", name: c"new" })).is_err());
        let own = NameBelow { parent: c".", name: c"own" };
        drop(create_below(folder.as_fd(), c"own", Access::Write).unwrap());
        assert!(
            change(NameChange::Rename(own, at)).is_err() && change(NameChange::HardLink(own, at)).is_err()
        );
        assert!(change(NameChange::RenameToNew(own, at)).is_err());
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
        change(NameChange::Unlink(own)).unwrap();
    }
}
