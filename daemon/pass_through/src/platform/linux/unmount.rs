//! Unmounting: by the system call as root, else with fusermount3.

use std::ffi::CString;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::programs;
use crate::End;

/// Time in which programs may still close their files before the file system is detached. It is for programs that are
/// about to end, and for child processes, which have copies of their parent's handles until they start a program.
pub const GRACE: Duration = Duration::from_secs(1);
/// Time between two attempts to unmount.
const STEP: Duration = Duration::from_millis(50);

/// Unmounts a file system. If it is still in use after `grace`, it is detached: it vanishes, and ends with its last user.
pub fn unmount(mount_point: &Path, grace: Duration) -> End {
    if is_unmounted_within(grace, mount_point) {
        return End::Unmounted;
    }
    let users = programs::using(mount_point);
    match detach(mount_point) {
        Ok(()) => End::Detached(users),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => End::Unmounted,
        Err(_) => End::StillMounted,
    }
}

fn is_unmounted_within(grace: Duration, mount_point: &Path) -> bool {
    let until = Instant::now() + grace;
    loop {
        match try_unmount(mount_point, Unmounting::Unused) {
            Ok(()) => return true,
            Err(error) if error.kind() == ErrorKind::ResourceBusy && Instant::now() < until => {
                std::thread::sleep(STEP)
            }
            Err(_) => return false,
        }
    }
}

/// Detaches a file system.
pub fn detach(mount_point: &Path) -> io::Result<()> {
    try_unmount(mount_point, Unmounting::Detach)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Unmounting {
    Unused,
    Detach,
}

fn try_unmount(mount_point: &Path, manner: Unmounting) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return with_helper(mount_point, manner);
    }
    let path = CString::new(mount_point.as_os_str().as_bytes())?;
    let flags = libc::UMOUNT_NOFOLLOW | if manner == Unmounting::Detach { libc::MNT_DETACH } else { 0 };
    // SAFETY: the path is a terminated string that lives during the call.
    let answer = unsafe { libc::umount2(path.as_ptr(), flags) };
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn with_helper(mount_point: &Path, manner: Unmounting) -> io::Result<()> {
    let flags = if manner == Unmounting::Detach { "-uz" } else { "-u" };
    let mut command = Command::new("fusermount3");
    let quiet = command.arg(flags).arg("--").arg(mount_point).stdout(Stdio::null()).stderr(Stdio::null());
    match quiet.status()?.success() {
        true => Ok(()),
        false => Err(ErrorKind::ResourceBusy.into()),
    }
}
