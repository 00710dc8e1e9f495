//! Turns the free space on the targets into events.

use std::collections::BTreeMap;

use longhaul_model::stored::FreeSpace;
use longhaul_model::{NotificationEvent, TargetName};

use super::occurrence::Occurrence;

/// Share of a disk by which the free space has to exceed the limit before it is reported again.
const MARGIN: f64 = 0.02;

/// Returns the disks whose free share fell below `below` (from 0 to 1), compared with the stored state of what was reported.
pub fn disk_events(
    space: &BTreeMap<TargetName, FreeSpace>,
    state: &BTreeMap<String, String>,
    below: f64,
) -> Vec<Occurrence> {
    let event = |(target, space): (&TargetName, &FreeSpace)| {
        let total_bytes = space.total_bytes.filter(|total| *total > 0)?;
        let share = space.free_bytes as f64 / total_bytes as f64;
        let key = format!("disk:{target}");
        match state.contains_key(&key) {
            false if share < below => {
                let (target, free_bytes) = (target.clone(), space.free_bytes);
                let event = NotificationEvent::DiskNearlyFull { target, free_bytes, total_bytes };
                Some(Occurrence::reported(event, &key, space.observed.as_us().to_string()))
            }
            true if share > below + MARGIN => Some(Occurrence::silent(&key, None)),
            _ => None,
        }
    };
    space.iter().filter_map(event).collect()
}

#[cfg(test)]
mod tests {
    use longhaul_model::Timestamp;

    use super::*;

    #[test]
    fn full_disk_is_reported_once_until_space_is_free_again() {
        let mut state = BTreeMap::new();
        let mut reported = vec![];
        for (percent, time) in [(50, 1), (4, 2), (3, 3), (6, 4), (4, 5), (8, 6), (4, 7)] {
            let observed = Timestamp::from_us(time);
            let space = FreeSpace { free_bytes: percent, total_bytes: Some(100), observed };
            let spaces = BTreeMap::from([("smb".parse().unwrap(), space)]);
            for found in disk_events(&spaces, &state, 0.05) {
                match found.state.value {
                    Some(value) => drop(state.insert(found.state.key, value)),
                    None => drop(state.remove(&found.state.key)),
                }
                reported.extend(found.event.map(|_| time));
            }
        }
        assert_eq!(reported, [2, 7]);
    }

    #[test]
    fn disk_of_unknown_size_is_not_judged() {
        let space = FreeSpace { free_bytes: 0, total_bytes: None, observed: Timestamp::from_us(1) };
        let spaces = BTreeMap::from([("smb".parse().unwrap(), space)]);
        assert!(disk_events(&spaces, &BTreeMap::new(), 0.05).is_empty());
    }
}
