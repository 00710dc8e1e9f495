//! Stalls that happened together with an event that explains them.

use std::time::Duration;

use longhaul_model::{Event, Stall, Timestamp};

use super::cause::{StallCause, StallEvidence};

/// Event that explains a stall if it happened at the same time.
struct Explanation {
    cause: StallCause,
    /// Longest time from the event to the start of the stall.
    before: Duration,
    /// Longest time from the end of the stall to the event. Counters are read every ten seconds, or every minute.
    after: Duration,
    matches: fn(&Event) -> bool,
}

/// All explanations; an earlier one goes first.
const EXPLANATIONS: [Explanation; 3] = [
    Explanation {
        cause: StallCause::Wake,
        before: Duration::from_secs(30),
        after: Duration::from_secs(5),
        matches: |event| event.kind == "wake",
    },
    Explanation {
        cause: StallCause::LinkChange,
        before: Duration::from_secs(5),
        after: Duration::from_secs(65),
        matches: is_link_change,
    },
    Explanation {
        cause: StallCause::Reconnect,
        before: Duration::from_secs(5),
        after: Duration::from_secs(65),
        matches: |event| matches!(event.kind.as_str(), "reconnect" | "remount"),
    },
];

fn is_link_change(event: &Event) -> bool {
    event.kind == "usual-link" || (event.kind == "facts-changed" && event.detail.get("link").is_some())
}

/// Returns the event that explains a stall, as cause and evidence; `None` if nothing else happened.
pub(super) fn find(stall: &Stall, events: &[Event]) -> Option<(StallCause, StallEvidence)> {
    let is_meant = |event: &&Event| event.target.as_ref().is_none_or(|target| *target == stall.target);
    EXPLANATIONS.iter().find_map(|explanation| {
        let mut candidates = events.iter().filter(is_meant).filter(|event| (explanation.matches)(event));
        let event = candidates.find(|event| explanation.is_near(stall, event.at_us))?;
        let evidence = StallEvidence {
            matching: 1,
            examined: 1,
            typical_seconds: Duration::from_nanos(stall.longest_ns).as_secs_f64(),
            event_us: Some(event.at_us),
            ..StallEvidence::default()
        };
        Some((explanation.cause, evidence))
    })
}

impl Explanation {
    fn is_near(&self, stall: &Stall, at: Timestamp) -> bool {
        let longest = stall.started_us + Duration::from_nanos(stall.longest_ns);
        let ended = stall.ended_us.unwrap_or(longest).max(longest);
        stall.started_us - self.before <= at && at <= ended + self.after
    }
}
