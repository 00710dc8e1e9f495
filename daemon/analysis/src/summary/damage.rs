//! The shares whose data differed from what was written.

use super::events::event_day;
use super::window::AnalysisWindow;
use longhaul_model::{Event, Mismatch, TargetName};

/// Returns those of the targets on which a mismatch was found in their newest epoch, up to the window's last day.
pub(super) fn damaged(scope: &AnalysisWindow<'_>, targets: [usize; 2]) -> Vec<TargetName> {
    let is_damaged = |place: &usize| {
        let name = &scope.history.targets[*place].name;
        let is_of = |event: &Event| event.kind == Mismatch::EVENT && event.target.as_ref() == Some(name);
        scope.history.events.iter().filter(|event| is_of(event)).any(|event| is_within(scope, *place, event))
    };
    let damaged = targets.into_iter().filter(is_damaged);
    damaged.map(|place| scope.history.targets[place].name.clone()).collect()
}

fn is_within(scope: &AnalysisWindow<'_>, place: usize, event: &Event) -> bool {
    let Some(active) = scope.active_epochs[place] else { return false };
    let opened = scope.history.epochs.iter().find(|epoch| epoch.number == active.epoch);
    let is_in_epoch = opened.is_none_or(|epoch| event.at_us >= epoch.opened_us);
    is_in_epoch && event_day(scope.history, event) <= scope.last_day
}
