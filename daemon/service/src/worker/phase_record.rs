//! Restores the last phase of an abandoned run from its flight recorder.

use std::time::{Duration, Instant};

use longhaul_measure::platform::monotonic_ns;
use longhaul_measure::recorder::{InFlightCall, Recorder};
use longhaul_model::{CacheState, ColdMethod, Phase, Timestamp};

/// A phase that has started and not ended.
pub struct PhaseStart {
    /// Name of the phase.
    pub name: String,
    /// Cache state of the phase's data.
    pub cache: CacheState,
    /// Method by which the data became cold. `None`: the phase is not cold.
    pub cold_method: Option<ColdMethod>,
    /// Time at which the supervisor received the start of the phase.
    pub started: Instant,
    /// Start of the phase by the wall clock.
    pub started_wall: Timestamp,
}

/// Returns the time that an operation has been in flight.
pub fn call_age(flight: InFlightCall) -> Duration {
    Duration::from_nanos(monotonic_ns().saturating_sub(flight.since_ns))
}

/// Builds the phase from everything that was measured before the operation that hangs.
pub fn truncated_phase(start: PhaseStart, recorder: &Recorder) -> Phase {
    let recorded = recorder.snapshot();
    let nanoseconds = u64::try_from(start.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
    Phase {
        cold_by: start.cold_method,
        began_us: Some(start.started_wall),
        seconds: start.started.elapsed().as_secs_f64(),
        bytes_read: recorded.bytes_read,
        bytes_written: recorded.bytes_written,
        complete: false,
        operations: recorded.operations,
        calls: recorder.calls(monotonic_ns().saturating_sub(nanoseconds)),
        ..Phase::new(start.name, start.cache)
    }
}
