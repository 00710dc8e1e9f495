//! The memory of the flight recorder, its thread slots, and the reading of both.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, Release};

use crate::platform::SharedMapping;
use longhaul_model::{BUCKET_COUNT, Histogram, index_of_slot, slot_of};
use longhaul_model::{Call, Operation, OperationStats, VerifiedData};

use super::calls::{self, KeptCalls, RecordedCall};
use super::slow_calls::{self, RawSlowCall, SlowCallRing};
use super::verified::VerifiedCounters;

/// Number of thread slots for runs: one for the thread that leads a run, 109 for the threads of blogbench (the
/// most of any workload), and one for a thread that watches the clock. Slots that were never requested are never
/// read.
pub const THREAD_SLOTS: usize = 111;
/// Number of the thread slot of the latency probe. It is not included in the statistics of runs.
pub const PROBE_THREAD_SLOT: usize = THREAD_SLOTS;

/// Number of words for the statistics of one operation: errors, sum, minimum, maximum, count, buckets.
const OPERATION_WORDS: usize = 5 + BUCKET_COUNT;
/// Number of words of a thread slot's head: operation in flight, its start time, finished calls, bytes read and
/// written since the last clear, bytes read and written in total, and the slow calls.
const HEAD_WORDS: usize = SLOW_CALLS_BEGIN + slow_calls::WORDS;
/// Offset of the slow calls in the head of a thread slot, in words.
const SLOW_CALLS_BEGIN: usize = 7;
const _: () = assert!((HEAD_WORDS * 8).is_multiple_of(64), "thread slots must not share a cache line");
/// Number of words of a thread slot's body: its histograms and the calls that it keeps.
const BODY_WORDS: usize = Operation::COUNT * OPERATION_WORDS + calls::WORDS;
/// Number of words before the heads: one cache line, whose first word is the number of requested thread slots of
/// runs, and whose second word is the number of listed entries.
const HEADER_WORDS: usize = 8;
/// Number of words of the header and all heads. The heads are stored next to each other, so that reading the used
/// ones touches few memory pages.
const HEADS_WORDS: usize = HEADER_WORDS + (THREAD_SLOTS + 1) * HEAD_WORDS;
/// Number of words of a recorder. The probe's thread slot has no histograms, because its samples are reported one
/// by one. Memory pages that are never touched take no memory.
const WORDS: usize = HEADS_WORDS + THREAD_SLOTS * BODY_WORDS;

/// Call that has started and has not returned yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InFlightCall {
    /// Kind of call.
    pub operation: Operation,
    /// Start of the call, in nanoseconds of the monotonic clock, which all processes share.
    pub since_ns: u64,
}

/// Everything recorded since the last [`Recorder::clear`], merged over all thread slots of runs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RecorderSnapshot {
    /// Number of bytes that read calls returned.
    pub bytes_read: u64,
    /// Number of bytes that write calls accepted.
    pub bytes_written: u64,
    /// Statistics of each kind of call that was made, in the order of [`Operation::ALL`].
    pub operations: Vec<OperationStats>,
}

/// Flight recorder. The supervisor reads it at any time, the worker between phases.
pub struct Recorder {
    mapping: SharedMapping,
    verified: VerifiedCounters,
    own_work_ns: AtomicU64,
}

impl Recorder {
    /// Creates a recorder in an empty file, which must be on a local file system.
    pub fn create(file: &File) -> io::Result<Self> {
        Ok(Self::over(SharedMapping::create(file, WORDS)?))
    }

