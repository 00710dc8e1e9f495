//! Detects changes of the ratio of two targets over time (docs/methodology.md#changes-of-the-ratio).

use serde::Serialize;
use utoipa::ToSchema;

use super::events::event_day;
use super::pairing::TargetPair;
use super::verdict::MIN_VERDICT_DAYS;
use super::window::AnalysisWindow;
use crate::stats::{best_split, split_at_event};
use longhaul_model::Event;

/// Kinds of events that disturb a round but change nothing permanently. They cannot explain a lasting change.
const TRANSIENT_EVENTS: [&str; 14] = [
    "wake",
    "hang",
    "recovered",
    "reconnect",
    "clock-step",
    "mount",
    "unmount",
    "pause",
    "resume",
    "prepared",
    "utc-offset",
    "database",
    "missed-rounds",
    "mismatch",
];

/// A lasting change of the ratio of two targets.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct LastingChange {
    /// First day after the change, in days since 1970-01-01.
    #[serde(skip)]
    pub first_day: i64,
    /// Day of the event at which the ratio changed, or else the first day after the change, as an ISO date.
    pub date: String,
    /// Kind of the event that was recorded on that day; `None` if there is none.
    pub event: Option<String>,
    /// Geometric mean of the ratio over the days before the change. The day of the event is not among them.
    pub ratio_before: f64,
    /// Number of valid days before the change.
    pub days_before: usize,
    /// Geometric mean of the ratio over the days after the change.
    pub ratio_after: f64,
    /// Number of valid days after the change.
    pub days_after: usize,
    /// Part of the days that the comparison describes.
    pub described: ChangePart,
}

/// Part of the days of a comparison whose ratio changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChangePart {
    /// The days before the change, because those since are too few for a verdict.
    Before,
    /// The days since the change.
    After,
}

impl LastingChange {
    /// Returns the part that a comparison describes: the newest one with enough days for a verdict. If neither has
    /// enough, that after the change (docs/methodology.md#changes-of-the-ratio).
    const fn newest_part(days_before: usize, days_after: usize) -> ChangePart {
        match days_after >= MIN_VERDICT_DAYS || days_before < MIN_VERDICT_DAYS {
            true => ChangePart::After,
            false => ChangePart::Before,
        }
    }
}

/// Returns the most significant change in a series of daily log ratios. A change at a recorded event takes
/// precedence over a change at an unknown time; `None` if neither is significant.
pub(super) fn find_change(
    days: &[(i64, f64)],
    scope: &AnalysisWindow<'_>,
    pair: TargetPair,
) -> Option<LastingChange> {
    let events = persistent_events(scope, pair);
    let at_events = events.iter().filter_map(|(day, event)| {
        let split = split_at_event(days, *day, events.len()).filter(|split| split.is_change())?;
        Some((split, *day, Some(event.kind.clone())))
    });
    let clearest = at_events.max_by(|(a, ..), (b, ..)| a.t.abs().total_cmp(&b.t.abs()));
    // Only a fallback: a recorded event also explains the change.
    let anywhere = || {
        let split = best_split(days).filter(|split| split.is_change())?;
        let same_day = events.iter().find(|(day, _)| *day == split.first_day);
        Some((split, split.first_day, same_day.map(|(_, event)| event.kind.clone())))
    };
    // The day of an event belongs to neither part, because the event happened during it.
    let (split, changed_on, event) = clearest.or_else(anywhere)?;
    let parts: (Vec<f64>, Vec<f64>) = (
        days.iter().filter(|(day, _)| *day < changed_on).map(|(_, value)| *value).collect(),
        days.iter().filter(|(day, _)| *day >= split.first_day).map(|(_, value)| *value).collect(),
    );
    let mean = |values: &[f64]| (values.iter().sum::<f64>() / values.len().max(1) as f64).exp();
    Some(LastingChange {
        first_day: split.first_day,
        date: super::date_of_day(changed_on).to_string(),
        event,
        ratio_before: mean(&parts.0),
        days_before: parts.0.len(),
        ratio_after: mean(&parts.1),
        days_after: parts.1.len(),
        described: LastingChange::newest_part(parts.0.len(), parts.1.len()),
    })
}

/// Returns the events that may have changed a pair's ratio permanently. At most one event per day is returned,
/// because the daily data cannot separate the effects of two events on the same day.
fn persistent_events<'h>(scope: &AnalysisWindow<'h>, pair: TargetPair) -> Vec<(i64, &'h Event)> {
    let names = [pair.a, pair.b].map(|place| &scope.history.targets[place].name);
    let concerns = |event: &Event| event.target.as_ref().is_none_or(|target| names.contains(&target));
    let mut events: Vec<(i64, &Event)> = scope
        .history
        .events
        .iter()
        .filter(|event| concerns(event) && !TRANSIENT_EVENTS.contains(&event.kind.as_str()))
        .map(|event| (event_day(scope.history, event), event))
        .filter(|(day, _)| *day <= scope.last_day)
        .collect();
    events.dedup_by_key(|(day, _)| *day);
    events
}
