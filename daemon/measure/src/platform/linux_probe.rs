//! What only the light probe asks of Linux.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::fs::{Advice, AtFlags, StatxFlags};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

/// Processor time that this thread has taken, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Lets reads through this handle fetch what they ask for and no more.
pub fn without_read_ahead(file: BorrowedFd<'_>) -> io::Result<()> {
    Ok(rustix::fs::fadvise(file, 0, None, Advice::Random)?)
}

/// The number of the file system that an open file lies on, from this machine's memory: `STATX_DONT_SYNC` asks no server
/// (statx(2)).
pub fn device_of(file: BorrowedFd<'_>) -> io::Result<u64> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let facts = rustix::fs::statx(file, c"", flags, StatxFlags::empty())?;
    Ok(rustix::fs::makedev(facts.stx_dev_major, facts.stx_dev_minor))
}

/// Hears of changes in a folder, without its subfolders (inotify(7)).
///
/// Of a share (FUSE, NFS, SMB) it hears only what this machine changes: nothing comes from the server. It keeps nobody
/// from unmounting the share.
pub struct FolderWatch {
    queue: OwnedFd,
}

impl FolderWatch {
    /// Hears from now on; `None` where the system cannot. Asks for the folder once, which may block on a dead share.
    ///
    /// # Errors
    ///
    /// If the folder cannot be reached, or there are too many watches.
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

    /// Whether something changed since the last time, but for the names that are `ours`. Never blocks.
    pub fn changed(&self, ours: impl Fn(&[u8]) -> bool) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 1024];
        let mut events = inotify::Reader::new(&self.queue, &mut buffer);
        let mut changed = false;
        loop {
            match events.next() {
                Ok(event) => {
                    let is_ours = event.file_name().is_some_and(|name| ours(name.to_bytes()));
                    // IGNORED and UNMOUNT say that the folder went, not that somebody changed it.
                    let went = event.events().intersects(ReadFlags::IGNORED | ReadFlags::UNMOUNT);
                    changed |= !is_ours && !went;
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
    fn changes_are_heard_once_and_ours_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let watch = FolderWatch::new(folder.path()).unwrap().unwrap();
        let changed = || watch.changed(|name| name.starts_with(b".longhaul-"));
        std::fs::create_dir(folder.path().join(".longhaul-m-nas")).unwrap();
        std::fs::write(folder.path().join(".longhaul-m-nas/pool"), "x").unwrap();
        assert!(!changed(), "neither the arena nor what is in it");
        std::fs::write(folder.path().join("diary.txt"), "x").unwrap();
        assert!(changed());
        assert!(!changed(), "once");
        std::fs::read(folder.path().join("diary.txt")).unwrap();
        assert!(!changed(), "reading changes nothing");
    }

    #[test]
    fn a_folder_that_goes_away_is_no_change_by_somebody() {
        let folder = tempfile::tempdir().unwrap();
        let watch = FolderWatch::new(folder.path()).unwrap().unwrap();
        drop(folder);
        assert!(!watch.changed(|_| false));
    }

    #[test]
    fn two_file_systems_have_two_numbers() {
        let number = |path: &str| device_of(std::fs::File::open(path).unwrap().as_fd()).unwrap();
        assert_eq!(number("/proc/self"), number("/proc/1"));
        assert_ne!(number("/proc"), number("/sys"));
    }

    #[test]
    fn a_thread_that_works_takes_processor_time() {
        let before = thread_cpu_ns();
        std::hint::black_box((0..1_000_000u64).fold(1, |a, b| std::hint::black_box(a ^ b)));
        assert!(thread_cpu_ns() > before);
    }
}
