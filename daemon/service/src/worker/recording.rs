//! What the flight recorder says of a run that did not come to its end.

use std::path::Path;
use std::time::{Duration, Instant};

use longhaul_measure::model::{CacheState, ColdBy, Failure, Outcome, Phase};
use longhaul_measure::platform::monotonic_ns;
use longhaul_measure::recorder::{InFlight, Recorder};
use longhaul_measure::worker::Ending;

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
        wire: None,
    }
}

/// A run, or a preparation, that hung.
pub fn hung(path: &Path, flight: Option<InFlight>, cap: Duration) -> Ending {
    let what = match flight {
        Some(flight) => format!(
            "`{}` on {} has not returned for {:.1} s",
            flight.operation,
            path.display(),
            age(flight).as_secs_f64()
        ),
        None => format!("the worker of {} does not answer", path.display()),
    };
    let message = format!(
        "{what}; the cap is {:.0} s. Check the NAS and the network; the other targets go on, and this one when the call \
         has returned",
        cap.as_secs_f64()
    );
    Ending {
        outcome: Outcome::Hung,
        failure: Failure {
            operation: flight.map(|flight| flight.operation),
            path: Some(path.display().to_string()),
            error: None,
            message,
        },
    }
}
