//! The flight recorder: memory shared between a worker and its supervisor.
//!
//! The worker writes it with plain atomic stores, so recording costs no system call and survives the worker: when a
//! call never returns, the supervisor reads from here which operation is in flight, since when, and everything that
//! was measured before it. Each lane is written by one thread only, so no read-modify-write instruction is needed.

mod calls;
mod waits;

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, Release};

use crate::model::{Operation, OperationStats};
use crate::platform::SharedMapping;
use crate::stats::{BUCKETS, Histogram, index_of_slot, slot_of};

use calls::Noted;
pub use waits::{LongWait, LongWaits};

/// Lanes of runs: one for the thread that leads a run, the others for the threads it spreads work over: the 109 of
/// blogbench, and one that looks at the clock. Lanes that nobody asked for are never looked at.
pub const LANES: usize = 111;
/// The lane of the light probe. What is said of runs does not see it.
pub const PROBE_LANE: usize = LANES;

/// Words of one operation: errors, sum, minimum, maximum, count, buckets.
const OPERATION_WORDS: usize = 5 + BUCKETS;
/// Words of a lane's head: operation in flight, since when, calls finished, bytes read and written since the last clear,
/// bytes read and written in all, and the long waits.
const HEAD_WORDS: usize = 7 + waits::WORDS;
const _: () = assert!((HEAD_WORDS * 8).is_multiple_of(64), "each lane writes to cache lines of its own");
/// Words of a lane's histograms, and of the calls that it keeps.
const BODY_WORDS: usize = Operation::COUNT * OPERATION_WORDS + calls::WORDS;
/// Words before the heads, a cache line: how many lanes of runs were asked for.
const FRONT_WORDS: usize = 8;
/// Words of the front and of all heads, which lie close together: to look at those in use touches few pages.
const HEADS_WORDS: usize = FRONT_WORDS + (LANES + 1) * HEAD_WORDS;
/// Words of a recorder: the probe's lane has no histograms, as its answers are told one by one. Pages that are never
/// touched take no memory.
const WORDS: usize = HEADS_WORDS + LANES * BODY_WORDS;

/// An operation that has begun and not returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InFlight {
    /// The call.
    pub operation: Operation,
    /// When it began, in nanoseconds of the monotonic clock, which all processes share.
    pub since_ns: u64,
}

/// What was recorded since the last [`Recorder::clear`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recorded {
    /// Bytes that read calls returned.
    pub bytes_read: u64,
    /// Bytes that write calls accepted.
    pub bytes_written: u64,
    /// Every kind of call that was made, in the order of the operations.
    pub operations: Vec<OperationStats>,
}

/// The recorder as a whole: what the supervisor reads, and the worker between phases.
pub struct Recorder {
    mapping: SharedMapping,
}

impl Recorder {
    /// Makes an empty file the recorder's. It must lie on a local file system.
    pub fn create(file: &File) -> io::Result<Self> {
        Ok(Self { mapping: SharedMapping::create(file, WORDS)? })
    }

