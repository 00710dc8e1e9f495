//! Clocks of the service: reading the time, and waiting.

use std::time::Duration;

use longhaul_measure::platform;
use longhaul_model::time::{DAY, Timestamp};

/// One instant as shown by the wall clock and by both monotonic clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClockReading {
    /// Wall-clock time. It may step, so it is only used as a label.
    pub wall: Timestamp,
    /// Offset of local time from UTC, in seconds.
    pub utc_offset_seconds: i32,
    /// Monotonic clock that stops while the machine sleeps, in nanoseconds.
    pub awake_ns: i64,
    /// Monotonic clock that keeps running while the machine sleeps, in nanoseconds.
    pub continuous_ns: i64,
}

impl ClockReading {
    /// Returns the total time that the machine has been asleep since it was started, in nanoseconds.
    pub fn asleep_ns(&self) -> i64 {
        self.continuous_ns - self.awake_ns
    }

    /// Converts an instant of the continuous clock, past or future, to wall-clock time.
    pub fn wall_at(&self, continuous_ns: i64) -> Timestamp {
        let ahead_ns = continuous_ns - self.continuous_ns;
        let distance = Duration::from_nanos(ahead_ns.unsigned_abs());
        if ahead_ns < 0 { self.wall - distance } else { self.wall + distance }
    }

    /// Converts a wall-clock time, past or future, to an instant of the continuous clock.
    pub fn continuous_ns_at(&self, wall: Timestamp) -> i64 {
        let ahead_us = wall.as_us().saturating_sub(self.wall.as_us());
        self.continuous_ns.saturating_add(ahead_us.saturating_mul(1000))
    }

    /// Returns the number of minutes since local midnight.
    pub fn minute_of_day(&self) -> u16 {
        let local_seconds = self.wall.as_us().div_euclid(1_000_000) + i64::from(self.utc_offset_seconds);
        (local_seconds.rem_euclid(DAY.as_secs().cast_signed()) / 60) as u16
    }
}

/// A source of time, replaced by a simulated clock in tests.
pub trait Clock: Send + Sync {
    /// Returns the current time on all clocks.
    fn now(&self) -> ClockReading;

    /// Like [`Clock::now`], for callers that only record the time: a simulated clock does
    /// not advance for this call.
    fn peek(&self) -> ClockReading {
        self.now()
    }

    /// Returns the real time to wait until `time` has passed on this clock. A simulated clock advances by `time` and
    /// returns zero.
    fn real_wait(&self, time: Duration) -> Duration {
        time
    }
}

/// The clocks of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> ClockReading {
        // The awake clock is read first: otherwise the time between the two reads would count as negative sleep.
        let awake_ns = platform::monotonic_ns().cast_signed();
        ClockReading {
            wall: platform::wall_clock(),
            // Follows a changed zone within minutes; `localtime_r` of glibc reads the zone once.
            utc_offset_seconds: jiff::Zoned::now().offset().seconds(),
            awake_ns,
            continuous_ns: platform::continuous_ns().cast_signed(),
        }
    }
}