    /// Maps a recorder that the supervisor created.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self::over(SharedMapping::open(path, WORDS)?))
    }

    /// Creates a recorder that is not shared with another process.
    pub fn private() -> io::Result<Self> {
        Ok(Self::over(SharedMapping::private(WORDS)?))
    }

    fn over(mapping: SharedMapping) -> Self {
        Self { mapping, verified: VerifiedCounters::default(), own_work_ns: AtomicU64::new(0) }
    }

    /// Returns a thread slot; `number` is below [`THREAD_SLOTS`], or [`PROBE_THREAD_SLOT`]. Only one thread at a
    /// time may write to a thread slot.
    pub fn thread_slot(&self, number: usize) -> ThreadSlot<'_> {
        self.activate(number);
        self.thread_slot_at(number)
    }

    /// Makes a thread slot visible to readers. Uses a read-modify-write instruction, so it must not be called
    /// between the two clock readings of a timed call.
    fn activate(&self, number: usize) {
        if number < THREAD_SLOTS {
            self.mapping.words()[0].fetch_max(number as u64 + 1, Relaxed);
        }
    }

    pub(super) fn probe_thread_slot(&self) -> ThreadSlot<'_> {
        self.thread_slot_at(PROBE_THREAD_SLOT)
    }

    fn thread_slot_at(&self, number: usize) -> ThreadSlot<'_> {
        let begin = HEADS_WORDS + number * BODY_WORDS;
        let body = self.mapping.words().get(begin..begin + BODY_WORDS).unwrap_or_default();
        ThreadSlot { body, head: self.head(number) }
    }

    /// Returns a thread slot without its body: a hanging call is visible, but no statistics are recorded. Used for
    /// calls outside of phases, so that an idle worker does not touch the memory of the histograms.
    pub fn untracked_thread_slot(&self, number: usize) -> ThreadSlot<'_> {
        self.activate(number);
        ThreadSlot { head: self.head(number), body: &[] }
    }

    fn head(&self, number: usize) -> &[AtomicU64] {
        // The probe's head comes first, next to the head of the leading thread, so that an idle worker that only
        // probes touches one memory page.
        let index = (number + 1) % (THREAD_SLOTS + 1);
        let begin = HEADER_WORDS + index * HEAD_WORDS;
        &self.mapping.words()[begin..begin + HEAD_WORDS]
    }

    /// Returns the call of a run that has been in flight for the longest time; `None` if no call is in flight.
    pub fn in_flight(&self) -> Option<InFlightCall> {
        self.thread_slots().filter_map(|slot| slot.in_flight()).min_by_key(|call| call.since_ns)
    }

    /// Returns the call of the latency probe that is in flight; `None` if no call is in flight.
    pub fn probe_in_flight(&self) -> Option<InFlightCall> {
        self.probe_thread_slot().in_flight()
    }

    /// Returns the bytes read and the bytes written by runs and the latency probe since the worker started.
    /// [`Recorder::clear`] does not reset them.
    pub fn total_bytes(&self) -> (u64, u64) {
        (self.total(5), self.total(6))
    }

    /// Returns the number of calls of runs and the latency probe that have returned since the worker started.
    pub fn total_calls(&self) -> u64 {
        self.total(2)
    }

    /// Counts entries that a listing returned.
    pub fn add_listed(&self, entries: u64) {
        self.mapping.words()[1].fetch_add(entries, Relaxed);
    }

    /// Returns the number of entries that listings returned since the worker started.
    pub fn listed_entries(&self) -> u64 {
        self.mapping.words()[1].load(Relaxed)
    }

    /// Returns the sum of a word of the heads, over the thread slots of runs and that of the latency probe.
    fn total(&self, word: usize) -> u64 {
        let slots = self.thread_slots().chain([self.probe_thread_slot()]);
        slots.map(|slot| slot.head[word].load(Relaxed)).sum()
    }

    /// Returns the number of calls of runs that have returned since the worker started. It grows as long as a run
    /// makes progress.
    pub fn finished_run_calls(&self) -> u64 {
        self.thread_slots().map(|slot| slot.head[2].load(Relaxed)).sum()
    }

    /// Returns the number of bytes that write calls of runs accepted since the last [`Recorder::clear`].
    pub fn bytes_written(&self) -> u64 {
        self.thread_slots().map(|slot| slot.head[4].load(Relaxed)).sum()
    }

    /// Returns everything recorded since the last [`Recorder::clear`], merged over all thread slots of runs.
    pub fn snapshot(&self) -> RecorderSnapshot {
        let sum = |word: usize| self.thread_slots().map(|slot| slot.head[word].load(Relaxed)).sum();
        let operations = Operation::ALL.iter().filter_map(|operation| self.operation(*operation)).collect();
        RecorderSnapshot { bytes_read: sum(3), bytes_written: sum(4), operations }
    }

    /// Clears the recorded data, except the number of finished calls, the total bytes and the slow calls. May only
    /// be called between phases.
    pub fn clear(&self) {
        self.thread_slots().for_each(|slot| slot.clear());
        self.verified.clear();
        self.own_work_ns.store(0, Relaxed);
    }

    /// Counts processor time that is not part of the task: comparing, and waiting for the end of a pause.
    pub fn add_own_work(&self, nanoseconds: u64) {
        self.own_work_ns.fetch_add(nanoseconds, Relaxed);
    }

    /// Returns the processor time since the last [`Recorder::clear`] that is not part of the task, in nanoseconds.
    pub fn own_work_ns(&self) -> u64 {
        self.own_work_ns.load(Relaxed)
    }

    /// Counts data that was compared with what was written.
    pub fn add_verified(&self, data: VerifiedData) {
        self.verified.add(data);
    }

    /// Returns the data that this process compared since the last [`Recorder::clear`], by age.
    pub fn verified(&self) -> Vec<VerifiedData> {
        self.verified.counts()
    }

    /// Returns the kept calls of a phase: at most eight for each reason, and no call twice. `began_ns` is the
    /// start of the phase, in nanoseconds of the monotonic clock.
    pub fn calls(&self, began_ns: u64) -> Vec<Call> {
        calls::merge(&self.kept_calls(), began_ns)
    }

    pub(super) fn kept_calls(&self) -> Vec<KeptCalls<'_>> {
        self.thread_slots().filter_map(|slot| slot.calls()).collect()
    }

    pub(super) fn thread_slots(&self) -> impl Iterator<Item = ThreadSlot<'_>> {
        let requested = self.mapping.words()[0].load(Relaxed).min(THREAD_SLOTS as u64) as usize;
        (0..requested).map(|number| self.thread_slot_at(number))
    }

    fn operation(&self, operation: Operation) -> Option<OperationStats> {
        let mut stats = OperationStats { operation, latency: Histogram::new(), errors: 0 };
        for slot in self.thread_slots() {
            let Some(words) = slot.operation(operation) else { continue };
            stats.errors += words[0].load(Relaxed);
            stats.latency.merge(&histogram(words));
        }
        (stats.latency.count() > 0).then_some(stats)
    }
}

