//! Parts of a corpus that take turns, so that "cold" is cold.

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
}

impl Slice {
    /// How far a phase that meets this slice now may be called cold: by rest alone, as far as is known.
    pub fn cold_by(&self, now_us: i64) -> ColdBy {
        match self.used_us {
            Some(used) if now_us - used >= REST_US => ColdBy::RotatedSlice,
            _ => ColdBy::Unverified,
        }
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
        let slice = |used_us| Slice { built: 1, used_us };
        assert_eq!(slice(None).cold_by(0), ColdBy::Unverified);
        assert_eq!(slice(Some(0)).cold_by(REST_US - 1), ColdBy::Unverified);
        assert_eq!(slice(Some(0)).cold_by(REST_US), ColdBy::RotatedSlice);
    }
}
