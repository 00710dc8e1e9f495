//! The replay of a plan: one thread for each replay thread.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

use parking_lot::{Mutex, RwLock};

use super::busy::{BusyTimes, union_ns};
use super::day::Day;
use super::progress::AllProgress;
use super::thread_replay::ThreadReplay;
use crate::error::RunError;
use crate::platform::Access;
use crate::timed_fs::{Folder, OpenFile, TimedFs};
use longhaul_model::DataAge;
use longhaul_recording::NodeNumber;
use longhaul_recording::plan::FileNumber;

/// Open file or folder in a slot.
pub enum Open {
    /// A file.
    File(OpenedFile),
    /// A folder, or only the path of a file or folder (`O_PATH`), with this name.
    Folder(Folder, NodeNumber),
}

/// An open file with its number.
pub struct OpenedFile {
    pub file: OpenFile,
    pub number: FileNumber,
    pub access: Access,
    /// True while longhaul has a lock on it.
    pub is_locked: AtomicBool,
}

/// The state that all threads of a replay share.
pub struct Replay<'a> {
    pub day: &'a Day,
    /// Folder of the slice.
    pub root: &'a Folder,
    pub slots: Vec<RwLock<Option<Open>>>,
    pub progress: AllProgress,
    /// Operations that the file system does not offer, such as links.
    pub unsupported: AtomicU64,
    /// Age of the files that no replay changes.
    pub age: DataAge,
    has_failed: AtomicBool,
}

/// Times of a replay, in seconds.
pub struct ReplayTimes {
    pub total: f64,
    /// Part of it in which at least one operation was in progress.
    pub waiting: f64,
}

impl<'a> Replay<'a> {
    pub fn new(day: &'a Day, root: &'a Folder, age: DataAge) -> Self {
        Self {
            day,
            root,
            slots: (0..day.plan.slots).map(|_| RwLock::default()).collect(),
            progress: AllProgress::new(day.plan.lanes.len()),
            unsupported: AtomicU64::new(0),
            age,
            has_failed: AtomicBool::new(false),
        }
    }

    /// Makes all steps and returns the times.
    ///
    /// # Errors
    ///
    /// The first error of a thread; the others end after the step in progress.
    pub fn run(&self, context: &TimedFs<'_>) -> Result<ReplayTimes, RunError> {
        let threads: Vec<usize> = (0..self.day.plan.lanes.len()).collect();
        let busy: Mutex<Vec<BusyTimes>> = Mutex::default();
        let single = Mutex::new(None);
        context.run_parallel(threads.len(), &threads, |context, thread| {
            let mut replay = ThreadReplay::new(self, *thread);
            let result = replay.run(context);
            if result.is_err() {
                self.has_failed.store(true, Relaxed);
            }
            self.progress.give_up(*thread);
            if threads.len() == 1 {
                *single.lock() = Some(context.seconds_in_calls());
            }
            busy.lock().push(replay.finish());
            result
        })?;
        let total = context.elapsed();
        let waiting = single.into_inner().unwrap_or_else(|| union_ns(busy.into_inner()) as f64 / 1e9);
        Ok(ReplayTimes { total, waiting })
    }

    /// Returns whether a thread failed, so that the others end too.
    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Relaxed)
    }
}