    /// Maps a recorder that the supervisor made.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { mapping: SharedMapping::open(path, WORDS)? })
    }

    /// A recorder that nobody else sees.
    pub fn private() -> io::Result<Self> {
        Ok(Self { mapping: SharedMapping::private(WORDS)? })
    }

    /// The lane with this number, below [`LANES`], or [`PROBE_LANE`]. Only one thread may write to it at a time.
    pub fn lane(&self, number: usize) -> Lane<'_> {
        self.ask_for(number);
        self.lane_of(number)
    }

    /// Makes sure that whoever looks sees this lane too. Not between two clock readings.
    fn ask_for(&self, number: usize) {
        if number < LANES {
            self.mapping.words()[0].fetch_max(number as u64 + 1, Relaxed);
        }
    }

    fn probe_lane(&self) -> Lane<'_> {
        self.lane_of(PROBE_LANE)
    }

    fn lane_of(&self, number: usize) -> Lane<'_> {
        let begin = HEADS_WORDS + number * BODY_WORDS;
        let body = self.mapping.words().get(begin..begin + BODY_WORDS).unwrap_or_default();
        Lane { body, head: self.head(number) }
    }

    /// The same lane without its histograms: what hangs is seen, and nothing else is kept. For what no phase asks about,
    /// so that a worker that waits takes no memory for it.
    pub fn bare_lane(&self, number: usize) -> Lane<'_> {
        self.ask_for(number);
        Lane { head: self.head(number), body: &[] }
    }

    fn head(&self, number: usize) -> &[AtomicU64] {
        // The probe's comes first, beside that of the thread that leads: one that waits and probes touches one page.
        let place = (number + 1) % (LANES + 1);
        let begin = FRONT_WORDS + place * HEAD_WORDS;
        &self.mapping.words()[begin..begin + HEAD_WORDS]
    }

    /// The operation of a run that has been in flight for longest; `None` if none is.
    pub fn in_flight(&self) -> Option<InFlight> {
        self.lanes().filter_map(|lane| lane.in_flight()).min_by_key(|flight| flight.since_ns)
    }

    /// The operation of the probe that is in flight; `None` if none is.
    pub fn probe_in_flight(&self) -> Option<InFlight> {
        self.probe_lane().in_flight()
    }

    /// Bytes that runs and the probe have read and written since the worker began. No clear forgets them.
    pub fn total_bytes(&self) -> (u64, u64) {
        let sum = |word: usize| {
            let lanes = self.lanes().chain([self.probe_lane()]);
            lanes.map(|lane| lane.head[word].load(Relaxed)).sum()
        };
        (sum(5), sum(6))
    }

    /// How many calls have returned since the worker began: it grows as long as the worker makes headway.
    pub fn finished(&self) -> u64 {
        self.lanes().map(|lane| lane.head[2].load(Relaxed)).sum()
    }

    /// Bytes that write calls accepted since the last clear.
    pub fn bytes_written(&self) -> u64 {
        self.lanes().map(|lane| lane.head[4].load(Relaxed)).sum()
    }

    /// Everything recorded since the last clear, lanes merged.
    pub fn recorded(&self) -> Recorded {
        let sum = |word: usize| self.lanes().map(|lane| lane.head[word].load(Relaxed)).sum();
        let operations = Operation::ALL.iter().filter_map(|operation| self.operation(*operation)).collect();
        Recorded { bytes_read: sum(3), bytes_written: sum(4), operations }
    }

    /// Forgets what was recorded, but for the count of finished calls. Only between phases.
    pub fn clear(&self) {
        self.lanes().for_each(|lane| lane.clear());
    }

    fn lanes(&self) -> impl Iterator<Item = Lane<'_>> {
        let asked_for = self.mapping.words()[0].load(Relaxed).min(LANES as u64) as usize;
        (0..asked_for).map(|number| self.lane_of(number))
    }

    fn operation(&self, operation: Operation) -> Option<OperationStats> {
        let mut stats = OperationStats { operation, latency: Histogram::new(), errors: 0 };
        for lane in self.lanes() {
            let Some(words) = lane.operation(operation) else { continue };
            stats.errors += words[0].load(Relaxed);
            stats.latency.merge(&histogram(words));
        }
        (stats.latency.count() > 0).then_some(stats)
    }
}

/// The part of the recorder that one thread writes.
#[derive(Clone, Copy)]
pub struct Lane<'recorder> {
    head: &'recorder [AtomicU64],
    /// Empty for the probe, and for a bare lane.
    body: &'recorder [AtomicU64],
}

/// `word += value` by the only thread that writes it: a plain load and store.
fn add(word: &AtomicU64, value: u64) {
    word.store(word.load(Relaxed).wrapping_add(value), Relaxed);
}

impl Lane<'_> {
    /// Notes that an operation has begun.
    #[inline]
    pub fn begin(&self, operation: Operation, now_ns: u64) {
        self.head[1].store(now_ns, Relaxed);
        self.head[0].store(operation as u64 + 1, Release);
    }

    /// Notes that the operation in flight has returned after this time, well or with an error.
    #[inline]
    pub fn end<T, E>(&self, operation: Operation, nanoseconds: u64, result: &Result<T, E>) {
        self.head[0].store(0, Release);
        add(&self.head[2], 1);
        let Some(words) = self.operation(operation) else { return };
        add(&words[0], u64::from(result.is_err()));
        add(&words[1], nanoseconds);
        let before = words[4].load(Relaxed);
        let least = if before == 0 { nanoseconds } else { words[2].load(Relaxed).min(nanoseconds) };
        words[2].store(least, Relaxed);
        words[3].store(words[3].load(Relaxed).max(nanoseconds), Relaxed);
        add(&words[5 + slot_of(nanoseconds)], 1);
        words[4].store(before + 1, Relaxed);
        let began_ns = self.head[1].load(Relaxed);
        self.note_call(Noted { operation, began_ns, nanoseconds, is_error: result.is_err() });
    }

    /// Counts bytes that a read returned.
    pub fn add_read(&self, bytes: u64) {
        add(&self.head[3], bytes);
        add(&self.head[5], bytes);
    }

    /// Counts bytes that a write accepted.
    pub fn add_written(&self, bytes: u64) {
        add(&self.head[4], bytes);
        add(&self.head[6], bytes);
    }

    /// What all calls took since the last clear, in nanoseconds.
    pub fn nanoseconds(&self) -> u64 {
        let sums = Operation::ALL.iter().filter_map(|operation| self.operation(*operation));
        sums.map(|words| words[1].load(Relaxed)).sum()
    }

    fn operation(&self, operation: Operation) -> Option<&[AtomicU64]> {
        let begin = operation as usize * OPERATION_WORDS;
        self.body.get(begin..begin + OPERATION_WORDS)
    }

    fn in_flight(&self) -> Option<InFlight> {
        let number = self.head[0].load(std::sync::atomic::Ordering::Acquire).checked_sub(1)?;
        Some(InFlight { operation: Operation::from_number(number)?, since_ns: self.head[1].load(Relaxed) })
    }

    fn clear(&self) {
        self.head[3].store(0, Relaxed);
        self.head[4].store(0, Relaxed);
        self.clear_calls();
        for operation in Operation::ALL {
            let Some(words) = self.operation(*operation) else { continue };
            if words[4].load(Relaxed) == 0 {
                continue;
            }
            let (first, last) = (slot_of(words[2].load(Relaxed)), slot_of(words[3].load(Relaxed)));
            words[5 + first..=5 + last].iter().chain(&words[..5]).for_each(|word| word.store(0, Relaxed));
        }
    }
}

