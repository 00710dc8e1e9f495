//! The events of a week, for people.

use jiff::Timestamp;
use jiff::tz::Offset;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::history::local_day;
use super::{History, Week};
use crate::model::{Event, TargetName};

/// An event.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct JournalEntry {
    /// Local date and time.
    pub at: String,
    /// The target; `None` for the whole machine.
    pub target: Option<TargetName>,
    /// What happened, in one word.
    pub kind: String,
    /// The particulars, in one line.
    pub detail: String,
}

/// The events of a week, oldest first.
pub(super) fn journal(history: &History, week: Week) -> Vec<JournalEntry> {
    let entry = |event: &Event| {
        let offset = offset_at(history, event.at_us);
        week.contains(local_day(event.at_us, offset)).then(|| JournalEntry {
            at: local_time(event.at_us, offset),
            target: event.target.clone(),
            kind: event.kind.clone(),
            detail: one_line(&event.detail),
        })
    };
    history.events.iter().filter_map(entry).collect()
}

/// The offset of local time when something happened: that of the round before it, or else of the first one.
fn offset_at(history: &History, at_us: i64) -> i32 {
    let later = history.rounds.partition_point(|round| round.started_us <= at_us);
    let round = history.rounds.get(later.saturating_sub(1)).or(history.rounds.first());
    round.map_or(0, |round| round.utc_offset_seconds)
}

/// `2026-11-12 09:31`.
fn local_time(at_us: i64, offset_seconds: i32) -> String {
    let zone = Offset::from_seconds(offset_seconds).unwrap_or(Offset::UTC).to_time_zone();
    match Timestamp::from_microsecond(at_us) {
        Ok(instant) => instant.to_zoned(zone).strftime("%Y-%m-%d %H:%M").to_string(),
        Err(_) => format!("{at_us} µs since 1970"),
    }
}

/// `before: 1500, after: 9000`; objects inside are shown in the same way, in brackets.
pub fn one_line(detail: &Value) -> String {
    match detail {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Object(map) => {
            let parts = map.iter().filter(|(_, value)| !value.is_null()).map(|(key, value)| match value {
                Value::Object(_) => format!("{key} ({})", one_line(value)),
                _ => format!("{key}: {}", one_line(value)),
            });
            parts.collect::<Vec<_>>().join(", ")
        }
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => detail.to_string(),
    }
}
