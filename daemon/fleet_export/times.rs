//! Times at which exports are due.

use std::time::Duration;

use longhaul_model::Timestamp;

/// Time between the start of the service and its first export.
const FIRST_DELAY: Duration = Duration::from_secs(20);
/// Time between two exports.
const INTERVAL: Duration = Duration::from_hours(24);
/// Time after a failed export until it is tried again.
const RETRY_INTERVAL: Duration = Duration::from_hours(1);
/// Time after an export that a round has ended until it is continued.
const CONTINUE_INTERVAL: Duration = Duration::from_mins(10);
/// Time without a complete export from which it is a problem. A laptop away from its network has none for some days.
const PROBLEM_AFTER: Duration = Duration::from_hours(72);

/// The end of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExportEnd {
    /// Everything is exported.
    Complete,
    /// A round began.
    Interrupted,
    /// It failed, for this reason.
    Failed(String),
}

/// Time of the next export, and of the last complete one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportTimes {
    /// Time of the next export.
    pub next: Timestamp,
    /// Last complete export, or the start of the service.
    complete: Timestamp,
}

impl ExportTimes {
    /// Returns the times after a start of the service, or after the collection was set.
    pub fn at_start(now: Timestamp) -> Self {
        Self { next: now + FIRST_DELAY, complete: now }
    }

    /// Returns whether an export is due. A clock that was set back does not delay it by more than a day.
    pub fn is_due(&self, now: Timestamp) -> bool {
        now >= self.next || self.next.since(now) > INTERVAL
    }

    /// Returns whether it is a problem that no export was complete for so long.
    pub fn is_problem(&self, now: Timestamp) -> bool {
        now >= self.complete && now.since(self.complete) >= PROBLEM_AFTER
    }

    /// Returns the times after an export.
    pub fn after(self, end: &ExportEnd, now: Timestamp) -> Self {
        match end {
            ExportEnd::Complete => Self { next: now + INTERVAL, complete: now },
            ExportEnd::Interrupted => Self { next: now + CONTINUE_INTERVAL, ..self },
            ExportEnd::Failed(_) => Self { next: now + RETRY_INTERVAL, ..self },
        }
    }
}

#[cfg(test)]
mod tests {
    use longhaul_model::time::{DAY, HOUR};

    use super::*;

    const NOW: Timestamp = Timestamp::from_us(1_764_000_000_000_000);

    fn failed() -> ExportEnd {
        ExportEnd::Failed("no folder".to_owned())
    }

    #[test]
    fn export_is_due_once_a_day() {
        let times = ExportTimes::at_start(NOW);
        assert!(!times.is_due(NOW) && times.is_due(NOW + FIRST_DELAY));
        let times = times.after(&ExportEnd::Complete, NOW);
        assert!(!times.is_due(NOW + 23 * HOUR) && times.is_due(NOW + DAY));
    }

    #[test]
    fn clock_set_back_does_not_stop_exports() {
        let times = ExportTimes::at_start(NOW).after(&ExportEnd::Complete, NOW);
        assert!(times.is_due(NOW - DAY), "the next export would be two days away");
    }

    #[test]
    fn failure_is_a_problem_after_three_days() {
        let mut times = ExportTimes::at_start(NOW);
        for hour in 0..72 {
            let now = NOW + hour * HOUR;
            assert!(!times.is_problem(now));
            times = times.after(&failed(), now);
            assert!(times.is_due(now + HOUR));
        }
        assert!(times.is_problem(NOW + 72 * HOUR));
        assert!(!times.after(&ExportEnd::Complete, NOW + 72 * HOUR).is_problem(NOW + 73 * HOUR));
    }
}
