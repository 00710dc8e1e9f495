//! Sentences about shares whose data was damaged.

use std::collections::BTreeSet;

use longhaul_analysis::summary::WeeklySummary;
use longhaul_model::TargetName;

use crate::units::count;

/// Returns the shares of a week whose data was damaged, each once.
pub fn damaged_shares(weekly: &WeeklySummary) -> Vec<TargetName> {
    let all: BTreeSet<&TargetName> = weekly.pairs.iter().flat_map(|pair| &pair.damaged).collect();
    all.into_iter().cloned().collect()
}

/// Returns which targets are not called better because of their data; `None` if there are none.
pub fn damage(targets: &[TargetName]) -> Option<String> {
    let names: Vec<&str> = targets.iter().map(|name| name.as_str()).collect();
    let names = names.join(" and on ");
    let consequence = match targets {
        [_] => "the share is not called better, however fast it is",
        _ => "none of them is called better, however fast it is",
    };
    let text = || {
        format!(
            "Data on {names} differed from what was written, so {consequence}; `longhaul integrity` shows where."
        )
    };
    (!targets.is_empty()).then(text)
}

/// Returns title and text of a notification about wrong ranges on a target.
pub fn damage_notification(target: &TargetName, ranges: u64) -> (String, String) {
    let ranges = count(ranges, "range");
    let text = format!(
        "{ranges} of longhaul's own files on {target} did not read back as written. Check the NAS, its disks and its memory. \
         `longhaul integrity` shows where and how."
    );
    (format!("Data on {target} is damaged"), text)
}
