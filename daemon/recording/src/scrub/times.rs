//! Pauses of threads, and the time in which the recorded program waited.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use longhaul_model::{Histogram, Operation};

use super::means::ClassMeans;
use crate::{PowerOfTwo, RecordedTimes};

/// Beginning and duration of an operation in a trace.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) thread: u64,
    pub(super) began: Duration,
    pub(super) took: Option<Duration>,
}

/// Place of an operation in time.
pub(super) struct Placed {
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
}

/// Clock of a trace: follows all operations in the order in which they began.
#[derive(Default)]
pub(super) struct TraceClock {
    threads: HashMap<u64, LastOperation>,
    pauses: ClassMeans,
    first: Option<Duration>,
    /// End of the operation before, in the order in which they began.
    last_ended: Duration,
    end: Duration,
    /// End of the time that is already counted as waiting.
    waited_until: Duration,
    waiting: Duration,
    by_operation: BTreeMap<Operation, Histogram>,
}

impl TraceClock {
    /// Adds an operation.
    pub(super) fn add(&mut self, span: Span, kind: Operation) -> Placed {
        let took = span.took.unwrap_or_default();
        let ended = span.began.saturating_add(took);
        self.first = Some(self.first.map_or(span.began, |first| first.min(span.began)));
        if span.took.is_some() {
            self.by_operation.entry(kind).or_default().record(nanoseconds(took));
        }
        let counted_from = self.waited_until.max(span.began);
        self.waiting += ended.saturating_sub(counted_from);
        self.waited_until = self.waited_until.max(ended);
        self.end = self.end.max(ended);
        let placed = self.place(span, ended);
        self.last_ended = ended;
        placed
    }

    fn place(&mut self, span: Span, ended: Duration) -> Placed {
        let number = self.threads.len() as u32;
        // A thread that appears was most likely started by the thread of the operation before, after it or meanwhile.
        let before = if number == 0 { span.began } else { self.last_ended };
        let last = self.threads.entry(span.thread).or_insert(LastOperation {
            number,
            began: before.min(span.began),
            ended: before,
        });
        let went_back = span.began < last.began;
        let pause = span.began.saturating_sub(last.ended);
        last.began = span.began;
        last.ended = ended;
        let thread = last.number;
        Placed { thread, pause: self.pauses.add_pause(pause), went_back }
    }

    /// Returns the mean pause of each class, in nanoseconds.
    pub(super) fn mean_pauses(&self) -> Vec<u64> {
        self.pauses.means()
    }

    /// Returns the times of the recording; `None` if the trace has no durations.
    pub(super) fn recorded(self) -> Option<RecordedTimes> {
        let total = self.end.saturating_sub(self.first?);
        let has_durations = !self.by_operation.is_empty();
        let (waiting, by_operation) = (self.waiting, self.by_operation);
        has_durations.then_some(RecordedTimes { total, waiting, by_operation })
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    duration.as_nanos().try_into().unwrap_or(u64::MAX)
}
