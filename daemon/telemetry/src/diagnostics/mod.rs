//! The service's own log and what it was busy with, on their way to the collector, for whoever looks for a fault in longhaul.
//! Nothing of it is kept: what does not fit while a collector is away is dropped and counted; the log is in its file anyway.

mod lanes;
mod line;
mod work;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) use lanes::Lanes;
pub use line::Line;
pub use work::{Place, Work};

/// Lines that wait at most, and likewise pieces of work.
const MOST: usize = 2000;
/// So many go with one message.
const MOST_AT_ONCE: usize = 512;

/// Lines and pieces of work between whoever tells them and the exporter. Clones share them. To put one in takes no time to
/// speak of, and nobody waits for a collector.
#[derive(Clone, Default)]
pub struct Diagnostics {
    wanted: Arc<AtomicBool>,
    lines: Queue<Line>,
    work: Queue<Work>,
}

impl Diagnostics {
    /// Whether anybody wants them: while nobody does, none need be made.
    pub fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    /// Puts a line in; the oldest makes room.
    pub fn push(&self, line: Line) {
        self.lines.push(line);
    }

    /// Puts in what the service has done; the oldest makes room.
    pub fn push_work(&self, work: Work) {
        self.work.push(work);
    }

    pub(crate) fn want(&self, is_wanted: bool) {
        self.wanted.store(is_wanted, Ordering::Relaxed);
        if !is_wanted {
            self.lines.clear();
            self.work.clear();
        }
    }
}

/// What waits, oldest first, and how many had to make room.
struct Queue<T>(Arc<Mutex<(VecDeque<T>, u64)>>);

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Queue<T> {
    fn push(&self, one: T) {
        let (kept, dropped) = &mut *self.lock();
        if kept.len() >= MOST {
            kept.pop_front();
            *dropped += 1;
        }
        kept.push_back(one);
    }

    /// The oldest, as many as go with a message, and how many were dropped before them.
    fn take(&self) -> (Vec<T>, u64) {
        let (kept, dropped) = &mut *self.lock();
        let most = kept.len().min(MOST_AT_ONCE);
        (kept.drain(..most).collect(), std::mem::take(dropped))
    }

    fn give_back(&self, taken: Vec<T>, missing: u64) {
        let (kept, dropped) = &mut *self.lock();
        let lost = taken.len().saturating_sub(MOST.saturating_sub(kept.len()));
        *dropped += missing + lost as u64;
        taken.into_iter().skip(lost).rev().for_each(|one| kept.push_front(one));
    }

    fn clear(&self) {
        *self.lock() = (VecDeque::new(), 0);
    }

    fn lock(&self) -> MutexGuard<'_, (VecDeque<T>, u64)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_make_room_and_are_counted() {
        let queue = Queue::default();
        (0..MOST + 3).for_each(|number| queue.push(number));
        let (taken, dropped) = queue.take();
        assert_eq!((taken[0], taken.len(), dropped), (3, MOST_AT_ONCE, 3));
        (0..10).for_each(|number| queue.push(number));
        queue.give_back(taken, dropped);
        let (taken, dropped) = queue.take();
        assert_eq!((taken[0], dropped), (13, 13), "the newest of them are kept, in order");
    }

    #[test]
    fn what_nobody_wants_any_more_is_forgotten() {
        let diagnostics = Diagnostics::default();
        diagnostics.want(true);
        diagnostics.push_work(work::tests::work(1));
        diagnostics.want(false);
        assert_eq!((diagnostics.is_wanted(), diagnostics.work.take().0.len()), (false, 0));
    }
}
