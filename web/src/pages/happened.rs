//! What happened, as ticks on an axis of time.

use longhaul_measure::model::{Event, TargetName};

/// When and what, of the machine and of a target, oldest first.
pub fn happened(events: &[Event], name: &TargetName) -> Vec<(i64, String)> {
    let concerns = |event: &&Event| event.target.as_ref().is_none_or(|target| target == name);
    events.iter().filter(concerns).map(|event| (event.at_us, event.kind.clone())).collect()
}