/// Part of the recorder that is written by one thread.
#[derive(Clone, Copy)]
pub struct ThreadSlot<'recorder> {
    head: &'recorder [AtomicU64],
    /// Histograms and kept calls; empty for the probe's thread slot and for an untracked one.
    body: &'recorder [AtomicU64],
}

/// Adds a value to a word. A plain load and store are enough, because only one thread writes the word.
fn add_to_word(word: &AtomicU64, value: u64) {
    word.store(word.load(Relaxed).wrapping_add(value), Relaxed);
}

impl<'recorder> ThreadSlot<'recorder> {
    /// Records that a call has started. `now_ns` is the time on the monotonic clock in nanoseconds.
    #[inline]
    pub fn begin(&self, operation: Operation, now_ns: u64) {
        self.head[1].store(now_ns, Relaxed);
        self.head[0].store(operation as u64 + 1, Release);
    }

    /// Records that the call in flight has returned after `nanoseconds`, successfully or with an error.
    #[inline]
    pub fn end<T, E>(&self, operation: Operation, nanoseconds: u64, result: &Result<T, E>) {
        self.head[0].store(0, Release);
        add_to_word(&self.head[2], 1);
        let Some(words) = self.operation(operation) else { return };
        add_to_word(&words[0], u64::from(result.is_err()));
        add_to_word(&words[1], nanoseconds);
        let before = words[4].load(Relaxed);
        let least = if before == 0 { nanoseconds } else { words[2].load(Relaxed).min(nanoseconds) };
        words[2].store(least, Relaxed);
        words[3].store(words[3].load(Relaxed).max(nanoseconds), Relaxed);
        add_to_word(&words[5 + slot_of(nanoseconds)], 1);
        words[4].store(before + 1, Relaxed);
        let began_ns = self.head[1].load(Relaxed);
        let call = RecordedCall { operation, began_ns, duration_ns: nanoseconds, is_error: result.is_err() };
        if let Some(calls) = self.calls() {
            calls.record(call);
        }
    }

    /// Counts bytes that a read call returned.
    pub fn add_read(&self, bytes: u64) {
        add_to_word(&self.head[3], bytes);
        add_to_word(&self.head[5], bytes);
    }

    /// Counts bytes that a write call accepted.
    pub fn add_written(&self, bytes: u64) {
        add_to_word(&self.head[4], bytes);
        add_to_word(&self.head[6], bytes);
    }

    /// Returns the total duration of all calls of this thread slot since the last [`Recorder::clear`], in
    /// nanoseconds.
    pub fn total_ns(&self) -> u64 {
        let sums = Operation::ALL.iter().filter_map(|operation| self.operation(*operation));
        sums.map(|words| words[1].load(Relaxed)).sum()
    }

    fn operation(&self, operation: Operation) -> Option<&[AtomicU64]> {
        let begin = operation as usize * OPERATION_WORDS;
        self.body.get(begin..begin + OPERATION_WORDS)
    }

    pub(super) fn calls(&self) -> Option<KeptCalls<'recorder>> {
        self.body.len().checked_sub(calls::WORDS).map(|begin| KeptCalls(&self.body[begin..]))
    }

    pub(super) fn slow_calls(&self) -> SlowCallRing<'recorder> {
        SlowCallRing(&self.head[SLOW_CALLS_BEGIN..])
    }

    /// Records a slow call. Only the thread that owns the thread slot may call this.
    pub(crate) fn record_slow_call(&self, call: RawSlowCall) {
        self.slow_calls().record(call);
    }

    fn in_flight(&self) -> Option<InFlightCall> {
        let number = self.head[0].load(std::sync::atomic::Ordering::Acquire).checked_sub(1)?;
        Some(InFlightCall {
            operation: Operation::from_number(number)?,
            since_ns: self.head[1].load(Relaxed),
        })
    }

    fn clear(&self) {
        self.head[3].store(0, Relaxed);
        self.head[4].store(0, Relaxed);
        if let Some(calls) = self.calls() {
            calls.clear();
        }
        for operation in Operation::ALL {
            let Some(words) = self.operation(*operation) else { continue };
            if words[4].load(Relaxed) == 0 {
                continue;
            }
            // Only the buckets between minimum and maximum are written, so that unused memory pages stay
            // untouched.
            let (first, last) = (slot_of(words[2].load(Relaxed)), slot_of(words[3].load(Relaxed)));
            words[5 + first..=5 + last].iter().chain(&words[..5]).for_each(|word| word.store(0, Relaxed));
        }
    }
}

