//! Time as an argument: the moment it is, and waiting.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use longhaul_measure::platform;

/// One instant on all clocks that matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moment {
    /// The wall clock, in microseconds since 1970 UTC: a label, which may step.
    pub wall_us: i64,
    /// Offset of local time from UTC, in seconds.
    pub utc_offset_seconds: i32,
    /// A clock that never steps and stops while the machine sleeps, in nanoseconds.
    pub awake_ns: i64,
    /// A clock that never steps and goes on while the machine sleeps, in nanoseconds.
    pub continuous_ns: i64,
}

impl Moment {
    /// How long the machine has slept in all, in nanoseconds.
    pub fn asleep_ns(&self) -> i64 {
        self.continuous_ns - self.awake_ns
    }

    /// What the wall clock says, or will say, at an instant of the continuous clock, in microseconds since 1970 UTC.
    pub fn wall_us_at(&self, continuous_ns: i64) -> i64 {
        self.wall_us + (continuous_ns - self.continuous_ns) / 1000
    }

    /// Minutes since local midnight.
    pub fn minute_of_day(&self) -> u16 {
        let local_seconds = self.wall_us.div_euclid(1_000_000) + i64::from(self.utc_offset_seconds);
        (local_seconds.rem_euclid(86_400) / 60) as u16
    }
}

/// Where the time comes from.
pub trait Clock: Send {
    /// The moment it is.
    fn now(&self) -> Moment;

    /// The same, for whoever only takes notes and decides nothing by it: a scripted clock does not go on for that.
    fn glance(&self) -> Moment {
        self.now()
    }

    /// Waits until the bell rings, this long at most.
    fn wait(&self, bell: &Bell, limit: Duration);
}

/// The clocks of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        // Read together, the awake clock first: what passes between the two must not look like sleep that is undone.
        let awake_ns = platform::monotonic_ns().cast_signed();
        Moment {
            wall_us: platform::wall_clock_us(),
            utc_offset_seconds: platform::utc_offset_seconds(),
            awake_ns,
            continuous_ns: platform::continuous_ns().cast_signed(),
        }
    }

    fn wait(&self, bell: &Bell, limit: Duration) {
        bell.wait(limit);
    }
}

/// Wakes the one who waits. A ring that nobody waits for is heard by the next who does.
#[derive(Debug, Default)]
pub struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Bell {
    /// Rings.
    pub fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits for a ring, this long at most.
    pub fn wait(&self, limit: Duration) {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(rung, limit, |rung| !*rung);
        let (mut rung, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *rung = false;
    }
}
