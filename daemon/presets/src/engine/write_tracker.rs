//! Tracks which files are being written, so that reads that overlap a write are not verified.
//!
//! Such a read may return a mix of old and new bytes: no file system guarantees atomic reads across pages or
//! across a network.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// The number of counters. Files share counters by number modulo this value.
///
/// A write to a file that shares a counter only means that a few more reads are not verified.
const COUNTERS: usize = 512;

/// Counts the started and ended writes of each file.
pub struct WriteTracker {
    counters: Box<[Counter]>,
}

#[derive(Default)]
struct Counter {
    started: AtomicU64,
    ended: AtomicU64,
}

/// A write in progress; dropping the guard ends the write.
pub struct WriteGuard<'a> {
    ended: &'a AtomicU64,
}

impl Drop for WriteGuard<'_> {
    fn drop(&mut self) {
        self.ended.fetch_add(1, SeqCst);
    }
}

/// A point in time at which no write to a file was in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteMark {
    started: u64,
}

impl Default for WriteTracker {
    fn default() -> Self {
        Self { counters: (0..COUNTERS).map(|_| Counter::default()).collect() }
    }
}

impl WriteTracker {
    /// Registers the start of a write to a file. The write ends when the guard is dropped.
    pub fn start_write(&self, file: u64) -> WriteGuard<'_> {
        let counter = self.counter(file);
        counter.started.fetch_add(1, SeqCst);
        WriteGuard { ended: &counter.ended }
    }

    /// Returns a mark for the current time; `None` if a write to the file is in progress.
    pub fn mark_if_idle(&self, file: u64) -> Option<WriteMark> {
        // `ended` must be loaded first. If both counts are equal, every write that had started by the second load
        // had already ended at the first load.
        let ended = self.counter(file).ended.load(SeqCst);
        let started = self.counter(file).started.load(SeqCst);
        (started == ended).then_some(WriteMark { started })
    }

    /// Returns whether no write to the file has started since the mark.
    pub fn is_unchanged_since(&self, file: u64, mark: WriteMark) -> bool {
        self.counter(file).started.load(SeqCst) == mark.started
    }

    fn counter(&self, file: u64) -> &Counter {
        &self.counters[(file % COUNTERS as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_invalidates_overlapping_reads() {
        let writes = WriteTracker::default();
        let before = writes.mark_if_idle(7).unwrap();
        assert!(writes.is_unchanged_since(7, before));
        let writing = writes.start_write(7);
        assert_eq!(writes.mark_if_idle(7), None);
        assert!(!writes.is_unchanged_since(7, before));
        drop(writing);
        assert!(!writes.is_unchanged_since(7, before), "a write happened since the mark");
        assert!(writes.mark_if_idle(7).is_some_and(|now| writes.is_unchanged_since(7, now)));
        assert!(
            writes.is_unchanged_since(8, writes.mark_if_idle(8).unwrap()),
            "the write was to another file"
        );
    }

    #[test]
    fn a_file_is_idle_only_after_its_last_writer_ends() {
        let writes = WriteTracker::default();
        let (first, second) = (writes.start_write(7), writes.start_write(7));
        drop(first);
        assert_eq!(writes.mark_if_idle(7), None);
        drop(second);
        assert!(writes.mark_if_idle(7).is_some());
    }
}
