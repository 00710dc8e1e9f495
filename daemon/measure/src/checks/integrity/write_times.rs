//! The times at which numbered versions of data were written.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use longhaul_model::Timestamp;
use longhaul_model::time::DAY;

/// Times of versions, at most one a day, as stored in a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WriteTimes {
    times: BTreeMap<u64, Timestamp>,
}

impl WriteTimes {
    /// Records that a version is written at a time. Versions written within a day of a recorded one are left out, so that
    /// the record stays small.
    pub fn record(&mut self, version: u64, now: Timestamp) {
        let last = self.times.last_key_value();
        if last.is_none_or(|(_, time)| now.since(*time) >= DAY) {
            self.times.insert(version, now);
        }
    }

    /// Forgets the times of a version and of all later ones, because their data is written again: until the next record, it counts
    /// as new.
    pub fn forget_from(&mut self, version: u64) -> bool {
        let known = self.times.len();
        self.times.retain(|known, _| *known < version);
        self.times.len() < known
    }

    /// Returns the time at which a version was written, at the latest. `None` if no later version was recorded: the data
    /// is then less than a day old, or older than the record.
    pub fn written_by(&self, version: u64) -> Option<Timestamp> {
        self.times.range(version..).next().map(|(_, time)| *time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_never_looks_older_than_it_is() {
        let start = Timestamp::from_us(1_000_000);
        let mut times = WriteTimes::default();
        for version in 0..48 {
            times.record(version, start + version as u32 * DAY / 8);
        }
        assert_eq!(times.times.len(), 6, "one a day");
        assert_eq!(times.written_by(8), Some(start + DAY));
        assert_eq!(times.written_by(1), Some(start + DAY), "written earlier, but not later than that");
        assert_eq!(times.written_by(41), None);
        times.forget_from(8);
        assert_eq!((times.written_by(0), times.written_by(8)), (Some(start), None));
    }
}
