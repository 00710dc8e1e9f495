//! What the flight recorder says of a run that did not come to its end.

use std::time::{Duration, Instant};

use longhaul_measure::model::{CacheState, ColdBy, Phase};
use longhaul_measure::platform::monotonic_ns;
use longhaul_measure::recorder::{InFlight, Recorder};

/// A phase that began and has not ended.
pub struct Begun {
    /// Its name.
    pub name: String,
    /// Whether it meets caches.
    pub cache: CacheState,
    /// How it was made cold.
    pub cold_by: Option<ColdBy>,
    /// When the supervisor heard of it.
    pub at: Instant,
    /// The same by the wall clock, in microseconds since 1970 UTC.
    pub at_us: i64,
}

/// How long an operation has been in flight.
pub fn age(flight: InFlight) -> Duration {
    Duration::from_nanos(monotonic_ns().saturating_sub(flight.since_ns))
}

/// The phase with everything that was measured in it before the operation that hangs.
pub fn cut_short(begun: Begun, recorder: &Recorder) -> Phase {
    let recorded = recorder.recorded();
    let nanoseconds = u64::try_from(begun.at.elapsed().as_nanos()).unwrap_or(u64::MAX);
    Phase {
        name: begun.name,
        cache: begun.cache,
        cold_by: begun.cold_by,
        began_us: Some(begun.at_us),
        seconds: begun.at.elapsed().as_secs_f64(),
        bytes_read: recorded.bytes_read,
        bytes_written: recorded.bytes_written,
        complete: false,
        figures: vec![],
        operations: recorded.operations,
        calls: recorder.calls(monotonic_ns().saturating_sub(nanoseconds)),
        wire: None,
    }
}
