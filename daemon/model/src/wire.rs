//! Comparison of the traffic on the wire with the bytes delivered in a phase, to check whether the claimed
//! cache state is true.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};
use utoipa::ToSchema;

use crate::names::stored_names;
use crate::{CounterScope, CounterSource};

/// Minimum number of delivered bytes from which a phase's cache state can be judged.
pub const MIN_BYTES: u64 = 64 << 10;
/// Maximum share of the delivered bytes from the client's cache for a phase to count as cold. An earlier look
/// into each photo of a batch caches less: 128 KiB of read-ahead per 2 MiB.
pub const MAX_COLD_CACHE_SHARE: f64 = 0.1;
/// Minimum share of the delivered bytes from the client's cache for a phase to count as warm.
pub const MIN_WARM_CACHE_SHARE: f64 = 0.9;
/// Number of bytes that a client may read ahead in each file without any program using them: the SMB client
/// of Linux fetches a whole `bsize`. More traffic than that belongs to another program that shares the
/// counter.
pub const READ_AHEAD_BYTES: u64 = 1 << 20;
/// Minimum number of calls from which the cache state of a phase without reads can be judged.
pub const MIN_CALLS: u64 = 20;

/// Change of the counters from just before to just after a phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WireTraffic {
    /// Bytes received; for a local disk, bytes read from it.
    pub read: Option<u64>,
    /// Bytes sent before the phase ended. Data that a client writes later is not included.
    pub written: Option<u64>,
    /// Number of requests.
    pub requests: Option<u64>,
    /// Number of requests that read a batch of a folder's names; `None` if the source does not count them, or counted none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listings: Option<u64>,
    /// Source of the counters.
    pub source: CounterSource,
    /// Scope of the counters.
    pub scope: CounterScope,
}

/// Origin of a phase's data, judged by the bytes on the wire: cold (server or disk) or warm (client cache).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[derive(Serialize, Deserialize, ToSchema, IntoStaticStr, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum ServedFrom {
    /// The data came from the server or the disk.
    Cold,
    /// The data came from this machine's cache.
    Warm,
    /// The data came partly from the server or disk and partly from this machine's cache.
    Mixed,
    /// The origin of the data is unknown.
    Unknown,
}

impl WireTraffic {
    /// Returns the share of the delivered bytes that this machine's cache served, from 0 to 1, for a phase
    /// that read this many files.
    ///
    /// `None` if too few bytes were read, if no counter measures them, or if read-ahead cannot explain the
    /// bytes on the wire: then the counter includes traffic of other programs. Smaller amounts of such
    /// traffic cannot be separated and count as the phase's own.
    pub fn client_cache_share(&self, delivered: u64, files: u64) -> Option<f64> {
        let crossed = self.read.filter(|_| delivered >= MIN_BYTES)?;
        let explained = delivered.saturating_add(READ_AHEAD_BYTES.saturating_mul(files.max(1)));
        let is_ours = crossed <= explained || self.scope == CounterScope::Process;
        is_ours.then(|| (1.0 - crossed as f64 / delivered as f64).clamp(0.0, 1.0))
    }
}

stored_names! { ServedFrom }

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn wire(read: Option<u64>) -> WireTraffic {
        WireTraffic {
            read,
            written: None,
            requests: None,
            listings: None,
            source: CounterSource::Mountstats,
            scope: CounterScope::Mount,
        }
    }

    #[test]
    fn each_file_may_be_read_ahead() {
        let batch = wire(Some(6_266_257));
        assert_eq!(batch.client_cache_share(3_382_673, 17), Some(0.0), "17 photos over SMB, 64 KiB of each");
        assert_eq!(batch.client_cache_share(3_382_673, 1), None);
    }

    proptest! {
        #[test]
        fn the_client_cache_share_is_between_0_and_1(delivered: u64, files: u64, read: Option<u64>) {
            let share = wire(read).client_cache_share(delivered, files);
            prop_assert!(share.is_none_or(|share| (0.0..=1.0).contains(&share)));
        }
    }
}
