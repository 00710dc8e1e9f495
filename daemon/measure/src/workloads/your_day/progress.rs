//! The progress of replay threads, for which others wait.

use std::hint::spin_loop;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, SeqCst};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::error::RunError;
use crate::timed_fs::TimedFs;
use longhaul_recording::plan::Wait;

/// Number of looks before a thread sleeps.
const SPINS: u32 = 200;
/// Longest sleep between two checks for a stop.
const SLEEP: Duration = Duration::from_millis(20);

/// The progress of one thread, in a cache line of its own.
#[repr(align(128))]
#[derive(Default)]
struct ThreadProgress {
    steps: AtomicU32,
    sleepers: AtomicU32,
    lock: Mutex<()>,
    changed: Condvar,
}

/// The progress of all threads.
pub struct AllProgress(Vec<ThreadProgress>);

impl AllProgress {
    pub fn new(threads: usize) -> Self {
        Self((0..threads).map(|_| ThreadProgress::default()).collect())
    }

    /// Notes that a thread completed this many steps.
    #[inline]
    pub fn set(&self, thread: usize, steps: u32) {
        let own = &self.0[thread];
        own.steps.store(steps, SeqCst);
        if own.sleepers.load(SeqCst) > 0 {
            let _guard = own.lock.lock();
            own.changed.notify_all();
        }
    }

    /// Lets all others go on: this thread makes no further step.
    pub fn give_up(&self, thread: usize) {
        self.set(thread, u32::MAX);
    }

    /// Waits for a step of another thread.
    ///
    /// # Errors
    ///
    /// [`RunError::Stopped`] if a stop was requested.
    pub fn wait(&self, context: &TimedFs<'_>, wait: Wait) -> Result<(), RunError> {
        let other = &self.0[wait.lane as usize];
        for _ in 0..SPINS {
            if other.steps.load(Acquire) >= wait.steps {
                return Ok(());
            }
            spin_loop();
        }
        let mut guard = other.lock.lock();
        other.sleepers.fetch_add(1, SeqCst);
        let mut stopped = Ok(());
        while other.steps.load(SeqCst) < wait.steps && stopped.is_ok() {
            other.changed.wait_for(&mut guard, SLEEP);
            stopped = context.pause(Duration::ZERO);
        }
        other.sleepers.fetch_sub(1, SeqCst);
        stopped
    }
}
