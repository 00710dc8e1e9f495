//! Statements of the checks beside the verdicts: how many changes made elsewhere a share showed, and when its speed may come from
//! showing stale data.

use longhaul_analysis::summary::{Freshness, KindFreshness, PairSummary, WeeklySummary};
use longhaul_model::{ChangeKind, TargetName};

use crate::units;

/// Returns the name of a kind of change, in the plural.
pub fn kind_words(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::NewFile => "new files",
        ChangeKind::LookedUpName => "new files that had been looked for before",
        ChangeKind::GrownFile => "files that grew",
        ChangeKind::ChangedContent => "files with new content of the same size",
        ChangeKind::Deletion => "deletions",
        ChangeKind::Rename => "renames",
    }
}

/// Returns how many of the changes made elsewhere both shares of a pair showed; `None` if neither was checked.
pub fn freshness_of_pair(weekly: &WeeklySummary, pair: &PairSummary) -> Option<String> {
    super::brief::visible(weekly.freshness.iter().filter(|freshness| pair.includes(&freshness.target)))
}

/// Returns what a stale target does not show; `None` if it is not stale.
pub fn staleness(freshness: &Freshness) -> Option<String> {
    let stalest = freshness.stalest()?;
    let others = freshness.kinds.iter().filter(|kind| kind.is_stale && kind.kind != stalest.kind).count();
    let more = match others {
        0 => String::new(),
        1 => "; 1 other kind of change is affected, too".to_owned(),
        others => format!("; {others} other kinds of change are affected, too"),
    };
    Some(format!("{} shows stale data: {}{more}.", freshness.target, visible_of_kind(stalest)))
}

/// Returns the caveat of a target that is recommended or has been the fastest, and shows stale data; `None` if it does not.
pub fn stale_advantage(weekly: &WeeklySummary, target: &TargetName) -> Option<String> {
    let freshness = weekly.freshness.iter().find(|freshness| freshness.target == *target)?;
    let stalest = freshness.stalest()?;
    let of_others = weekly.freshness.iter().filter(|other| other.target != *target).filter_map(|other| {
        let kind = other.of_kind(stalest.kind)?;
        Some(format!("{}: {} of {}", other.target, kind.changes - kind.not_seen, kind.changes))
    });
    let of_others: Vec<String> = of_others.collect();
    let of_others = if of_others.is_empty() { String::new() } else { format!(" ({})", of_others.join(", ")) };
    Some(format!(
        "But it shows stale data: {}{of_others}. Part of its speed may come from that.",
        visible_of_kind(stalest)
    ))
}

/// Returns the word for the changes that were not seen, from the number of those that were.
pub(super) const fn unseen(seen: u64) -> &'static str {
    if seen == 0 { "all" } else { "the rest" }
}

/// Returns how many changes of a kind became visible, and how long the others were waited for, as a clause.
fn visible_of_kind(kind: &KindFreshness) -> String {
    let (seen, changes) = (kind.changes - kind.not_seen, kind.changes);
    let limit = kind.limit_seconds.map_or(String::new(), |limit| {
        format!("; {} stayed invisible for at least {}", unseen(seen), units::duration(limit))
    });
    format!("{seen} of {changes} {} became visible{limit}", kind_words(kind.kind))
}
