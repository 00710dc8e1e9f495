//! Pauses of threads, and the time in which the recorded program waited.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use longhaul_model::{Histogram, Operation};

use super::means::ClassMeans;
use crate::{CallTime, PowerOfTwo, RecordedTimes};

/// Thread of an operation, and the pause before it.
pub(super) struct OperationTiming {
    pub(super) thread: u32,
    pub(super) pause: PowerOfTwo,
    /// True if its time is before that of an earlier operation of its thread.
    pub(super) went_back: bool,
}

/// The last operation of a thread.
struct LastOperation {
    number: u32,
    began: Duration,
    ended: Duration,
    /// As in [`CallTime`].
    recorder: Duration,
}

/// Time before an operation in which its thread did nothing that is recorded.
struct Pause {
    length: Duration,
    /// Part of it that the recorder took.
    recorder: Duration,
}

/// Clock of a trace: follows all operations in the order in which they began.
#[derive(Default)]
pub(super) struct TraceClock {
    threads: HashMap<u64, LastOperation>,
    /// Time that the recorder had taken from threads without a recorded operation, at their first call since the last recorded
    /// operation.
    recorder_before: HashMap<u64, Duration>,
    pauses: ClassMeans,
    first: Option<Duration>,
    /// End of the operation before, in the order in which they began.
    last_ended: Duration,
    end: Duration,
    /// End of the time that is already counted as waiting.
    waited_until: Duration,
    waiting: Duration,
    /// Time that the recorder took while no operation was in progress.
    recorder: Duration,
    by_operation: BTreeMap<Operation, Histogram>,
}

impl TraceClock {
    /// Adds an operation.
    pub(super) fn add(&mut self, time: CallTime, kind: Operation) -> OperationTiming {
        let took = time.took.unwrap_or_default();
        let ended = time.began.saturating_add(took);
        let last = self.last_operation(time);
        let (thread, went_back) = (last.number, time.began < last.began);
        // A call on two files, such as `sendfile`, is two operations with one time.
        let is_same_call = (last.began, last.ended) == (time.began, ended);
        let length = time.began.saturating_sub(last.ended);
        let pause = Pause { length, recorder: time.recorder.saturating_sub(last.recorder).min(length) };
        (last.began, last.ended, last.recorder) = (time.began, ended, time.recorder);
        if time.took.is_some() && !is_same_call {
            self.by_operation.entry(kind).or_default().record(nanoseconds(took));
        }
        let first = *self.first.get_or_insert(time.began);
        self.first = Some(first.min(time.began));
        let idle = time.began.saturating_sub(self.waited_until.max(first));
        self.recorder += pause.recorder.min(idle);
        self.waiting += ended.saturating_sub(self.waited_until.max(time.began));
        self.waited_until = self.waited_until.max(ended);
        self.end = self.end.max(ended);
        self.last_ended = ended;
        self.recorder_before.clear();
        OperationTiming { thread, pause: self.pauses.add_pause(pause.length - pause.recorder), went_back }
    }

    /// Takes note of an operation that is not recorded.
    pub(super) fn pass_over(&mut self, time: CallTime) {
        if !self.threads.contains_key(&time.thread) {
            self.recorder_before.entry(time.thread).or_insert(time.recorder);
        }
    }

    /// Returns the last operation of a thread. One that appears was most likely started by the thread of the operation before,
    /// after it or meanwhile.
    fn last_operation(&mut self, time: CallTime) -> &mut LastOperation {
        let number = self.threads.len() as u32;
        let ended = if number == 0 { time.began } else { self.last_ended };
        let recorder = self.recorder_before.get(&time.thread).copied().unwrap_or(time.recorder);
        let began = ended.min(time.began);
        self.threads.entry(time.thread).or_insert(LastOperation { number, began, ended, recorder })
    }

    /// Returns the mean pause of each class, in nanoseconds.
    pub(super) fn mean_pauses(&self) -> Vec<u64> {
        self.pauses.means()
    }

    /// Returns the times of the recording; `None` if the trace has no durations.
    pub(super) fn recorded(self) -> Option<RecordedTimes> {
        let total = self.end.saturating_sub(self.first?).saturating_sub(self.recorder);
        let has_durations = !self.by_operation.is_empty();
        let (waiting, by_operation) = (self.waiting, self.by_operation);
        has_durations.then_some(RecordedTimes { total, waiting, by_operation })
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    duration.as_nanos().try_into().unwrap_or(u64::MAX)
}
