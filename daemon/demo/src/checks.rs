//! Made-up results of the checks apart from speed. SMB keeps old listings, as real servers and clients do under a directory
//! lease; NFS shows a new file late if its name was looked up before it existed.

use std::time::Duration;

use longhaul_model::draw::draw_below;
use longhaul_model::time::{DAY, HOUR};
use longhaul_model::{
    ChangeKind, Finding, FreshnessOutcome, FreshnessSample, KeepResult, Property, ReadBack, Role, Target,
    TargetFidelity, Timestamp,
};
use longhaul_store::Writer;

use crate::{name, protocol};

const SEED: u64 = 0x6368_6563;
/// Shares, each of which makes the changes in turn.
const SHARES: [&str; 3] = ["smb", "nfs", "afp"];
/// Time for which a change is looked for, at least.
const LIMIT: Duration = Duration::from_secs(50);

/// Adds the checks of this many days from `begin` on: freshness once a day, and fidelity after the first round.
pub fn add(writer: &Writer, begin: Timestamp, days: u32) -> anyhow::Result<()> {
    writer.add_freshness((0..days).flat_map(|day| freshness(begin, day)).collect())?;
    for label in ["local", "smb", "nfs", "afp"] {
        let role = if label == "local" { Role::Baseline } else { Role::Share };
        let target = Target { name: name(label), path: format!("/Volumes/{label}").into(), role };
        let at = begin + 8 * HOUR;
        let findings = Property::ALL.into_iter().map(|property| finding(label, property)).collect();
        let fidelity = TargetFidelity {
            target: target.name.clone(),
            protocol: Some(protocol(label).to_string()),
            at,
            findings,
        };
        writer.add_fidelity(&target, &fidelity)?;
    }
    Ok(())
}

/// Returns the changes of a day: one of each kind through one share, looked for through the others.
fn freshness(begin: Timestamp, day: u32) -> Vec<FreshnessSample> {
    let writer = SHARES[day as usize % SHARES.len()];
    let watchers = SHARES.into_iter().enumerate().filter(|(_, share)| *share != writer);
    let of_watcher = |(place, share): (usize, &'static str)| {
        ChangeKind::ALL.into_iter().enumerate().map(move |(kind_place, kind)| FreshnessSample {
            target: name(share),
            protocol: Some(protocol(share)),
            epoch: None,
            changed_through: Some(name(writer)),
            shares_client: false,
            round: None,
            kind,
            at: begin + day * DAY + 12 * HOUR,
            outcome: outcome(share, kind, u64::from(day) << 8 | (place << 4 | kind_place) as u64),
        })
    };
    watchers.flat_map(of_watcher).collect()
}

fn outcome(share: &str, kind: ChangeKind, index: u64) -> FreshnessOutcome {
    let below = |milliseconds| draw_below(SEED, 1, index, milliseconds);
    let milliseconds = match (share, kind) {
        ("smb", ChangeKind::NewFile | ChangeKind::Rename) => {
            return FreshnessOutcome::NotSeen { limit: LIMIT + Duration::from_millis(below(9_000)) };
        }
        ("nfs", ChangeKind::LookedUpName) => 2_000 + below(26_000),
        (_, ChangeKind::GrownFile) => 300 + below(4_000),
        (_, ChangeKind::ChangedContent) => 400 + below(1_500),
        _ => 30 + below(70),
    };
    let latest = Duration::from_millis(milliseconds);
    FreshnessOutcome::Seen { earliest: latest.saturating_sub(Duration::from_millis(100)), latest }
}

fn finding(target: &str, property: Property) -> Finding {
    let (result, detail) = exception(target, property).unwrap_or((KeepResult::Kept, ""));
    Finding { property, result, detail: detail.to_owned(), read_back: ReadBack::Server }
}

/// Returns what a target does not keep, with the detail.
fn exception(target: &str, property: Property) -> Option<(KeepResult, &'static str)> {
    use KeepResult::{Changed, Lost, NotTested, Refused};
    let same_file = "both names lead to one file";
    Some(match (target, property) {
        (_, Property::LockAcrossMounts) => (NotTested, "needs a second mount of the same folder"),
        (_, Property::CasePair) if target != "nfs" => (Lost, same_file),
        ("local" | "afp", Property::NormalizationPair) => (Lost, same_file),
        ("smb", Property::Permissions) => (Lost, "640 was accepted, 755 stays"),
        ("smb", Property::ModificationTime) => (Changed, "rounded to 100 ns"),
        ("smb" | "nfs", Property::AccessControlList) => (Refused, "`acl_set_file` failed: EOPNOTSUPP"),
        ("smb", Property::RenameOverOpen) => (Refused, "`rename` failed: EBUSY"),
        ("nfs", Property::BirthTime) => (NotTested, "the server reports no time of creation"),
        ("afp", Property::ModificationTime) => (Changed, "rounded to 1 s"),
        ("afp", Property::HardLink) => (Refused, "`link` failed: EOPNOTSUPP"),
        ("afp", Property::SparseFile) => (Changed, "the hole takes space"),
        _ => return None,
    })
}
