//! Whether the ratio of two targets changed on the way.

use serde::Serialize;
use utoipa::ToSchema;

use super::history::local_day;
use super::pairing::Pair;
use super::scope::Scope;
use crate::model::Event;
use crate::stats::{best_split, split_at_event};

/// Kinds of events that pass: they disturb a round, but leave nothing changed behind.
const PASSING: [&str; 17] = [
    "wake",
    "sleep",
    "hang",
    "recovered",
    "stall",
    "reconnect",
    "clock-step",
    "mount",
    "unmount",
    "restart",
    "start",
    "stop",
    "pause",
    "resume",
    "prepared",
    "utc-offset",
    "database",
];

/// A change of the ratio.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Change {
    /// The first day after it, in days since 1970-01-01.
    #[serde(skip)]
    pub first_day: i64,
    /// The same, as a date.
    pub date: String,
    /// The recorded event that it goes with; `None` if nothing was recorded.
    pub event: Option<String>,
    /// Mean ratio of the days before.
    pub ratio_before: f64,
    /// How many days that is.
    pub days_before: usize,
    /// Mean ratio of the days after.
    pub ratio_after: f64,
    /// How many days that is.
    pub days_after: usize,
}

/// The clearest change in a series of days: at a recorded event, else at any time.
pub(super) fn change(days: &[(i64, f64)], scope: &Scope<'_>, pair: Pair) -> Option<Change> {
    let events = lasting_events(scope, pair);
    let at_events = events.iter().filter_map(|(day, event)| {
        let split = split_at_event(days, *day, events.len()).filter(|split| split.is_change())?;
        Some((split, Some(event.kind.clone())))
    });
    let clearest = at_events.max_by(|(a, _), (b, _)| a.t.abs().total_cmp(&b.t.abs()));
    let anywhere = || best_split(days).filter(|split| split.is_change()).map(|split| (split, None));
    let (split, event) = clearest.or_else(anywhere)?;
    let parts: (Vec<f64>, Vec<f64>) = (
        days.iter().filter(|(day, _)| *day < split.first_day).map(|(_, value)| *value).collect(),
        days.iter().filter(|(day, _)| *day >= split.first_day).map(|(_, value)| *value).collect(),
    );
    let mean = |values: &[f64]| (values.iter().sum::<f64>() / values.len().max(1) as f64).exp();
    Some(Change {
        first_day: split.first_day,
        date: super::calendar(split.first_day).to_string(),
        event,
        ratio_before: mean(&parts.0),
        days_before: parts.0.len(),
        ratio_after: mean(&parts.1),
        days_after: parts.1.len(),
    })
}

/// What may have changed a pair's ratio for good, one event a day: what happens on one day cannot be told apart.
fn lasting_events<'h>(scope: &Scope<'h>, pair: Pair) -> Vec<(i64, &'h Event)> {
    let names = [pair.a, pair.b].map(|place| &scope.history.targets[place].name);
    let concerns = |event: &Event| event.target.as_ref().is_none_or(|target| names.contains(&target));
    let offset = scope.history.rounds.last().map_or(0, |round| round.utc_offset_seconds);
    let mut events: Vec<(i64, &Event)> = scope
        .history
        .events
        .iter()
        .filter(|event| concerns(event) && !PASSING.contains(&event.kind.as_str()))
        .map(|event| (local_day(event.at_us, offset), event))
        .filter(|(day, _)| *day <= scope.through)
        .collect();
    events.dedup_by_key(|(day, _)| *day);
    events
}
