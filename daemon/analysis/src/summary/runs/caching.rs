//! Detects whether the client caches file data of a target: the share of re-read bytes that came from this machine's
//! cache instead of the network (docs/methodology.md#client-caching). Pure functions.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use longhaul_model::{Reread, TargetName, median};

/// Minimum number of re-reads for a verdict on client caching.
pub const MIN_REREADS: usize = 3;
/// Median share of re-read bytes served by the client from which a target counts as cached.
pub const CACHED_SHARE: f64 = 0.5;

/// Verdict on client caching of one target in its newest epoch.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ClientCaching {
    /// Target that the verdict is about.
    pub target: TargetName,
    /// Protocol of the target; `None` if unknown.
    pub protocol: Option<String>,
    /// True if the client caches the target's data; `None` with fewer than [`MIN_REREADS`] usable re-reads.
    pub cached: Option<bool>,
    /// Number of re-reads with a known share.
    pub rereads: usize,
    /// Median share of re-read bytes that the client served from its cache, from 0 to 1.
    pub median_share: Option<f64>,
}

/// Returns the verdict on client caching for each target, from the re-reads of its newest epoch. Re-reads are ignored
/// if they read too little data or if the counter includes other traffic.
pub fn client_caching(rereads: &[Reread]) -> Vec<ClientCaching> {
    let mut newest: BTreeMap<&TargetName, i64> = BTreeMap::new();
    for reread in rereads {
        let epoch = newest.entry(&reread.target).or_insert(reread.epoch);
        *epoch = reread.epoch.max(*epoch);
    }
    newest.into_iter().filter_map(|(target, epoch)| target_caching(rereads, target, epoch)).collect()
}

fn target_caching(rereads: &[Reread], target: &TargetName, epoch: i64) -> Option<ClientCaching> {
    let of_epoch = rereads.iter().filter(|reread| reread.target == *target && reread.epoch == epoch);
    let usable = of_epoch.filter_map(|reread| {
        Some((reread, reread.wire.client_cache_share(reread.bytes_read, reread.files)?))
    });
    let (known, shares): (Vec<&Reread>, Vec<f64>) = usable.unzip();
    let protocol = known.last()?.protocol.clone();
    let n = shares.len();
    let median_share = median(&shares);
    let cached = median_share.filter(|_| n >= MIN_REREADS).map(|share| share >= CACHED_SHARE);
    Some(ClientCaching { target: target.clone(), protocol, cached, rereads: n, median_share })
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::{CounterScope, CounterSource, WireTraffic};
    use proptest::prelude::*;

    fn reread(target: &str, epoch: i64, crossed: u64) -> Reread {
        let wire = WireTraffic {
            listings: None,
            read: Some(crossed),
            written: None,
            requests: None,
            source: CounterSource::Mountstats,
            scope: CounterScope::Mount,
        };
        let target = target.parse().expect("a name");
        Reread { target, epoch, protocol: Some("NFS 4.2".to_owned()), bytes_read: 100 << 20, files: 1, wire }
    }

    #[test]
    fn client_that_serves_rereads_from_its_cache_is_cached() {
        let served = |crossed| client_caching(&[1, 2, 3].map(|_| reread("nas", 1, crossed))).remove(0);
        let yes = served(1 << 20);
        assert_eq!((yes.cached, yes.rereads, yes.median_share), (Some(true), 3, Some(0.99)));
        assert_eq!(served(100 << 20).cached, Some(false));
    }

    #[test]
    fn too_few_rereads_in_newest_epoch_give_no_verdict() {
        let found = client_caching(&[
            reread("nas", 1, 0),
            reread("nas", 1, 0),
            reread("nas", 1, 0),
            reread("nas", 2, 0),
        ]);
        assert_eq!((found[0].cached, found[0].rereads), (None, 1));
    }

    #[test]
    fn rereads_with_foreign_traffic_are_ignored() {
        let foreign = reread("nas", 1, 400 << 20);
        assert_eq!(client_caching(&[foreign.clone(), foreign]), []);
    }

    proptest! {
        #[test]
        fn median_share_lies_between_zero_and_one(crossed in proptest::collection::vec(any::<u64>(), 0..20)) {
            let rereads: Vec<Reread> = crossed.into_iter().map(|bytes| reread("nas", 1, bytes)).collect();
            for found in client_caching(&rereads) {
                prop_assert!(found.rereads <= rereads.len());
                prop_assert!(found.median_share.is_some_and(|share| (0.0..=1.0).contains(&share)));
            }
        }
    }
}
