//! Lifetimes of threads that come and go: which ones another thread waited for, and how much of its pause they explain.

use std::collections::BTreeMap;

use longhaul_model::{Histogram, Operation};

use super::order::Point;
use crate::{PowerOfTwo, RecordedOperation, Recording};

/// Thread that came and went.
struct EndedThread {
    first: u32,
    last: u32,
    lifetime_ns: u64,
    point: Point,
}

/// Lifetimes of the threads of a recording, as far as it is followed.
pub struct ThreadLifetimes {
    /// Number of the previous operation of each recorded thread.
    previous: Vec<Option<u32>>,
    /// Time since each recorded thread began: its pauses and operations, as long as usual for their class or kind.
    lifetime_ns: Vec<u64>,
    ended: Vec<EndedThread>,
    /// Numbers of the operations directly after which a thread began.
    starts: Vec<u32>,
    pauses: Vec<u64>,
    durations: BTreeMap<Operation, u64>,
    /// Rests of pauses in classes that no recorded pause has: their sum and number by class.
    rests: BTreeMap<u8, [u64; 2]>,
}

/// The relation of an operation to other threads.
pub enum Beginning {
    /// It only follows the operation before of its thread.
    Own,
    /// It is the first one of its thread.
    First,
    /// Its thread waited for others that came and went, with their ends, and then paused.
    AfterOthers {
        /// The last steps of the others.
        ends: Vec<Point>,
        /// Class of the pause that is left, an index of [`ThreadLifetimes::pauses`].
        pause: u8,
    },
}

impl ThreadLifetimes {
    /// Begins to follow a recording with this number of threads.
    pub fn new(recording: &Recording, threads: usize) -> Self {
        let mean = |(kind, times): (&Operation, &Histogram)| (*kind, times.sum_ns() / times.count().max(1));
        let times = recording.times.as_ref();
        Self {
            previous: vec![None; threads],
            lifetime_ns: vec![0; threads],
            ended: vec![],
            starts: vec![],
            pauses: recording.mean_pauses.clone(),
            durations: times.map(|times| times.by_operation.iter().map(mean).collect()).unwrap_or_default(),
            rests: BTreeMap::new(),
        }
    }

    /// Adds an operation to the lifetime of its thread.
    pub fn add_operation(&mut self, operation: &RecordedOperation) {
        let took = self.durations.get(&operation.kind()).copied().unwrap_or(0);
        let lived = &mut self.lifetime_ns[operation.thread as usize];
        let pause = self.pauses.get(usize::from(operation.pause.number())).copied().unwrap_or(0);
        *lived = lived.saturating_add(took).saturating_add(pause);
    }

    /// Takes note that an operation is replayed, and returns its relation to other threads.
    pub fn begin(&mut self, number: u32, operation: &RecordedOperation) -> Beginning {
        let Some(previous) = self.previous[operation.thread as usize].replace(number) else {
            self.starts.extend(number.checked_sub(1));
            return Beginning::First;
        };
        if number - previous < 2 || self.starts.binary_search(&previous).is_err() {
            return Beginning::Own;
        }
        let first = self.ended.partition_point(|ended| ended.last < previous);
        let inside: Vec<&EndedThread> =
            self.ended[first..].iter().filter(|ended| ended.first > previous).collect();
        let begun = self.starts.len() - self.starts.partition_point(|start| *start < previous);
        if inside.len() != begun {
            return Beginning::Own;
        }
        let (lifetime_ns, ends) = (together(&inside), inside.into_iter().map(|ended| ended.point).collect());
        Beginning::AfterOthers { ends, pause: self.rest(operation.pause.number(), lifetime_ns) }
    }

    /// Takes note of the end of a thread, whose operations have these numbers.
    pub fn end(&mut self, thread: usize, [first, last]: [u32; 2], point: Point) {
        self.ended.push(EndedThread { first, last, lifetime_ns: self.lifetime_ns[thread], point });
    }

    /// Returns the class of what a pause leaves after the lifetimes of others; 0 if that is less than half of it, because a class
    /// spans a factor of two.
    fn rest(&mut self, class: u8, lifetime_ns: u64) -> u8 {
        let mean = |class: u8| self.pauses.get(usize::from(class)).copied().unwrap_or(0);
        let rest = mean(class).saturating_sub(lifetime_ns);
        if rest <= mean(class) / 2 {
            return 0;
        }
        let own = PowerOfTwo::of(rest / 1000).number();
        if mean(own) > 0 {
            return [class, own].into_iter().min_by_key(|class| mean(*class).abs_diff(rest)).unwrap_or(own);
        }
        let [sum, number] = self.rests.entry(own).or_default();
        (*sum, *number) = (sum.saturating_add(rest), *number + 1);
        own
    }

    /// Returns the mean pause of each class, in nanoseconds, with those of the rests.
    pub fn pauses(self) -> Vec<u64> {
        let mut pauses = self.pauses;
        for (class, [sum, number]) in self.rests {
            let class = usize::from(class);
            pauses.resize(pauses.len().max(class + 1), 0);
            pauses[class] = sum / number;
        }
        pauses
    }
}

/// Returns the time that threads took together: of those that lived at the same time, the longest counts.
fn together(threads: &[&EndedThread]) -> u64 {
    let mut ordered = threads.to_vec();
    ordered.sort_unstable_by_key(|thread| thread.first);
    let (mut earlier_ns, mut longest_ns, mut last) = (0_u64, 0, 0);
    for thread in ordered {
        if thread.first > last {
            earlier_ns = earlier_ns.saturating_add(longest_ns);
            longest_ns = 0;
        }
        longest_ns = thread.lifetime_ns.max(longest_ns);
        last = thread.last.max(last);
    }
    earlier_ns.saturating_add(longest_ns)
}
