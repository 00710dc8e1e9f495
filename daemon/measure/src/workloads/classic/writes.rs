//! Which files are being written: what is read meanwhile may be half old and half new, as no file system promises else
//! across pages or across a network, so that nothing can be said of it.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Files that share a counter only make a few reads more count as unsettled.
const COUNTERS: usize = 512;

/// Counts writes as they begin and end.
pub struct Writes {
    counters: Box<[Counter]>,
}

#[derive(Default)]
struct Counter {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// A write that goes on for as long as this value lives.
pub struct Writing<'a> {
    ended: &'a AtomicU64,
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.ended.fetch_add(1, SeqCst);
    }
}

/// A moment in which nobody wrote to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settled {
    begun: u64,
}

impl Default for Writes {
    fn default() -> Self {
        Self { counters: (0..COUNTERS).map(|_| Counter::default()).collect() }
    }
}

impl Writes {
    /// Somebody writes to a file from now on.
    pub fn begin(&self, file: u64) -> Writing<'_> {
        let counter = self.of(file);
        counter.begun.fetch_add(1, SeqCst);
        Writing { ended: &counter.ended }
    }

    /// This moment; `None` if somebody is writing to the file.
    pub fn settled(&self, file: u64) -> Option<Settled> {
        // In this order: when the second is looked at, as many had begun as had ended by the first.
        let ended = self.of(file).ended.load(SeqCst);
        let begun = self.of(file).begun.load(SeqCst);
        (begun == ended).then_some(Settled { begun })
    }

    /// Whether nobody has written to the file since then.
    pub fn is_settled_since(&self, file: u64, then: Settled) -> bool {
        self.of(file).begun.load(SeqCst) == then.begun
    }

    fn of(&self, file: u64) -> &Counter {
        &self.counters[(file % COUNTERS as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_unsettles_what_is_read_before_its_end_and_after_its_begin() {
        let writes = Writes::default();
        let before = writes.settled(7).unwrap();
        assert!(writes.is_settled_since(7, before));
        let writing = writes.begin(7);
        assert_eq!(writes.settled(7), None);
        assert!(!writes.is_settled_since(7, before));
        drop(writing);
        assert!(!writes.is_settled_since(7, before), "it was there in between");
        assert!(writes.settled(7).is_some_and(|now| writes.is_settled_since(7, now)));
        assert!(writes.is_settled_since(8, writes.settled(8).unwrap()), "another file");
    }

    #[test]
    fn one_of_two_writers_that_ends_settles_nothing() {
        let writes = Writes::default();
        let (first, second) = (writes.begin(7), writes.begin(7));
        drop(first);
        assert_eq!(writes.settled(7), None);
        drop(second);
        assert!(writes.settled(7).is_some());
    }
}
