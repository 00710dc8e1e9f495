//! The one door through which a workload does file operations: timed, bounded, cancellable.
//!
//! [`Context::timed`] holds the only pair of clock reads around an operation, with no lock, allocation or I/O between
//! them and the call. Everything else here is made so that nothing else comes between: paths are joined only when an
//! error needs them, bytes are counted after the second clock read.

mod buffer;
mod checks;
mod files;
mod in_place;
mod pace;
mod privacy;
mod session;
mod spread;

use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

pub use buffer::Buffer;
pub use files::{Folder, Listing, OpenFile};
pub use in_place::LINK_CHECK;
pub use session::{PhaseSpec, Reporter, Session};

use crate::error::{RunError, StopReason};
use crate::model::{LONG_WAIT_NS, Operation};
use crate::platform::{monotonic_ns, wall_clock_us};
use crate::recorder::{Lane, LongWait, Recorder};

use pace::Pace;

/// The longest sleep in which nobody looks whether it is time to stop.
const LOOK_AFTER: Duration = Duration::from_millis(50);

/// Says when to stop, and how fast to go. Looked at before every operation, so a run ends after the operation in flight.
#[derive(Default)]
pub struct StopSwitch {
    why: AtomicU8,
    pace: Pace,
}

impl StopSwitch {
    /// Tells whoever looks to stop; the first reason stays.
    pub fn stop(&self, reason: StopReason) {
        let _ = self.why.compare_exchange(0, reason as u8, Relaxed, Relaxed);
    }

    /// Lets work go on again.
    pub fn reset(&self) {
        self.why.store(0, Relaxed);
    }

    /// The reason to stop, if there is one.
    pub fn reason(&self) -> Option<StopReason> {
        [StopReason::Person, StopReason::Cap, StopReason::Orphaned]
            .into_iter()
            .find(|reason| *reason as u8 == self.why.load(Relaxed))
    }

    /// An error if it is time to stop.
    #[inline]
    pub fn check(&self) -> Result<(), RunError> {
        match self.why.load(Relaxed) {
            0 => Ok(()),
            _ => Err(RunError::Stopped(self.reason().unwrap_or(StopReason::Person))),
        }
    }

    /// At most so many operations a second from now on, by all threads together; `None`: as many as it takes.
    pub fn limit(&self, operations_per_second: Option<u32>) {
        self.pace.limit(operations_per_second);
    }

    /// Waits until the next operation may begin; an error if it is time to stop.
    #[inline]
    fn admit(&self) -> Result<(), RunError> {
        self.check()?;
        self.pace.place(monotonic_ns).map_or(Ok(()), |from_ns| self.wait_until(from_ns))
    }

    /// Waits until the monotonic clock shows this; an error as soon as it is time to stop.
    fn wait_until(&self, at_ns: u64) -> Result<(), RunError> {
        loop {
            self.check()?;
            let left = Duration::from_nanos(at_ns.saturating_sub(monotonic_ns()));
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(LOOK_AFTER));
        }
    }
}

/// One thread's door to the target.
pub struct Context<'run> {
    lane: Lane<'run>,
    recorder: &'run Recorder,
    stop: &'run StopSwitch,
    began_ns: u64,
}

impl<'run> Context<'run> {
    /// A door that records in this lane of the recorder; its clock starts now.
    pub fn new(recorder: &'run Recorder, lane: usize, stop: &'run StopSwitch) -> Self {
        Self { lane: recorder.lane(lane), recorder, stop, began_ns: monotonic_ns() }
    }

    /// A door for what no phase asks about: what hangs is seen, and nothing else is kept.
    pub fn bare(recorder: &'run Recorder, lane: usize, stop: &'run StopSwitch) -> Self {
        Self { lane: recorder.bare_lane(lane), ..Self::new(recorder, lane, stop) }
    }

    /// Makes one call between two readings of the monotonic clock and records it.
    #[inline]
    pub fn timed<T>(&self, operation: Operation, call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let began = monotonic_ns();
        self.lane.begin(operation, began);
        let result = call();
        let ended = monotonic_ns();
        let nanoseconds = ended.saturating_sub(began);
        self.lane.end(operation, nanoseconds, &result);
        if nanoseconds > LONG_WAIT_NS && operation != Operation::Decode {
            self.note_wait(operation, nanoseconds, result.as_ref().err());
        }
        result
    }