/// Returns the histogram in the words of one operation. If the worker is writing at the same time, at most the
/// last call is missing.
fn histogram(words: &[AtomicU64]) -> Histogram {
    let [sum, least, most, count] = [1, 2, 3, 4].map(|word: usize| words[word].load(Relaxed));
    if count == 0 {
        return Histogram::new();
    }
    let (first, last) = (slot_of(least), slot_of(most.max(least)));
    let counts = words[5 + first..=5 + last].iter().map(|word| word.load(Relaxed)).collect();
    Histogram::from_parts(index_of_slot(first), counts, sum, least..=most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OK: Result<(), ()> = Ok(());

    #[test]
    fn second_mapping_sees_call_in_flight_and_earlier_calls() {
        let (file, path) = crate::platform::shared_file().unwrap();
        let supervisor = Recorder::create(&file).unwrap();
        let worker = Recorder::open(&path).unwrap();
        worker.thread_slot(0).end(Operation::Read, 5_000, &OK);
        worker.thread_slot(3).end(Operation::Read, 7_000, &Err::<(), ()>(()));
        worker.thread_slot(3).add_read(4096);
        worker.thread_slot(3).begin(Operation::Sync, 99);
        worker.thread_slot(1).begin(Operation::Write, 98);

        let flight = supervisor.in_flight().unwrap();
        assert_eq!(
            (flight.operation, flight.since_ns),
            (Operation::Write, 98),
            "the call that started first"
        );
        let seen = supervisor.snapshot();
        assert_eq!((seen.bytes_read, seen.operations.len(), supervisor.finished_run_calls()), (4096, 1, 2));
        assert_eq!((seen.operations[0].errors, seen.operations[0].latency.count()), (1, 2));
        // On macOS the shared file has a path, so the test removes it.
        let _ = std::fs::remove_file(path);
    }

    #[test]
    fn probe_is_separate_from_runs_except_for_totals() {
        let recorder = Recorder::private().unwrap();
        recorder.thread_slot(0).add_written(10);
        recorder.thread_slot(PROBE_THREAD_SLOT).begin(Operation::Read, 7);
        recorder.thread_slot(PROBE_THREAD_SLOT).end(Operation::Getattr, 5_000, &OK);
        recorder.thread_slot(PROBE_THREAD_SLOT).add_read(4096);
        recorder.thread_slot(PROBE_THREAD_SLOT).add_written(1);
        recorder.thread_slot(PROBE_THREAD_SLOT).begin(Operation::Read, 7);

        assert_eq!(
            (recorder.in_flight(), recorder.finished_run_calls(), recorder.bytes_written()),
            (None, 0, 10)
        );
        assert_eq!(recorder.total_calls(), 1);
        assert_eq!(recorder.snapshot().operations, []);
        assert_eq!(
            recorder.probe_in_flight(),
            Some(InFlightCall { operation: Operation::Read, since_ns: 7 })
        );
        recorder.clear();
        assert_eq!((recorder.total_bytes(), recorder.bytes_written()), ((4096, 11), 0));
    }

    #[test]
    fn recorder_of_a_different_size_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recorder");
        std::fs::write(&path, [0u8; 64]).unwrap();
        assert!(Recorder::open(&path).is_err());
    }

    proptest! {
        #[test]
        fn recorded_histogram_equals_a_plain_one(values in proptest::collection::vec(1u64..1 << 40, 1..300)) {
            let recorder = Recorder::private().unwrap();
            let mut plain = Histogram::new();
            for (index, value) in values.iter().enumerate() {
                recorder.thread_slot(index % THREAD_SLOTS).end(Operation::Getattr, *value, &OK);
                plain.record(*value);
            }
            let recorded = recorder.snapshot();
            prop_assert_eq!(&recorded.operations[0].latency, &plain);
            recorder.clear();
            prop_assert_eq!(recorder.snapshot(), RecorderSnapshot::default());
            prop_assert_eq!(recorder.finished_run_calls(), values.len() as u64);
        }
    }
}
