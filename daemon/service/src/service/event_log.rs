//! Stores events, and keeps those that the database does not accept yet.

use longhaul_model::{Event, Hint};

use crate::database::Database;

/// Maximum number of events that wait until they can be stored.
const MAX_UNSTORED: usize = 1_000;

/// Events that could not be stored yet, as on a full disk: a pause must outlast a restart.
#[derive(Default)]
pub(super) struct EventLog {
    unstored: Vec<Event>,
}

impl EventLog {
    /// Stores events, or keeps them for [`Self::store`] if others wait.
    pub(super) fn record(&mut self, events: impl IntoIterator<Item = Event>, database: &Database) {
        let others_wait = !self.unstored.is_empty();
        for event in events {
            let target_name = event.target.as_ref().map(|name| name.as_str());
            tracing::info!(kind = event.kind, target_name, "event");
            self.unstored.push(event);
        }
        if !others_wait {
            self.store(database);
        }
    }

    /// Stores the events that are not stored yet. If the disk is full or the database is locked, they are kept for the next try.
    pub(super) fn store(&mut self, database: &Database) {
        let mut waiting = std::mem::take(&mut self.unstored).into_iter();
        for event in waiting.by_ref() {
            let Err(error) = database.writer().add_event(event.clone()) else { continue };
            let can_retry = error.is_retryable();
            tracing::warn!(
                error = error.one_line(),
                kind = event.kind,
                can_retry,
                "an event could not be stored"
            );
            if can_retry {
                self.unstored.push(event);
                break;
            }
        }
        self.unstored.extend(waiting);
        self.drop_oldest();
    }

    /// Drops the oldest events if too many wait, but never the last pause or resume.
    fn drop_oldest(&mut self) {
        let waiting = self.unstored.len();
        let is_pause = |event: &Event| matches!(event.kind.as_str(), "pause" | "resume");
        let last_pause = self.unstored.drain(..waiting.saturating_sub(MAX_UNSTORED)).rfind(is_pause);
        if let Some(pause) = last_pause
            && !self.unstored.iter().any(is_pause)
        {
            self.unstored.insert(0, pause);
        }
        let dropped = waiting - self.unstored.len();
        if dropped > 0 {
            tracing::warn!(dropped, "too many events wait for the database, so the oldest are not stored");
        }
    }
}

#[cfg(test)]
mod tests {
    use longhaul_model::Timestamp;
    use serde_json::json;

    use super::*;

    /// Lets events of these kinds and then a thousand others wait. Returns the times of those that are kept: the first event has
    /// the time 0, the second one 1 and so on.
    fn kept_times(first: &[&str]) -> Vec<i64> {
        let kinds = first.iter().copied().chain(std::iter::repeat_n("wake", MAX_UNSTORED));
        let event = |(time, kind): (i64, &str)| Event {
            target: None,
            kind: kind.to_owned(),
            detail: json!({}),
            at_us: Timestamp::from_us(time),
        };
        let mut log = EventLog { unstored: (0..).zip(kinds).map(event).collect() };
        log.drop_oldest();
        log.unstored.iter().map(|event| event.at_us.as_us()).collect()
    }

    #[test]
    fn oldest_events_are_dropped() {
        assert_eq!(kept_times(&["wake", "wake"]), Vec::from_iter(2..1_002));
    }

    #[test]
    fn last_pause_is_never_dropped() {
        assert_eq!(kept_times(&["resume", "wake", "pause", "wake"])[..3], [2, 4, 5]);
    }
}
