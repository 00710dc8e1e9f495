//! Parts of a corpus that take turns, so that "cold" is cold.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::ColdBy;

/// How many parts a corpus has.
pub const SLICES: u64 = 4;

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
    sets: BTreeMap<u64, [Slice; SLICES as usize]>,
}

impl Sets {
    /// One slice of the corpus whose slices have this many files.
    pub fn slice(&mut self, files: u64, slice: u64) -> &mut Slice {
        &mut self.sets.entry(files).or_default()[slice as usize]
    }
}

/// The slice whose turn it is in a round.
pub fn turn(round: i64) -> u64 {
    round.unsigned_abs() % SLICES
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