    /// Writes a long wait down; it costs nothing where there is none.
    #[cold]
    fn note_wait(&self, operation: Operation, nanoseconds: u64, error: Option<&io::Error>) {
        let at_us = wall_clock_us() - i64::try_from(nanoseconds / 1000).unwrap_or(i64::MAX);
        let error = error.map(|error| error.raw_os_error().unwrap_or(0));
        self.lane.note_wait(LongWait { operation, at_us, nanoseconds, error });
    }

    /// As [`Context::timed`], once it may begin and unless it is time to stop; an error gets its operation and path.
    #[inline]
    fn call<T>(
        &self,
        operation: Operation,
        path: impl FnOnce() -> PathBuf,
        call: impl FnOnce() -> io::Result<T>,
    ) -> Result<T, RunError> {
        self.stop.admit()?;
        self.timed(operation, call).map_err(|source| RunError::Operation { operation, path: path(), source })
    }

    /// Times work in memory, such as decoding, so that it stands apart from the reading before it.
    pub fn compute<T>(&self, operation: Operation, work: impl FnOnce() -> T) -> T {
        let mut done = None;
        let _ = self.timed(operation, || {
            done = Some(work());
            Ok(())
        });
        done.expect("timed calls its closure exactly once")
    }

    /// Seconds since this door was made: since the phase began, for the door that a phase gets.
    pub fn elapsed(&self) -> f64 {
        monotonic_ns().saturating_sub(self.began_ns) as f64 / 1e9
    }

    /// Seconds that the calls through this lane took since the phase began.
    pub fn in_calls(&self) -> f64 {
        self.lane.nanoseconds() as f64 / 1e9
    }

    /// Waits until [`Context::elapsed`] reaches this many seconds; returns at once if it has.
    pub fn wait_until(&self, seconds: f64) -> Result<(), RunError> {
        self.stop.wait_until(self.began_ns.saturating_add((seconds * 1e9).ceil() as u64))
    }
}

/// What the instrument adds to one operation, in nanoseconds: the mean of many calls of nothing.
///
/// Measured by the worker before each run and stored with it, as a series of its own; it is never subtracted.
pub fn instrument_ns() -> io::Result<f64> {
    const CALLS: u32 = 20_000;
    let (recorder, stop) = (Recorder::private()?, StopSwitch::default());
    let context = Context::new(&recorder, 0, &stop);
    let began = monotonic_ns();
    for _ in 0..CALLS {
        context.stop.check().map_err(io::Error::other)?;
        context.timed(Operation::Getattr, || Ok(std::hint::black_box(0u8)))?;
    }
    Ok((monotonic_ns() - began) as f64 / f64::from(CALLS))
}

/// What two clock reads take, in nanoseconds: what is left of [`instrument_ns`] without stop switch and recorder.
pub(crate) fn clock_pair_ns() -> f64 {
    const PAIRS: u32 = 20_000;
    let began = monotonic_ns();
    for _ in 0..PAIRS {
        std::hint::black_box((monotonic_ns(), monotonic_ns()));
    }
    (monotonic_ns() - began) as f64 / f64::from(PAIRS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_call_is_recorded_as_an_error_with_its_time() {
        let (recorder, stop) = (Recorder::private().unwrap(), StopSwitch::default());
        let context = Context::new(&recorder, 0, &stop);
        let failed: io::Result<()> = context.timed(Operation::Open, || Err(io::ErrorKind::NotFound.into()));
        assert!(failed.is_err());
        let recorded = recorder.recorded();
        assert_eq!((recorded.operations[0].errors, recorded.operations[0].latency.count()), (1, 1));
    }

    #[test]
    fn after_stop_no_further_call_is_made() {
        let (recorder, stop) = (Recorder::private().unwrap(), StopSwitch::default());
        let context = Context::new(&recorder, 0, &stop);
        stop.stop(StopReason::Person);
        stop.stop(StopReason::Cap);
        let result =
            context.call(Operation::Read, PathBuf::new, || -> io::Result<()> { panic!("was called") });
        assert!(matches!(result, Err(RunError::Stopped(StopReason::Person))), "the first reason stays");
        stop.reset();
        assert!(context.call(Operation::Read, PathBuf::new, || Ok(())).is_ok());
    }

    #[test]
    fn the_instrument_knows_its_own_cost() {
        let cost = instrument_ns().unwrap();
        assert!(cost > 0.0 && cost.is_finite());
    }
}
