//! Replay plans: what each thread of a replay does, and which steps of other threads it waits for.
//!
//! ```text
//! Recording -> Threads (which replay thread) -> TreeState (which answer) -> Ordering (which waits) -> ReplayThread (columns)
//! ```
//!
//! - **Threads**: a recorded thread gets a replay thread of its own, or that of one which ended before it began. Beyond the
//!   limit, several share one and keep their order.
//! - **Beginnings**: a thread begins its pause when the operation before its first one is complete, so that a replay that takes
//!   longer elsewhere starts it as much later. A thread that waited while others came and went goes on after them, and pauses
//!   first if their pauses and operations together explain less than half of its own pause.
//! - **Pauses** are the means of their classes, each capped.
//! - **Names**: a path that the program gave from an open folder is given from it again, if that folder is open then and has not been
//!   renamed; all others from the recorded folder.
//! - **Answers**: each operation has one answer in the tree as it is known. An operation that is impossible there is left out and
//!   counted; the names in a renamed folder are not known, so that operations on them are left out. One that failed for an
//!   unknown reason becomes a question for attributes.

mod action;
mod answers;
mod compile;
mod corpus;
mod order;
mod ordering;
mod steps;
mod thread_lifetimes;
mod threads;
mod tree_state;

#[cfg(test)]
mod tests;

use std::time::Duration;

pub use action::{FileNumber, Opening, PlannedAction, Slot};
pub use corpus::PlannedNode;
pub use steps::{ReplayStep, ReplayThread, Steps, Wait};

use crate::Recording;

/// Limits of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest number of replay threads.
    pub threads: usize,
    /// Longest pause between two operations of a thread.
    pub pause: Duration,
}

/// Longest pause between two operations of a replay. Recorded pauses that are longer are shortened to it.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Plan of a replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayPlan {
    /// The replay threads.
    pub lanes: Vec<ReplayThread>,
    /// The names, with their state before the replay begins. The first one is the folder itself.
    pub nodes: Vec<PlannedNode>,
    /// Number of places for open files.
    pub slots: u32,
    /// Length of a pause of each class, in nanoseconds.
    pub pauses: Vec<u64>,
    /// Files that may have parts which were never written, by their number, so that what is read of them is not compared.
    pub sparse: Vec<bool>,
    /// Number of bytes that the replay writes.
    pub written_bytes: u64,
    /// Number of operations that are left out because they are impossible in the tree as it is known, or would nest folders too deeply.
    pub left_out: u64,
    /// Number of operations that failed for an unknown reason and are replaced by a question for attributes.
    pub replaced: u64,
}

impl ReplayPlan {
    /// Makes the plan of a recording.
    pub fn compile(recording: &Recording, limits: Limits) -> Self {
        compile::Compiler::new(recording, limits).finish(recording, limits)
    }

    /// Returns the number of steps of all threads.
    pub fn step_count(&self) -> u64 {
        self.lanes.iter().map(|lane| u64::from(lane.len())).sum()
    }

    /// Returns the pauses of the thread with the longest ones together: no replay takes less time.
    pub fn pause_time(&self) -> Duration {
        let pause = |step: ReplayStep<'_>| self.pauses.get(usize::from(step.pause)).copied().unwrap_or(0);
        let of_lane = |lane: &ReplayThread| lane.steps().map(pause).fold(0, u64::saturating_add);
        Duration::from_nanos(self.lanes.iter().map(of_lane).max().unwrap_or(0))
    }

    /// Returns the bytes of all files that exist before the replay begins.
    pub fn corpus_bytes(&self) -> u64 {
        self.nodes.iter().map(|node| node.bytes).fold(0, u64::saturating_add)
    }
}
