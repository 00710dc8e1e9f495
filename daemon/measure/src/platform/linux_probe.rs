//! Platform calls on Linux that only the latency probe uses. inotify is called without the `notify` crate: its thread
//! would wake up each time the probe opens its own folder, because it always asks for `IN_OPEN` (notify 8.2.1).

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::fs::{Advice, AtFlags, StatxFlags};
use rustix::io::Errno;
use rustix::time::ClockId;

use super::linux::clock_ns;

/// Returns the CPU time that this thread has used, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    clock_ns(ClockId::ThreadCPUTime)
}

/// Disables read-ahead for this file handle, so that reads fetch only the requested bytes.
pub fn disable_read_ahead(file: BorrowedFd<'_>) -> io::Result<()> {
    Ok(rustix::fs::fadvise(file, 0, None, Advice::Random)?)
}

/// Returns the device number of the file system that holds an open file, from this machine's cache:
/// `STATX_DONT_SYNC` sends no request to a server (statx(2)).
pub fn device_of(file: BorrowedFd<'_>) -> io::Result<u64> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let facts = rustix::fs::statx(file, c"", flags, StatxFlags::empty())?;
    Ok(rustix::fs::makedev(facts.stx_dev_major, facts.stx_dev_minor))
}

/// Watch that reports changes in a folder, without its subfolders (inotify(7)).
///
/// On a share (FUSE, NFS, SMB) only changes made by this machine are reported: the server sends no
/// notifications. The watch does not prevent the share from being unmounted.
pub struct FolderWatch {
    queue: OwnedFd,
}

impl FolderWatch {
    /// Starts to watch a folder; `None` if the system cannot. Accesses the folder once, which may block on a
    /// dead share.
    ///
    /// # Errors
    ///
    /// If the folder cannot be accessed, or if there are too many watches.
    pub fn new(folder: &Path) -> io::Result<Option<Self>> {
        let queue = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let wanted = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVE
            | WatchFlags::MODIFY
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::ONLYDIR;
        inotify::add_watch(&queue, folder, wanted)?;
        Ok(Some(Self { queue }))
    }

    /// Returns whether something changed since the last call, except for names that `ours` accepts. Never
    /// blocks.
    pub fn has_changed(&self, ours: impl Fn(&[u8]) -> bool) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 1024];
        let mut events = inotify::Reader::new(&self.queue, &mut buffer);
        let mut changed = false;
        loop {
            match events.next() {
                Ok(event) => {
                    let is_ours = event.file_name().is_some_and(|name| ours(name.to_bytes()));
                    // IGNORED and UNMOUNT mean that the folder no longer exists, not that a user changed
                    // something in it.
                    let is_removed = event.events().intersects(ReadFlags::IGNORED | ReadFlags::UNMOUNT);
                    changed |= !is_ours && !is_removed;
                }
                Err(Errno::INTR) => {}
                Err(_) => return changed,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn changes_by_users_are_reported_once() {
        let folder = tempfile::tempdir().unwrap();
        let watch = FolderWatch::new(folder.path()).unwrap().unwrap();
        let changed = || watch.has_changed(|name| name.starts_with(b".longhaul-"));
        std::fs::create_dir(folder.path().join(".longhaul-m-nas")).unwrap();
        std::fs::write(folder.path().join(".longhaul-m-nas/pool"), "x").unwrap();
        assert!(!changed(), "the sandbox and its files do not count");
        std::fs::write(folder.path().join("notes.txt"), "x").unwrap();
        assert!(changed());
        assert!(!changed(), "each change is reported once");
        std::fs::read(folder.path().join("notes.txt")).unwrap();
        assert!(!changed(), "reading changes nothing");
    }

    #[test]
    fn removal_of_the_folder_itself_is_not_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let watch = FolderWatch::new(folder.path()).unwrap().unwrap();
        drop(folder);
        assert!(!watch.has_changed(|_| false));
    }

    #[test]
    fn two_file_systems_have_different_device_numbers() {
        let number = |path: &str| device_of(std::fs::File::open(path).unwrap().as_fd()).unwrap();
        assert_eq!(number("/proc/self"), number("/proc/1"));
        assert_ne!(number("/proc"), number("/sys"));
    }

    #[test]
    fn a_busy_thread_uses_cpu_time() {
        let before = thread_cpu_ns();
        std::hint::black_box((0..1_000_000u64).fold(1, |a, b| std::hint::black_box(a ^ b)));
        assert!(thread_cpu_ns() > before);
    }
}
