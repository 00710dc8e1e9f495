//! Counts the data that a phase compares with what was written. The counts are in this process's own memory: those of
//! a phase that hangs are lost.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use longhaul_model::{DataAge, VerifiedData};

/// Counts of bytes and files, by the age of the data.
#[derive(Debug, Default)]
pub struct VerifiedCounters {
    bytes: [AtomicU64; DataAge::ALL.len()],
    files: [AtomicU64; DataAge::ALL.len()],
}

impl VerifiedCounters {
    /// Counts data that was compared.
    pub fn add(&self, data: VerifiedData) {
        let index = data.age as usize;
        self.bytes[index].fetch_add(data.bytes, Relaxed);
        self.files[index].fetch_add(data.files, Relaxed);
    }

    /// Returns the counts, without ages of which nothing was compared.
    pub fn counts(&self) -> Vec<VerifiedData> {
        let count = |age: DataAge| VerifiedData {
            age,
            bytes: self.bytes[age as usize].load(Relaxed),
            files: self.files[age as usize].load(Relaxed),
        };
        DataAge::ALL.into_iter().map(count).filter(|data| data.bytes > 0).collect()
    }

    /// Sets all counts to zero.
    pub fn clear(&self) {
        self.bytes.iter().chain(&self.files).for_each(|count| count.store(0, Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_kept_by_age_until_they_are_cleared() {
        let counters = VerifiedCounters::default();
        let data = |age, bytes, files| VerifiedData { age, bytes, files };
        for added in [data(DataAge::Weeks, 5, 1), data(DataAge::Hours, 7, 0), data(DataAge::Weeks, 1, 1)] {
            counters.add(added);
        }
        assert_eq!(counters.counts(), [data(DataAge::Hours, 7, 0), data(DataAge::Weeks, 6, 2)]);
        counters.clear();
        assert_eq!(counters.counts(), []);
    }
}
