//! What crossed the wire during a phase, beside what was delivered: how far a claim about caches is borne out.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{CacheState, Covers, Operation, Phase, Source};

/// Fewer bytes read than this say nothing about caches.
pub const LEAST_BYTES: u64 = 64 << 10;
/// Up to this share of the delivered bytes, served by the client, a phase is cold. It is more than a batch of photos has
/// from the look into each of them before: read ahead, 128 KiB of 2 MiB.
pub const COLD_SHARE: f64 = 0.1;
/// From this share on it is warm.
pub const WARM_SHARE: f64 = 0.9;
/// Bytes that a client may fetch ahead in each file without anybody using them: the SMB client of Linux fetches a whole
/// `bsize`. What is more than this is somebody else's, in the same counter.
pub const READ_AHEAD: u64 = 1 << 20;
/// Fewer calls than this say nothing about caches.
pub const LEAST_CALLS: u64 = 20;

/// What a counter counted from just before to just after a phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Wire {
    /// Bytes received; for a local disk, bytes read from it.
    pub read: Option<u64>,
    /// Bytes sent until the phase ended. What a client writes later than that is not in it.
    pub written: Option<u64>,
    /// Requests.
    pub requests: Option<u64>,
    /// Where that is from.
    pub source: Source,
    /// What is counted there.
    pub covers: Covers,
}

/// Where a phase was served from, as its bytes tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ServedFrom {
    /// The server, or the disk.
    Cold,
    /// This machine's cache.
    Warm,
    /// Some of both.
    Mixed,
    /// It cannot be told.
    Unknown,
}

impl ServedFrom {
    /// The name that is shown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Warm => "warm",
            Self::Mixed => "mixed",
            Self::Unknown => "unknown",
        }
    }
}

impl Wire {
    /// The share of the bytes that read calls returned, of so many files, that this machine's cache served, from 0 to 1.
    /// `None` where too few were read, where nothing counts them, or where more crossed than read-ahead explains: then
    /// somebody else's are among them. Fewer of those pass for ours.
    pub fn served_by_client(&self, delivered: u64, files: u64) -> Option<f64> {
        let crossed = self.read.filter(|_| delivered >= LEAST_BYTES)?;
        let explained = delivered.saturating_add(READ_AHEAD.saturating_mul(files.max(1)));
        let is_ours = crossed <= explained || self.covers == Covers::Process;
        is_ours.then(|| (1.0 - crossed as f64 / delivered as f64).clamp(0.0, 1.0))
    }
}

impl Phase {
    /// Where the phase was served from. Bytes decide if it read files. If it only asked for names and attributes, one
    /// answer may hold many of them: then requests tell that none were needed, and nothing else.
    pub fn served_from(&self) -> ServedFrom {
        let Some(wire) = &self.wire else { return ServedFrom::Unknown };
        match self.served_by_client() {
            Some(share) if share <= COLD_SHARE => ServedFrom::Cold,
            Some(share) if share >= WARM_SHARE => ServedFrom::Warm,
            Some(_) => ServedFrom::Mixed,
            None if self.bytes_read < LEAST_BYTES && self.asked_nobody(wire) => ServedFrom::Warm,
            None => ServedFrom::Unknown,
        }
    }

    /// The share of its bytes that the client served itself; see [`Wire::served_by_client`].
    pub fn served_by_client(&self) -> Option<f64> {
        self.wire.as_ref()?.served_by_client(self.bytes_read, self.files_opened())
    }

    /// How many files it opened.
    pub fn files_opened(&self) -> u64 {
        let opens = self.operations.iter().filter(|stats| stats.operation == Operation::Open);
        opens.map(|stats| stats.latency.count()).sum()
    }

    /// Whether its bytes tell that a phase that claims to be cold was not.
    pub fn belies_its_claim(&self) -> bool {
        let found = self.served_from();
        self.cache == CacheState::Cold && matches!(found, ServedFrom::Warm | ServedFrom::Mixed)
    }

