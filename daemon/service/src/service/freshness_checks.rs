//! The part of `longhaul doctor` about freshness: which targets show stale data, why, and what would help.

use std::collections::BTreeMap;

use longhaul_analysis::checks::freshness;
use longhaul_analysis::summary::shows_old_state;
use longhaul_measure::platform::{SYSTEM, System};
use longhaul_model::stored::StoredEpoch;
use longhaul_model::time::DAY;
use longhaul_model::{ChangeKind, FreshnessSample, Protocol, TargetName, Timestamp};

use crate::database::Database;
use crate::status::{Check, CheckStatus};

/// Number of days whose samples are used.
const DAYS: u32 = 28;

/// Returns a warning for each target that shows stale data to other machines; nothing if the database cannot be read,
/// about which another check warns.
pub(super) fn freshness_checks(database: &Database, now: Timestamp) -> Vec<Check> {
    let read =
        database.reader().and_then(|reader| Ok((reader.freshness(now - DAYS * DAY)?, reader.epochs()?)));
    read.map(|(samples, epochs)| checks(&samples, &epochs)).unwrap_or_default()
}

fn checks(samples: &[FreshnessSample], epochs: &[StoredEpoch]) -> Vec<Check> {
    let mut counts: BTreeMap<(TargetName, ChangeKind), (u64, u64)> = BTreeMap::new();
    for cell in freshness(samples).into_iter().filter(|cell| !cell.shares_client) {
        let (changes, not_seen) = counts.entry((cell.key.target, cell.key.kind)).or_default();
        *changes += cell.n;
        *not_seen += cell.not_seen;
    }
    let stale = counts.into_iter().filter(|(_, (changes, not_seen))| shows_old_state(*changes, *not_seen));
    let mut by_target: BTreeMap<TargetName, Vec<String>> = BTreeMap::new();
    for ((target, kind), (changes, not_seen)) in stale {
        by_target.entry(target).or_default().push(format!(
            "{} of {changes} {}",
            changes - not_seen,
            words(kind)
        ));
    }
    by_target.into_iter().map(|(target, shown)| check(&target, &shown, epochs)).collect()
}

fn check(target: &TargetName, shown: &[String], epochs: &[StoredEpoch]) -> Check {
    let epoch = epochs.iter().rfind(|epoch| epoch.target == *target);
    let message = format!(
        "shows stale data: of the changes made elsewhere, {} became visible in time. `longhaul freshness` shows all",
        shown.join(", ")
    );
    Check::problem(format!("freshness {target}"), CheckStatus::Warning, message, remedy(SYSTEM, epoch))
}

/// Returns what helps against stale data, and its cost. Sources: mount.cifs(8) and smb.conf(5) for directory leases;
/// nfs(5); nsmb.conf(5) and mount_nfs(8) of macOS.
fn remedy(system: System, epoch: Option<&StoredEpoch>) -> &'static str {
    let option = |name: &str| epoch.and_then(|epoch| epoch.negotiated.get(name)).map(String::as_str);
    let keeps_listings = option("directory-leases") == Some("granted") && option("nohandlecache").is_none();
    // macOS reports a dialect, a Linux mount table the option `vers`.
    match epoch.and_then(|epoch| epoch.protocol.as_ref()) {
        Some(Protocol::Smb(_)) if option("dialect").is_some() => {
            "lower `dir_cache_max` in nsmb.conf: folders are then read more often"
        }
        Some(Protocol::Smb(_)) if keeps_listings => {
            "the client keeps listings under a directory lease that changes elsewhere do not break. Mount with \
             `nohandlecache`, or set `smb3 directory leases = no` in the server's smb.conf: each listing then asks the server"
        }
        Some(Protocol::Smb(_)) => "mount with a shorter `actimeo`: attributes are then asked for more often",
        Some(Protocol::Nfs(_)) if system == System::MacOs => {
            "mount with a shorter `actimeo`, or with `nonegnamecache` if only names that were looked up before stay away: both \
             cost more requests"
        }
        Some(Protocol::Nfs(_)) => {
            "mount with a shorter `actimeo`, or with `lookupcache=positive` if only names that were looked up before stay \
             away: both cost more requests"
        }
        _ => "no remedy is known for this protocol; open folders again after changes by other machines",
    }
}

fn words(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::NewFile => "new files in a listing",
        ChangeKind::LookedUpName => "new files that were looked up before",
        ChangeKind::GrownFile => "grown files",
        ChangeKind::ChangedContent => "changed contents",
        ChangeKind::Deletion => "deletions",
        ChangeKind::Rename => "renames",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use longhaul_model::{FreshnessOutcome, NegotiatedOptions};

    use super::*;

    fn epoch(protocol: Protocol, options: &[(&str, &str)]) -> StoredEpoch {
        let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        StoredEpoch {
            number: 1,
            target: "smb".parse().unwrap(),
            opened: Timestamp::UNIX_EPOCH,
            path: "/m/smb".into(),
            protocol: Some(protocol),
            negotiated: options.collect::<NegotiatedOptions>(),
        }
    }

    fn samples(changes: usize, not_seen: usize, shares_client: bool) -> Vec<FreshnessSample> {
        let outcome = |index: usize| match index < not_seen {
            true => FreshnessOutcome::NotSeen { limit: Duration::from_secs(60) },
            false => FreshnessOutcome::Seen { earliest: Duration::ZERO, latest: Duration::from_millis(90) },
        };
        let sample = |index| FreshnessSample {
            target: "smb".parse().unwrap(),
            protocol: None,
            epoch: Some(1),
            changed_through: Some("nfs".parse().unwrap()),
            shares_client,
            round: None,
            kind: ChangeKind::NewFile,
            at: Timestamp::UNIX_EPOCH,
            outcome: outcome(index),
        };
        (0..changes).map(sample).collect()
    }

    #[test]
    fn stale_target_has_a_warning_with_cause_and_remedy() {
        let smb = epoch(Protocol::Smb(Some("3.1.1".into())), &[("directory-leases", "granted")]);
        let found = checks(&samples(25, 25, false), &[smb]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].name, "freshness smb");
        assert!(found[0].message.contains("0 of 25 new files in a listing"), "{:?}", found[0]);
        assert!(found[0].fix.as_deref().unwrap().contains("nohandlecache"), "{:?}", found[0]);
    }

    #[test]
    fn remedy_for_nfs_is_an_option_of_this_system() {
        let nfs = epoch(Protocol::Nfs(Some("3".into())), &[]);
        let names = |system| {
            ["`nonegnamecache`", "`lookupcache=positive`"]
                .map(|option| remedy(system, Some(&nfs)).contains(option))
        };
        assert_eq!((names(System::MacOs), names(System::Linux)), ([true, false], [false, true]));
    }

    #[test]
    fn fresh_targets_and_shared_clients_have_no_warning() {
        for samples in [samples(25, 0, false), samples(25, 2, false), samples(25, 25, true)] {
            assert!(checks(&samples, &[]).is_empty());
        }
    }
}
