//! Did this change do anything? A pair before and after a moment.

use serde::Serialize;

use super::History;
use super::cell::{Evidence, Position};
use super::comparison::Subject;
use super::pairing::Pair;
use super::scope::{Reading, Scope};
use super::weekly::Question;
use crate::model::TargetName;
use crate::stats::{median, split_at_event};

/// Days on either side that are looked at.
pub const DAYS_AROUND: usize = 14;

/// One endpoint of a pair, before and after a moment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BeforeAfter {
    /// What it is about.
    pub subject: Subject,
    /// Valid days of the pair before and after the day of the change, 14 at most of each.
    pub days: (usize, usize),
    /// The ratio of the pair, which drifts common to both do not touch; `None` below 14 days on a side.
    pub ratio: Option<RatioChange>,
    /// By target: the median time before and after in seconds. A description: levels drift by themselves.
    pub levels: [Option<(f64, f64)>; 2],
}

/// The ratio of a pair before and after.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RatioChange {
    /// Mean ratio before.
    pub before: f64,
    /// Mean ratio after.
    pub after: f64,
    /// Whether they differ, at a chance of 1 % to say so falsely.
    pub changed: bool,
}

/// Every endpoint of a pair around a day, which belongs to neither side. `None` if a target has no run.
pub fn before_after(
    history: &History,
    question: &Question,
    (a, b): (&TargetName, &TargetName),
    day: i64,
) -> Option<Vec<BeforeAfter>> {
    let scope = Scope::of(history, question.week.last_day(), question.scale);
    let place = |name: &TargetName| history.targets.iter().position(|target| target.name == *name);
    let pair = Pair { a: place(a)?, b: place(b)? };
    scope.lives[pair.a].and(scope.lives[pair.b])?;
    let caps =
        Position::all().map(|position| (position, scope.cap(position.workload, position.place))).collect();
    let evidence = Evidence::of(&scope, pair, &caps);
    Some(Position::all().filter_map(|position| around(&evidence, position, day)).collect())
}

fn around(evidence: &Evidence<'_, '_>, position: Position, day: i64) -> Option<BeforeAfter> {
    let days = evidence.days_on(position)?;
    let before = days.iter().filter(|(known, _)| *known < day).count();
    let after = days.iter().filter(|(known, _)| *known > day).count();
    let ratio = split_at_event(&days, day, 1).map(|split| RatioChange {
        before: split.means.0.exp(),
        after: split.means.1.exp(),
        changed: split.is_change(),
    });
    Some(BeforeAfter {
        subject: Subject::of(position),
        days: (before.min(DAYS_AROUND), after.min(DAYS_AROUND)),
        ratio,
        levels: [evidence.pair.a, evidence.pair.b]
            .map(|target| levels(evidence.scope, position, (target, day))),
    })
}

/// Medians of the calendar days before and after.
fn levels(scope: &Scope<'_>, position: Position, (target, day): (usize, i64)) -> Option<(f64, f64)> {
    let around = DAYS_AROUND as i64;
    let within = |days: std::ops::Range<i64>| {
        let times =
            scope.readings(position.workload, position.place, target).filter_map(|(_, day, reading)| {
                match reading {
                    Reading::Time(seconds) if days.contains(&day) => Some(seconds),
                    Reading::Time(_) | Reading::Failed | Reading::Absent => None,
                }
            });
        median(&times.collect::<Vec<_>>())
    };
    within(day - around..day).zip(within(day + 1..day + 1 + around))
}
