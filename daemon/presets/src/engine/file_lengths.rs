//! The lengths of the files of a set to which phases append, and the space that they may still take.

use std::sync::atomic::Ordering::Relaxed;

use super::file_sets::TestFileSet;

impl TestFileSet {
    /// Returns the length of a file in bytes: the size in the profile, unless a phase created the file or appended to it.
    pub fn length_of(&self, number: u64) -> u64 {
        let known = self.lengths.lock().get(&number).copied();
        known.unwrap_or_else(|| self.initial_bytes(number))
    }

    /// Returns the number of bytes of a file that are read or written as the whole file: its size in the profile, or
    /// more after appends.
    pub fn covered_bytes(&self, number: u64) -> u64 {
        self.length_of(number).max(self.initial_bytes(number))
    }

    /// Notes that a file was created and is empty.
    pub fn note_created(&self, number: u64) {
        if self.single_turn.is_some() {
            self.lengths.lock().insert(number, 0);
        }
    }

    /// Notes that a file was written up to byte `end`.
    pub fn note_written(&self, number: u64, end: u64) {
        if self.single_turn.is_some() {
            let mut lengths = self.lengths.lock();
            let length = lengths.entry(number).or_insert_with(|| self.initial_bytes(number));
            *length = end.max(*length);
        }
    }

    /// Forgets the length of a file that is deleted, and gives back the space by which it had grown.
    pub fn note_deleted(&self, number: u64) {
        if let Some(length) = self.lengths.lock().remove(&number) {
            self.growth_left.fetch_add(length.saturating_sub(self.initial_bytes(number)), Relaxed);
        }
    }

    /// Reserves the space by which a file grows if data is appended up to byte `end`. Returns false if there is none.
    ///
    /// The space of its size in the profile is reserved in any case.
    pub fn may_grow(&self, number: u64, end: u64) -> bool {
        let growth = end.saturating_sub(self.covered_bytes(number));
        self.growth_left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(growth)).is_ok()
    }
}
