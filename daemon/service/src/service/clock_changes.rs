//! Detects sleep, steps of the wall clock and changes of the local time zone. Pure.

use longhaul_model::Event;
use serde_json::{Value, json};

use crate::clock::ClockReading;

/// Sleep and wall-clock steps up to this length are ignored as noise, in nanoseconds.
const CLOCK_STEP_THRESHOLD_NS: i64 = 2_000_000_000;

/// The last reading of the clocks.
pub(super) struct ClockChanges {
    last: ClockReading,
}

impl ClockChanges {
    /// Starts to compare with this reading.
    pub(super) fn since(last: ClockReading) -> Self {
        Self { last }
    }

    /// Returns the last reading.
    pub(super) fn last(&self) -> ClockReading {
        self.last
    }

    /// Returns the changes since the last reading.
    pub(super) fn update(&mut self, now: ClockReading) -> Vec<Event> {
        let before = std::mem::replace(&mut self.last, now);
        let event = |kind: &str, detail: Value| Event {
            target: None,
            kind: kind.to_owned(),
            detail,
            at_us: now.wall,
        };
        let mut events = vec![];
        let slept_ns = now.asleep_ns() - before.asleep_ns();
        if slept_ns > CLOCK_STEP_THRESHOLD_NS {
            events.push(event(WAKE_EVENT, json!({ "slept_seconds": slept_ns / 1_000_000_000 })));
        }
        let step_seconds = now.wall.seconds_since(before.wall_at(now.continuous_ns));
        if step_seconds.abs() > CLOCK_STEP_THRESHOLD_NS as f64 / 1e9 {
            events.push(event("clock-step", json!({ "seconds": step_seconds })));
        }
        if now.utc_offset_seconds != before.utc_offset_seconds {
            let detail = json!({ "before": before.utc_offset_seconds, "after": now.utc_offset_seconds });
            events.push(event("utc-offset", detail));
        }
        events
    }
}

/// Kind of the event after the machine slept.
pub(super) const WAKE_EVENT: &str = "wake";

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::Timestamp;

    #[test]
    fn sleep_steps_and_time_zones_are_told_apart() {
        let start = ClockReading::default();
        let mut changes = ClockChanges::since(start);
        let mut kinds = |now: ClockReading| -> Vec<String> {
            changes.update(now).into_iter().map(|event| event.kind).collect()
        };
        let later = ClockReading { wall: Timestamp::from_us(9_000_000), awake_ns: 9_000_000_000, ..start };
        let later = ClockReading { continuous_ns: 9_000_000_000, ..later };
        assert!(kinds(later).is_empty(), "time passes");
        let slept =
            ClockReading { wall: Timestamp::from_us(69_000_000), continuous_ns: 69_000_000_000, ..later };
        assert_eq!(kinds(slept), [WAKE_EVENT]);
        let stepped = ClockReading { wall: Timestamp::from_us(0), ..slept };
        assert_eq!(kinds(stepped), ["clock-step"]);
        assert_eq!(kinds(ClockReading { utc_offset_seconds: 3600, ..stepped }), ["utc-offset"]);
    }
}
