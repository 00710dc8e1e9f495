//! Turns mismatches into events.

use std::collections::BTreeMap;

use longhaul_model::{NotificationEvent, StoredMismatch, TargetName};

use super::occurrence::Occurrence;

/// Returns the targets on which mismatches were found since the last report, by the stored state of what was reported.
pub fn damage_events(mismatches: &[StoredMismatch], state: &BTreeMap<String, String>) -> Vec<Occurrence> {
    let mut new: BTreeMap<&TargetName, (u64, i64)> = BTreeMap::new();
    for mismatch in
        mismatches.iter().filter(|mismatch| mismatch.number > last_reported(&mismatch.target, state))
    {
        let (ranges, last) = new.entry(&mismatch.target).or_default();
        *ranges += 1;
        *last = mismatch.number.max(*last);
    }
    let event = |(target, (ranges, last)): (&TargetName, (u64, i64))| {
        let event = NotificationEvent::DataDamaged { target: target.clone(), ranges };
        Occurrence::reported(event, &state_key(target), last.to_string())
    };
    new.into_iter().map(event).collect()
}

/// Returns the number of the last mismatch on a target that was reported; 0 if none was.
fn last_reported(target: &TargetName, state: &BTreeMap<String, String>) -> i64 {
    state.get(&state_key(target)).and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn state_key(target: &TargetName) -> String {
    format!("damage:{target}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::damage::tests::mismatch;

    #[test]
    fn each_mismatch_is_reported_once() {
        let mut state = BTreeMap::new();
        let all = [mismatch(1, "smb"), mismatch(2, "smb"), mismatch(3, "nfs"), mismatch(4, "smb")];
        let mut reported = vec![];
        for known in [0, 2, 2, 4, 4] {
            for found in damage_events(&all[..known], &state) {
                state.insert(found.state.key, found.state.value.unwrap());
                reported.push((known, found.event.unwrap()));
            }
        }
        let event =
            |target: &str, ranges| NotificationEvent::DataDamaged { target: target.parse().unwrap(), ranges };
        assert_eq!(reported, [(2, event("smb", 2)), (4, event("nfs", 1)), (4, event("smb", 1))]);
    }
}
