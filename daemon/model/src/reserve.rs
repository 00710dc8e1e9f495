//! Space that longhaul leaves free on a target, and on the disk of its database. Pure.

use serde::{Deserialize, Serialize};

/// Space that stays free on a target: a share of its size, up to a number of bytes.
///
/// The upper limit exists because a fixed share alone would refuse to write one megabyte to a 20 TB NAS that has 900 GB
/// left.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FreeSpaceReserve {
    /// Share of the target's size, from 0 to 1.
    pub share: f64,
    /// The most that this share may come to, in bytes.
    pub max_bytes: u64,
}

impl FreeSpaceReserve {
    /// No space has to stay free.
    pub const NONE: Self = Self::share(0.0);

    /// A share of the target's size, from 0 to 1, however many bytes that is.
    pub const fn share(share: f64) -> Self {
        Self { share, max_bytes: u64::MAX }
    }

    /// Returns the bytes that stay free on a target of this size.
    ///
    /// ```
    /// # use longhaul_model::FreeSpaceReserve;
    /// let reserve = FreeSpaceReserve::default();
    /// assert_eq!(reserve.bytes_of(10_000_000_000), 500_000_000);
    /// assert_eq!(reserve.bytes_of(20_000_000_000_000), 2_000_000_000);
    /// ```
    pub fn bytes_of(&self, total_bytes: u64) -> u64 {
        ((total_bytes as f64 * self.share) as u64).min(self.max_bytes)
    }

    /// Returns why this many bytes must not be written to a file system with this many free and total bytes; `None` if they may.
    pub fn refusal(&self, bytes: u64, free_bytes: u64, total_bytes: u64) -> Option<String> {
        let reserve = self.bytes_of(total_bytes);
        (free_bytes < bytes.saturating_add(reserve)).then(|| {
            format!(
                "{:.1} MB are free, but {:.1} MB are needed and {:.1} MB must stay free",
                free_bytes as f64 / 1e6,
                bytes as f64 / 1e6,
                reserve as f64 / 1e6
            )
        })
    }
}

impl Default for FreeSpaceReserve {
    /// 5 % of the target, at most 2 GB.
    fn default() -> Self {
        Self { share: 0.05, max_bytes: 2_000_000_000 }
    }
}
