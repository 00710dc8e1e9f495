//! Whether a client caches what it reads over a protocol: how much of a second reading it served itself. Pure.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use crate::model::{CacheState, Phase, Run, TargetName, Wire};
use crate::stats::median;

/// Second readings that are needed to say yes or no.
pub const LEAST_READINGS: usize = 3;
/// From this share on, served by the client at a second reading, a protocol is cached by it.
pub const CACHED_SHARE: f64 = 0.5;

/// A second reading of what had just been read, with what crossed the wire for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Reread {
    /// The target.
    pub target: TargetName,
    /// Its epoch.
    pub epoch: i64,
    /// How it was reached; `None` where that is not known.
    pub protocol: Option<String>,
    /// Bytes that read calls returned.
    pub bytes_read: u64,
    /// Files that were opened.
    pub files: u64,
    /// What crossed.
    pub wire: Wire,
}

impl Reread {
    /// Of a phase that is one.
    pub fn of(run: &Run, epoch: i64, phase: &Phase) -> Option<Self> {
        let wire = phase.wire.clone().filter(|_| phase.cache == CacheState::Warm && phase.complete)?;
        let protocol = run.protocol.as_ref().map(ToString::to_string);
        Some(Self {
            target: run.target.clone(),
            epoch,
            protocol,
            bytes_read: phase.bytes_read,
            files: phase.files_opened(),
            wire,
        })
    }
}

/// What second readings say of a target in its newest epoch.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Caching {
    /// The target.
    pub target: TargetName,
    /// How it is reached.
    pub protocol: Option<String>,
    /// Whether its client caches; `None` while fewer than [`LEAST_READINGS`] tell.
    pub cached: Option<bool>,
    /// How many second readings tell.
    pub n: usize,
    /// The median share of their bytes that the client served itself, from 0 to 1.
    pub median_share: Option<f64>,
    /// The same in words.
    pub text: String,
}

/// By target, from the second readings of its newest epoch: those that read enough, and in whose counter nobody else's
/// bytes are.
pub fn caching(rereads: &[Reread]) -> Vec<Caching> {
    let mut newest: BTreeMap<&TargetName, i64> = BTreeMap::new();
    for reread in rereads {
        let epoch = newest.entry(&reread.target).or_insert(reread.epoch);
        *epoch = reread.epoch.max(*epoch);
    }
    newest.into_iter().filter_map(|(target, epoch)| of_target(rereads, (target, epoch))).collect()
}

fn of_target(rereads: &[Reread], (target, epoch): (&TargetName, i64)) -> Option<Caching> {
    let of_epoch = rereads.iter().filter(|reread| reread.target == *target && reread.epoch == epoch);
    let telling = of_epoch
        .filter_map(|reread| Some((reread, reread.wire.served_by_client(reread.bytes_read, reread.files)?)));
    let (known, shares): (Vec<&Reread>, Vec<f64>) = telling.unzip();
    let protocol = known.last()?.protocol.clone();
    let n = shares.len();
    let median_share = median(&shares);
    let cached = median_share.filter(|_| n >= LEAST_READINGS).map(|share| share >= CACHED_SHARE);
    let text = text((target, protocol.as_deref()), cached, (median_share, n));
    Some(Caching { target: target.clone(), protocol, cached, n, median_share, text })
}

fn text(of: (&TargetName, Option<&str>), cached: Option<bool>, figures: (Option<f64>, usize)) -> String {
    let ((target, protocol), (share, n)) = (of, figures);
    let protocol = protocol.unwrap_or("protocol not known");
    let percent = (share.unwrap_or(0.0) * 100.0).round();
    let readings = if n == 1 { "one second reading".to_owned() } else { format!("{n} second readings") };
    let served = format!("of {readings} it served {percent} % itself (median)");
    match cached {
        Some(true) => format!("{target} ({protocol}): cached by the client: yes; {served}."),
        Some(false) => format!("{target} ({protocol}): cached by the client: no; {served}."),
        None => format!(
            "{target} ({protocol}): cached by the client: not known before {LEAST_READINGS} second readings; {served}."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Covers, Source};
    use proptest::prelude::*;

    fn reread(target: &str, epoch: i64, crossed: u64) -> Reread {
        let wire = Wire {
            read: Some(crossed),
            written: None,
            requests: None,
            source: Source::Mountstats,
            covers: Covers::Mount,
        };
        let target = target.parse().expect("a name");
        Reread { target, epoch, protocol: Some("NFS 4.2".to_owned()), bytes_read: 100 << 20, files: 1, wire }
    }

    #[test]
    fn a_client_that_serves_second_readings_itself_caches() {
        let served = |crossed| caching(&[1, 2, 3].map(|_| reread("nas", 1, crossed))).remove(0);
        let yes = served(1 << 20);
        assert_eq!((yes.cached, yes.n, yes.median_share), (Some(true), 3, Some(0.99)));
        assert_eq!(
            yes.text,
            "nas (NFS 4.2): cached by the client: yes; of 3 second readings it served 99 % itself (median)."
        );
        assert_eq!(served(100 << 20).cached, Some(false));
    }

    #[test]
    fn too_few_readings_and_older_epochs_say_neither_yes_nor_no() {
        let found =
            caching(&[reread("nas", 1, 0), reread("nas", 1, 0), reread("nas", 1, 0), reread("nas", 2, 0)]);
        assert_eq!((found[0].cached, found[0].n), (None, 1));
        assert!(found[0].text.contains("not known before 3"), "{}", found[0].text);
    }

    #[test]
    fn readings_with_other_peoples_bytes_are_left_out() {
        let foreign = reread("nas", 1, 400 << 20);
        assert_eq!(caching(&[foreign.clone(), foreign]), []);
    }

    proptest! {
        #[test]
        fn a_median_is_a_share(crossed in proptest::collection::vec(any::<u64>(), 0..20)) {
            let rereads: Vec<Reread> = crossed.into_iter().map(|bytes| reread("nas", 1, bytes)).collect();
            for found in caching(&rereads) {
                prop_assert!(found.n <= rereads.len());
                prop_assert!(found.median_share.is_some_and(|share| (0.0..=1.0).contains(&share)));
            }
        }
    }
}