/// The histogram in the words of one operation. While the worker writes, it may lack the very last call, no more.
fn histogram(words: &[AtomicU64]) -> Histogram {
    let [sum, least, most, count] = [1, 2, 3, 4].map(|word: usize| words[word].load(Relaxed));
    if count == 0 {
        return Histogram::new();
    }
    let (first, last) = (slot_of(least), slot_of(most.max(least)));
    let counts = words[5 + first..=5 + last].iter().map(|word| word.load(Relaxed)).collect();
    Histogram::from_parts(index_of_slot(first), counts, sum, (least, most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OK: Result<(), ()> = Ok(());

    #[test]
    fn another_process_sees_what_is_in_flight_and_all_that_went_before() {
        let (file, path) = crate::platform::shared_file().unwrap();
        let supervisor = Recorder::create(&file).unwrap();
        let worker = Recorder::open(&path).unwrap();
        worker.lane(0).end(Operation::Read, 5_000, &OK);
        worker.lane(3).end(Operation::Read, 7_000, &Err::<(), ()>(()));
        worker.lane(3).add_read(4096);
        worker.lane(3).begin(Operation::Sync, 99);
        worker.lane(1).begin(Operation::Write, 98);

        let flight = supervisor.in_flight().unwrap();
        assert_eq!((flight.operation, flight.since_ns), (Operation::Write, 98), "the longest in flight");
        let seen = supervisor.recorded();
        assert_eq!((seen.bytes_read, seen.operations.len(), supervisor.finished()), (4096, 1, 2));
        assert_eq!((seen.operations[0].errors, seen.operations[0].latency.count()), (1, 2));
        // What has a name is ours to remove.
        let _ = std::fs::remove_file(path);
    }

    #[test]
    fn the_probe_is_seen_apart_from_runs_and_its_bytes_are_counted_with_theirs() {
        let recorder = Recorder::private().unwrap();
        recorder.lane(0).add_written(10);
        recorder.lane(PROBE_LANE).begin(Operation::Read, 7);
        recorder.lane(PROBE_LANE).end(Operation::Getattr, 5_000, &OK);
        recorder.lane(PROBE_LANE).add_read(4096);
        recorder.lane(PROBE_LANE).add_written(1);
        recorder.lane(PROBE_LANE).begin(Operation::Read, 7);

        assert_eq!((recorder.in_flight(), recorder.finished(), recorder.bytes_written()), (None, 0, 10));
        assert_eq!(recorder.recorded().operations, []);
        assert_eq!(recorder.probe_in_flight(), Some(InFlight { operation: Operation::Read, since_ns: 7 }));
        recorder.clear();
        assert_eq!((recorder.total_bytes(), recorder.bytes_written()), ((4096, 11), 0));
    }

    #[test]
    fn a_recorder_of_another_size_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recorder");
        std::fs::write(&path, [0u8; 64]).unwrap();
        assert!(Recorder::open(&path).is_err());
    }

    proptest! {
        #[test]
        fn what_is_recorded_equals_a_plain_histogram(values in proptest::collection::vec(1u64..1 << 40, 1..300)) {
            let recorder = Recorder::private().unwrap();
            let mut plain = Histogram::new();
            for (place, value) in values.iter().enumerate() {
                recorder.lane(place % LANES).end(Operation::Getattr, *value, &OK);
                plain.record(*value);
            }
            let recorded = recorder.recorded();
            prop_assert_eq!(&recorded.operations[0].latency, &plain);
            recorder.clear();
            prop_assert_eq!(recorder.recorded(), Recorded::default());
            prop_assert_eq!(recorder.finished(), values.len() as u64);
        }
    }
}
