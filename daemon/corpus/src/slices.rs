//! Slices: parts of a corpus that are used in rotation, so that a slice has rested and is cold when it is used
//! again.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::names::to_cstring;
use longhaul_model::time::DAY;
use longhaul_model::{ColdMethod, Timestamp};

/// Number of slices of a corpus, unless the schedule needs more. The nominal size of a corpus is this many slices.
pub const DEFAULT_SLICES: u64 = 4;

/// Maximum number of slices of a corpus.
pub const MAX_SLICES: u64 = 64;

/// Maximum number of files in a slice. A folder whose name claims more was not created by longhaul.
pub const MAX_FILES: u64 = 10_000_000;

/// Time without any access after which a slice is assumed to be in no cache.
const COLD_AFTER: Duration = DAY;

/// State of one slice of a corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Slice {
    /// Number of files of the slice that have been created. Files are created in the order of their numbers.
    pub built: u64,
    /// Time of the last access, in microseconds since 1970 UTC; `None` if the slice has not been created.
    pub used_us: Option<Timestamp>,
    /// True if the data was evicted from this machine's cache after the last access, and the kernel confirmed it.
    #[serde(default)]
    pub evicted: bool,
    /// Time of the last writing of files; `None` if no time was recorded.
    #[serde(default)]
    pub written_us: Option<Timestamp>,
}

impl Slice {
    /// Records that the slice is accessed: from now on, caches may hold any part of it.
    pub fn set_used(&mut self, now: Timestamp) {
        self.used_us = Some(now);
        self.evicted = false;
    }

    /// Returns the cold method of a phase that reads names and attributes of this slice at time `now`.
    /// Only a rest of a day makes them cold, because eviction does not affect them.
    pub fn metadata_cold_method(&self, now: Timestamp) -> ColdMethod {
        match self.used_us {
            Some(used) if now.since(used) >= COLD_AFTER => ColdMethod::RotatedSlice,
            _ => ColdMethod::Unverified,
        }
    }

    /// Returns the cold method of a phase that reads the data of this slice at time `now`.
    /// Data is cold after a rest of a day, and also after an eviction.
    pub fn data_cold_method(&self, now: Timestamp) -> ColdMethod {
        match self.metadata_cold_method(now) {
            ColdMethod::Unverified if self.evicted => ColdMethod::Evicted,
            other => other,
        }
    }
}

/// Slices of a workload's corpora, as stored in the manifest. Corpora of different scales are kept apart by the
/// size of their slices.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SliceSets {
    slices_by_size: BTreeMap<u64, Vec<Slice>>,
}

impl SliceSets {
    /// Returns one slice of the corpus whose slices have `files` files each; adds it if it is not known yet.
    pub fn slice(&mut self, files: u64, slice: u64) -> &mut Slice {
        let slices = self.slices_by_size.entry(files).or_default();
        if slices.len() <= slice as usize {
            slices.resize(slice as usize + 1, Slice::default());
        }
        &mut slices[slice as usize]
    }

    /// Returns the state of a slice; the default if it is not known yet.
    pub fn get(&self, files: u64, slice: u64) -> Slice {
        let slices = self.slices_by_size.get(&files);
        slices.and_then(|slices| slices.get(slice as usize)).copied().unwrap_or_default()
    }

    /// Records that all slices with files are accessed.
    pub fn set_all_used(&mut self, now: Timestamp) {
        let slices = self.slices_by_size.values_mut().flatten();
        slices.filter(|slice| slice.built > 0).for_each(|slice| slice.set_used(now));
    }

    /// Iterates over the slices with files that were created: number of files of a complete slice, number of the slice,
    /// and number of files that were created.
    pub fn built_files(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        self.slices_by_size.iter().flat_map(|(files, slices)| {
            let built = slices.iter().zip(0..).filter(|(slice, _)| slice.built > 0);
            built.map(move |(slice, number)| (*files, number, slice.built))
        })
    }
}

/// Returns the name of a slice's folder: number of files and number of the slice.
pub fn slice_name(files: u64, slice: u64) -> CString {
    to_cstring(format!("{files}-{slice}"))
}

/// Parses the name of a slice's folder into its number of files and the number of the slice; `None` for other names.
pub fn parse_slice_name(name: &str) -> Option<(u64, u64)> {
    let (files, slice) = name.split_once('-')?;
    let (files, slice) = (files.parse().ok()?, slice.parse().ok()?);
    let is_ours = slice_name(files, slice).to_bytes() == name.as_bytes();
    (is_ours && files <= MAX_FILES && slice < MAX_SLICES).then_some((files, slice))
}

/// Returns the number of the slice to use next. `rotation` is the number of times the target was measured before.
pub fn slice_for_rotation(rotation: u64, slices: u64) -> u64 {
    rotation % slices.clamp(1, MAX_SLICES)
}

/// Returns the number of slices with which each slice rests for at least a day between two uses, if this many
/// rounds start per day on average.
pub fn slices_for_daily_rotation(rounds_per_day: u64) -> u64 {
    // One slice more than rounds in a day, and one for the jitter of the schedule.
    (rounds_per_day + 2).clamp(DEFAULT_SLICES, MAX_SLICES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_possible_slices_are_recognized() {
        assert_eq!(slice_name(1500, 3).to_str().ok().and_then(parse_slice_name), Some((1500, 3)));
        for foreign in ["1500", "1500-", "+1500-3", "1500-03", "1500-64", "10000001-0", "1500-3-1"] {
            assert_eq!(parse_slice_name(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn slice_is_cold_only_after_a_day_of_rest() {
        let slice = |used_us| Slice { built: 1, used_us, ..Slice::default() };
        let begin = Timestamp::UNIX_EPOCH;
        assert_eq!(slice(None).metadata_cold_method(begin), ColdMethod::Unverified);
        assert_eq!(
            slice(Some(begin)).metadata_cold_method(begin + COLD_AFTER - Duration::from_micros(1)),
            ColdMethod::Unverified
        );
        assert_eq!(slice(Some(begin)).metadata_cold_method(begin + COLD_AFTER), ColdMethod::RotatedSlice);
        let evicted = Slice { evicted: true, ..slice(Some(begin)) };
        assert_eq!(
            (evicted.metadata_cold_method(begin), evicted.data_cold_method(begin)),
            (ColdMethod::Unverified, ColdMethod::Evicted)
        );
    }
}
