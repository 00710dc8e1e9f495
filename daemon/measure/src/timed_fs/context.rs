//! The handle of one thread, with the only clock reads around an operation.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::RunError;
use crate::platform::{monotonic_ns, wall_clock};
use crate::recorder::{RawSlowCall, Recorder, ThreadSlot};
use longhaul_model::{Operation, SLOW_CALL_NS, VerifiedData};

use super::stop_switch::StopSwitch;

/// One thread's handle for timed file operations on the target.
pub struct TimedFs<'run> {
    pub(super) thread_slot: ThreadSlot<'run>,
    pub(super) recorder: &'run Recorder,
    pub(super) stop: &'run StopSwitch,
    pub(super) began_ns: u64,
}

impl<'run> TimedFs<'run> {
    /// Creates a handle that records in this thread slot of the recorder. Its clock starts now.
    pub fn new(recorder: &'run Recorder, slot: usize, stop: &'run StopSwitch) -> Self {
        Self { thread_slot: recorder.thread_slot(slot), recorder, stop, began_ns: monotonic_ns() }
    }

    /// Creates a handle for operations outside phases.
    ///
    /// The recorder shows the operation in flight, so that hangs are detected, but stores no latencies.
    pub fn untracked(recorder: &'run Recorder, slot: usize, stop: &'run StopSwitch) -> Self {
        Self { thread_slot: recorder.untracked_thread_slot(slot), ..Self::new(recorder, slot, stop) }
    }

    /// Runs one call between two reads of the monotonic clock and records its latency and result.
    #[inline]
    pub fn timed<T>(&self, operation: Operation, call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let start = monotonic_ns();
        self.thread_slot.begin(operation, start);
        let result = call();
        let end = monotonic_ns();
        let nanoseconds = end.saturating_sub(start);
        self.thread_slot.end(operation, nanoseconds, &result);
        if nanoseconds > SLOW_CALL_NS && operation != Operation::Decode {
            self.record_slow_call(operation, nanoseconds, result.as_ref().err());
        }
        result
    }

    /// Records a slow call with its start time. Kept out of [`TimedFs::timed`], so that fast calls do not pay for
    /// it.
    #[cold]
    fn record_slow_call(&self, operation: Operation, nanoseconds: u64, error: Option<&io::Error>) {
        let at = wall_clock() - Duration::from_nanos(nanoseconds);
        let error = error.map(|error| error.raw_os_error().unwrap_or(0));
        self.thread_slot.record_slow_call(RawSlowCall { operation, at, duration_ns: nanoseconds, error });
    }

    /// Like [`TimedFs::timed`], but first waits for the rate limit and checks for a stop request.
    ///
    /// Errors include the operation and the path.
    #[inline]
    pub(super) fn call<T>(
        &self,
        operation: Operation,
        path: impl FnOnce() -> PathBuf,
        call: impl FnOnce() -> io::Result<T>,
    ) -> Result<T, RunError> {
        self.stop.acquire()?;
        self.timed(operation, call).map_err(|source| RunError::Operation { operation, path: path(), source })
    }

    /// Times work in memory, such as decoding, as an operation of its own, separate from the read before it.
    pub fn compute<T>(&self, operation: Operation, work: impl FnOnce() -> T) -> T {
        let mut done = None;
        let _ = self.timed(operation, || {
            done = Some(work());
            Ok(())
        });
        done.expect("timed calls its closure exactly once")
    }

    /// Counts bytes that one timed call wrote by other means than the files of this handle.
    pub fn add_written(&self, bytes: u64) {
        self.thread_slot.add_written(bytes);
    }

    /// Counts data that was read back and compared with what was written. Call it after the comparison.
    pub fn add_verified(&self, data: VerifiedData) {
        self.recorder.add_verified(data);
    }

    /// Counts processor time of this program that is not part of the task, so that the task is not charged with it.
    pub fn add_own_work(&self, nanoseconds: u64) {
        self.recorder.add_own_work(nanoseconds);
    }

    /// Returns the seconds since this handle was created; in a phase, the seconds since the phase started.
    pub fn elapsed(&self) -> f64 {
        monotonic_ns().saturating_sub(self.began_ns) as f64 / 1e9
    }

    /// Returns the seconds that this thread spent in file operations since the phase started.
    pub fn seconds_in_calls(&self) -> f64 {
        self.thread_slot.total_ns() as f64 / 1e9
    }

    /// Waits until [`TimedFs::elapsed`] reaches this many seconds. Returns at once if this time has passed.
    pub fn wait_until(&self, seconds: f64) -> Result<(), RunError> {
        self.stop.wait_until(self.began_ns.saturating_add((seconds * 1e9).ceil() as u64))
    }

    /// Waits for this time. Returns an error as soon as a stop is requested.
    pub fn pause(&self, time: Duration) -> Result<(), RunError> {
        self.stop.wait_until(monotonic_ns().saturating_add(time.as_nanos() as u64))
    }
}

/// Measures the time that longhaul itself adds to one operation, in nanoseconds: the mean of many empty calls.
///
/// The worker measures it before each run and stores it with the run, as a separate value that is never
/// subtracted.
pub fn timed_fs_overhead_ns() -> io::Result<f64> {
    const CALLS: u32 = 20_000;
    let (recorder, stop) = (Recorder::private()?, StopSwitch::default());
    let context = TimedFs::new(&recorder, 0, &stop);
    let start = monotonic_ns();
    for _ in 0..CALLS {
        context.stop.check().map_err(io::Error::other)?;
        context.timed(Operation::Getattr, || Ok(std::hint::black_box(0u8)))?;
    }
    Ok((monotonic_ns() - start) as f64 / f64::from(CALLS))
}

/// Measures the duration of two clock reads, in nanoseconds.
///
/// This is the part of [`timed_fs_overhead_ns`] without the stop switch and the recorder.
pub(crate) fn clock_pair_ns() -> f64 {
    const PAIRS: u32 = 20_000;
    let start = monotonic_ns();
    for _ in 0..PAIRS {
        std::hint::black_box((monotonic_ns(), monotonic_ns()));
    }
    (monotonic_ns() - start) as f64 / f64::from(PAIRS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::StopReason;

    #[test]
    fn a_failed_call_is_recorded_as_an_error_with_its_time() {
        let (recorder, stop) = (Recorder::private().unwrap(), StopSwitch::default());
        let context = TimedFs::new(&recorder, 0, &stop);
        let failed: io::Result<()> = context.timed(Operation::Open, || Err(io::ErrorKind::NotFound.into()));
        assert!(failed.is_err());
        let recorded = recorder.snapshot();
        assert_eq!((recorded.operations[0].errors, recorded.operations[0].latency.count()), (1, 1));
    }

    #[test]
    fn after_stop_no_further_call_is_made() {
        let (recorder, stop) = (Recorder::private().unwrap(), StopSwitch::default());
        let context = TimedFs::new(&recorder, 0, &stop);
        stop.stop(StopReason::Supervisor);
        stop.stop(StopReason::Cap);
        let result = context.call(Operation::Read, PathBuf::new, || -> io::Result<()> {
            panic!("the call was made after the stop")
        });
        assert!(matches!(result, Err(RunError::Stopped(StopReason::Supervisor))), "the first reason is kept");
        stop.reset();
        assert!(context.call(Operation::Read, PathBuf::new, || Ok(())).is_ok());
    }

    #[test]
    fn overhead_per_operation_is_measured() {
        let overhead_ns = timed_fs_overhead_ns().unwrap();
        assert!(overhead_ns > 0.0 && overhead_ns.is_finite());
    }
}
