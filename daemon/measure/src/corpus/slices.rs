//! Parts of a corpus that take turns, so that "cold" is cold.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::ColdBy;

/// How many parts a corpus has unless its schedule wants more; a corpus is as large as this many slices.
pub const SLICES: u64 = 4;

/// The most parts that a corpus may have.
pub const MOST_SLICES: u64 = 64;

/// How long a slice must have rested before caches may be assumed to have forgotten it.
const REST_US: i64 = 24 * 3600 * 1_000_000;

/// One part of a corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Slice {
    /// How many of its files are made, in their order.
    pub built: u64,
    /// When it was last touched, in microseconds since 1970; `None` before it is made.
    pub used_us: Option<i64>,
    /// Whether its data was evicted from this machine's cache when it was last left, confirmed by the kernel.
    #[serde(default)]
    pub evicted: bool,
}

impl Slice {
    /// How far a phase that meets the names and attributes of this slice now may be called cold: only rest tells.
    pub fn cold_by(&self, now_us: i64) -> ColdBy {
        match self.used_us {
            Some(used) if now_us - used >= REST_US => ColdBy::RotatedSlice,
            _ => ColdBy::Unverified,
        }
    }

    /// The same for a phase that meets its data, which eviction makes cold too.
    pub fn data_cold_by(&self, now_us: i64) -> ColdBy {
        match self.cold_by(now_us) {
            ColdBy::Unverified if self.evicted => ColdBy::Evicted,
            other => other,
        }
    }
}

/// What a workload keeps of its corpora in the manifest: by the size of a slice, the slices.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Sets {
    sets: BTreeMap<u64, Vec<Slice>>,
}

impl Sets {
    /// One slice of the corpus whose slices have this many files.
    pub fn slice(&mut self, files: u64, slice: u64) -> &mut Slice {
        let slices = self.sets.entry(files).or_default();
        if slices.len() <= slice as usize {
            slices.resize(slice as usize + 1, Slice::default());
        }
        &mut slices[slice as usize]
    }
}

/// The slice whose turn it is when the target has been measured so many times before.
pub fn turn(rotation: u64, slices: u64) -> u64 {
    rotation % slices.clamp(1, MOST_SLICES)
}

/// How many slices let each of them rest for a day between two turns, when rounds begin this often on average.
///
/// One more than fit into a day, and one for the jitter of the schedule.
pub fn slices_that_rest(rounds_per_day: u64) -> u64 {
    (rounds_per_day + 2).clamp(SLICES, MOST_SLICES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_cold_only_after_a_day_of_rest() {
        let slice = |used_us| Slice { built: 1, used_us, evicted: false };
        assert_eq!(slice(None).cold_by(0), ColdBy::Unverified);
        assert_eq!(slice(Some(0)).cold_by(REST_US - 1), ColdBy::Unverified);
        assert_eq!(slice(Some(0)).cold_by(REST_US), ColdBy::RotatedSlice);
        let evicted = Slice { evicted: true, ..slice(Some(0)) };
        assert_eq!((evicted.cold_by(1), evicted.data_cold_by(1)), (ColdBy::Unverified, ColdBy::Evicted));
    }
}