    /// Fewer than one request for a hundred calls.
    fn asked_nobody(&self, wire: &Wire) -> bool {
        let calls: u64 = self.operations.iter().map(|stats| stats.latency.count()).sum();
        calls >= LEAST_CALLS && wire.requests.is_some_and(|requests| requests.saturating_mul(100) <= calls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ColdBy, OperationStats};
    use crate::stats::Histogram;
    use proptest::prelude::*;

    fn wire(read: Option<u64>, requests: Option<u64>) -> Wire {
        Wire { read, written: None, requests, source: Source::Mountstats, covers: Covers::Mount }
    }

    fn phase(bytes_read: u64, wire: Option<Wire>) -> Phase {
        let mut latency = Histogram::default();
        (0..1000).for_each(|_| latency.record(1000));
        Phase {
            name: "read".into(),
            cache: CacheState::Cold,
            cold_by: Some(ColdBy::Evicted),
            began_us: None,
            seconds: 1.0,
            bytes_read,
            bytes_written: 0,
            complete: true,
            figures: vec![],
            operations: vec![OperationStats { operation: Operation::Getattr, latency, errors: 0 }],
            calls: vec![],
            wire,
        }
    }

    #[test]
    fn bytes_that_crossed_make_a_phase_cold_and_those_that_did_not_warm() {
        let found = |crossed| phase(100 << 20, Some(wire(Some(crossed), None))).served_from();
        assert_eq!(found(100 << 20), ServedFrom::Cold);
        assert_eq!(found(101 << 20), ServedFrom::Cold, "read ahead");
        assert_eq!((found(91 << 20), found(50 << 20)), (ServedFrom::Cold, ServedFrom::Mixed));
        assert_eq!((found(9 << 20), found(0)), (ServedFrom::Warm, ServedFrom::Warm));
    }

    #[test]
    fn other_peoples_bytes_in_the_same_counter_make_it_unknown() {
        let shared = wire(Some(400 << 20), None);
        let own = Wire { covers: Covers::Process, source: Source::Disk, ..shared.clone() };
        assert_eq!(phase(100 << 20, Some(shared)).served_from(), ServedFrom::Unknown);
        assert_eq!(
            phase(100 << 20, Some(own)).served_from(),
            ServedFrom::Cold,
            "nobody else is counted there"
        );
    }

    #[test]
    fn each_file_may_be_read_ahead() {
        let batch = wire(Some(6_266_257), None);
        assert_eq!(batch.served_by_client(3_382_673, 17), Some(0.0), "17 photos over SMB, 64 KiB of each");
        assert_eq!(batch.served_by_client(3_382_673, 1), None);
    }

    #[test]
    fn without_bytes_only_a_phase_that_asked_nobody_is_known() {
        let found = |requests| phase(0, Some(wire(Some(0), requests))).served_from();
        assert_eq!(
            (found(Some(3)), found(Some(10)), found(Some(11))),
            (ServedFrom::Warm, ServedFrom::Warm, ServedFrom::Unknown)
        );
        assert_eq!(
            (found(None), phase(100 << 20, None).served_from()),
            (ServedFrom::Unknown, ServedFrom::Unknown)
        );
    }

    #[test]
    fn a_phase_that_claims_cold_and_was_served_by_the_cache_is_found_out() {
        let cached = phase(100 << 20, Some(wire(Some(1 << 20), None)));
        assert!(cached.belies_its_claim());
        assert!(!Phase { cache: CacheState::Warm, ..cached.clone() }.belies_its_claim());
        assert!(!Phase { wire: None, ..cached }.belies_its_claim(), "what is not known is no accusation");
    }

    proptest! {
        #[test]
        fn a_share_is_between_nothing_and_all(delivered: u64, files: u64, read: Option<u64>) {
            let share = wire(read, None).served_by_client(delivered, files);
            prop_assert!(share.is_none_or(|share| (0.0..=1.0).contains(&share)));
        }
    }
}
