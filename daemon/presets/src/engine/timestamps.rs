//! Time inside and outside file operations.

use longhaul_measure::timed_fs::TimedFs;

/// The seconds since the start of the phase, and the seconds that this thread spent in file operations.
#[derive(Clone, Copy)]
pub(super) struct Timestamps {
    /// Seconds since the start of the phase.
    pub(super) elapsed: f64,
    /// Seconds that this thread spent in file operations.
    in_calls: f64,
}

impl Timestamps {
    /// Reads both clocks.
    pub(super) fn now(context: &TimedFs<'_>) -> Self {
        Self { elapsed: context.elapsed(), in_calls: context.seconds_in_calls() }
    }

    /// Returns the seconds since these timestamps that the thread spent outside file operations.
    pub(super) fn outside_calls(self, context: &TimedFs<'_>) -> f64 {
        let now = Self::now(context);
        (now.elapsed - self.elapsed) - (now.in_calls - self.in_calls)
    }
}
