//! Formats the events of a week for users.

use jiff::tz::{Offset, TimeZone};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::Week;
use longhaul_model::{Event, History, TargetName, Timestamp};

/// An event, formatted as one line.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct EventLine {
    /// Local date and time of the event.
    pub at: String,
    /// Target of the event; `None` if it concerns the whole machine.
    pub target: Option<TargetName>,
    /// Kind of event, in one word.
    pub kind: String,
    /// Details as they were stored; times are local date and time, and what is private is `hidden-1`, `hidden-2`, ...
    #[schema(value_type = Object)]
    pub detail: Value,
}

/// Returns the events of a week, oldest first.
pub(super) fn events_of_week(history: &History, week: Week) -> Vec<EventLine> {
    let entry = |event: &Event| {
        let offset = utc_offset_at(history, event.at_us);
        week.contains(event.at_us.local_day(offset)).then(|| EventLine {
            at: local_time(event.at_us, offset),
            target: event.target.clone(),
            kind: event.kind.clone(),
            detail: with_local_times(&event.detail, offset),
        })
    };
    // Test data that were made change no results.
    history.events.iter().filter(|event| event.kind != "prepared").filter_map(entry).collect()
}

/// Returns details in which times are local date and time: `until: 2026-11-12 09:31` for `until_us`.
fn with_local_times(detail: &Value, offset_seconds: i32) -> Value {
    let Value::Object(fields) = detail else { return detail.clone() };
    let field = |(key, value): (&String, &Value)| match (key.strip_suffix("_us"), value.as_i64()) {
        (Some(name), Some(at)) => {
            (name.to_owned(), Value::String(local_time(Timestamp::from_us(at), offset_seconds)))
        }
        _ => (key.clone(), value.clone()),
    };
    Value::Object(fields.iter().map(field).collect())
}

/// Returns the local day of an event, in days since 1970-01-01.
pub fn event_day(history: &History, event: &Event) -> i64 {
    event.at_us.local_day(utc_offset_at(history, event.at_us))
}

/// Returns the UTC offset of local time at an event, in seconds. Events store no offset: it is that of the previous round, or of
/// the first round if there is none before; in a night in which the clocks change, that of the time zone in which this round
/// was made, if it is still the machine's.
fn utc_offset_at(history: &History, at: Timestamp) -> i32 {
    let later = history.rounds.partition_point(|round| round.started_us <= at);
    let round = history.rounds.get(later.saturating_sub(1)).or(history.rounds.first());
    let zone = history.settings.zone.as_deref().and_then(|name| TimeZone::get(name).ok());
    let in_zone = |at: Timestamp| {
        let instant = jiff::Timestamp::from_microsecond(at.as_us()).ok()?;
        Some(zone.as_ref()?.to_offset(instant).seconds())
    };
    round.map_or(0, |round| {
        let is_same_zone = in_zone(round.started_us) == Some(round.utc_offset_seconds);
        in_zone(at).filter(|_| is_same_zone).unwrap_or(round.utc_offset_seconds)
    })
}

/// Formats a time as local date and time, for example `2026-11-12 09:31`.
fn local_time(at: Timestamp, offset_seconds: i32) -> String {
    let zone = Offset::from_seconds(offset_seconds).unwrap_or(Offset::UTC).to_time_zone();
    match jiff::Timestamp::from_microsecond(at.as_us()) {
        Ok(instant) => instant.to_zoned(zone).strftime("%Y-%m-%d %H:%M").to_string(),
        Err(_) => format!("{} µs since 1970", at.as_us()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::{RoundRecord, Scale};

    fn at(text: &str) -> Timestamp {
        Timestamp::from_us(text.parse::<jiff::Timestamp>().unwrap().as_microsecond())
    }

    #[test]
    fn event_in_the_night_of_a_change_of_the_clocks_has_its_own_offset() {
        let mut history = History::default();
        history.settings.zone = Some("Europe/Berlin".to_owned());
        history.rounds.push(RoundRecord {
            number: 1,
            started_us: at("2026-10-24T22:30:00Z"),
            utc_offset_seconds: 7_200,
            scale: Scale::Quick,
            status: None,
            reason: None,
        });
        let event = at("2026-10-25T02:30:00Z");
        assert_eq!(local_time(event, utc_offset_at(&history, event)), "2026-10-25 03:30");
        history.rounds[0].utc_offset_seconds = 3 * 3_600;
        assert_eq!(utc_offset_at(&history, event), 3 * 3_600, "the round was made in another zone");
    }
}
