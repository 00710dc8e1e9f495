//! Freshness: how long it takes until a change made elsewhere is visible through a target.

use std::time::Duration;

use longhaul_analysis::checks::{FreshnessCell, FreshnessKey};
use longhaul_model::ChangeKind;

use super::statements::unseen;
use crate::document::Document;
use crate::screens::{NO_VALUE, protocol};
use crate::table::Table;
use crate::text::Text;
use crate::units;

/// Returns the freshness of all targets.
pub fn freshness(cells: &[FreshnessCell]) -> Document {
    let mut document = Document::titled("Freshness");
    if cells.is_empty() {
        document.paragraph(
            Text::from("Not measured yet. The background service measures it at the start of each round if two shares lead to one folder. ")
                .code("longhaul freshness measure")
                .plain(" measures it now."),
        );
        return document;
    }
    let stale: Vec<String> = cells.iter().filter_map(staleness).collect();
    match stale.is_empty() {
        true => document.paragraph(visibility_statement(cells)),
        false => document.list(stale),
    };
    document.table(table(cells));
    document.note(
        "Time from a change made elsewhere until this target shows it: the midpoint between the last poll that did not show it and \
         the first that did. Polled every 0.1 s (content: every 1.5 s). A change that was never seen counts as longer than the time \
         it was polled for.",
    );
    if cells.iter().any(|cell| cell.shares_client) {
        document.note(
            "* Both targets are mounts of one client of this computer, and the server does not tell such a client about its \
             own changes: these rows say nothing about changes by other computers.",
        );
    }
    let void: u64 = cells.iter().map(|cell| cell.void).sum();
    if void > 0 {
        document.note(format!(
            "Not counted: {}, because the check was stopped or failed, or another program made the change.",
            units::count(void, "change")
        ));
    }
    document
}

/// Returns the statement for cells that all say nothing of missed changes by other computers.
fn visibility_statement(cells: &[FreshnessCell]) -> &'static str {
    if cells.iter().any(|cell| cell.not_seen > 0) {
        return "All changes that did not become visible were made through another mount of the same client (*).";
    }
    match cells.iter().any(|cell| cell.n > 0) {
        true => "Every change that was made elsewhere became visible.",
        false => "No change could be measured.",
    }
}

/// Returns the statement about changes that a target did not show; `None` if it showed all, or if the cell says
/// nothing about other computers.
pub fn staleness(cell: &FreshnessCell) -> Option<String> {
    let limit = cell.limit.filter(|_| !cell.shares_client)?;
    let seen = cell.n - cell.not_seen;
    Some(format!(
        "{} ({}) showed {seen} of {} changes; {} stayed invisible for at least {} s ({}, made {}).",
        cell.key.target,
        protocol(cell.protocol.as_ref()),
        cell.n,
        unseen(seen),
        limit.as_secs(),
        change(cell.key.kind),
        origin(&cell.key),
    ))
}

/// Returns the description of a kind of change.
pub const fn change(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::NewFile => "new file in a listing",
        ChangeKind::LookedUpName => "new file whose name was looked up before",
        ChangeKind::GrownFile => "size of a growing file",
        ChangeKind::ChangedContent => "changed content of a file",
        ChangeKind::Deletion => "deleted file",
        ChangeKind::Rename => "renamed file in a listing",
    }
}

/// Returns the place where changes were made: `through nfs`, or `on the NAS`.
pub fn origin(key: &FreshnessKey) -> String {
    key.changed_through.as_ref().map_or("on the NAS".to_owned(), |target| format!("through {target}"))
}

fn table(cells: &[FreshnessCell]) -> Table {
    let mut table = Table::new("Time until a change made elsewhere is visible")
        .words(["target", "change", "made"])
        .figures(["seen", "median", "90 %"]);
    for cell in cells {
        let shared = if cell.shares_client { " *" } else { "" };
        table.row([
            cell.key.target.to_string(),
            change(cell.key.kind).to_owned(),
            format!("{}{shared}", origin(&cell.key)),
            seen(cell),
            time(cell.median, cell),
            time(cell.p90, cell),
        ]);
    }
    table
}

fn seen(cell: &FreshnessCell) -> String {
    match cell.n {
        0 => NO_VALUE.to_owned(),
        n => format!("{} of {n}", n - cell.not_seen),
    }
}

/// Returns a time; if it lies beyond the time for which changes were looked for, that one as a lower limit.
fn time(time: Option<Duration>, cell: &FreshnessCell) -> String {
    match (time, cell.limit) {
        (Some(time), _) => units::seconds(time.as_secs_f64()),
        (None, Some(limit)) => format!("> {} s", limit.as_secs()),
        (None, None) => NO_VALUE.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use longhaul_model::Protocol;

    use super::*;
    use crate::render::terminal;

    fn cell(not_seen: u64, shares_client: bool) -> FreshnessCell {
        let key = FreshnessKey {
            target: "smb".parse().unwrap(),
            kind: ChangeKind::NewFile,
            changed_through: "nfs".parse().ok(),
        };
        let seen = |time| Some(Duration::from_millis(time)).filter(|_| not_seen < 2);
        FreshnessCell {
            key,
            protocol: Some(Protocol::Smb(Some("3.1.1".into()))),
            shares_client,
            n: 3,
            not_seen,
            not_seen_share_low: 0.0,
            not_seen_share_high: 1.0,
            limit: Some(Duration::from_millis(50_900)).filter(|_| not_seen > 0),
            median: seen(70),
            p90: seen(95).filter(|_| not_seen == 0),
            void: 0,
        }
    }

    #[test]
    fn stale_target_is_named_first() {
        let shown = terminal::render(&freshness(&[cell(3, false)]));
        let sentence = "smb (SMB 3.1.1) showed 0 of 3 changes; all stayed invisible for at least 50 s (new file in a listing, \
                        made through nfs).";
        assert!(shown.contains(sentence) && shown.contains("> 50 s"), "{shown}");
        assert!(!shown.contains("Every change"), "{shown}");
    }

    #[test]
    fn mounts_of_one_client_make_no_statement() {
        assert_eq!(staleness(&cell(3, true)), None);
        assert_eq!(staleness(&cell(0, false)), None);
        let shown = terminal::render(&freshness(&[cell(0, true)]));
        assert!(
            shown.contains("through nfs *") && shown.contains("nothing about changes by other"),
            "{shown}"
        );
    }

    #[test]
    fn changes_missed_within_one_client_are_not_called_visible() {
        for (cells, opening) in [
            (vec![cell(2, true)], "All changes that did not become visible were made through another mount"),
            (vec![cell(0, false), cell(2, true)], "All changes that did not become visible were"),
            (vec![cell(0, false), cell(0, true)], "Every change that was made elsewhere became visible."),
        ] {
            let shown = terminal::render(&freshness(&cells));
            assert!(shown.contains(opening), "{shown}");
            assert_eq!(shown.contains("Every change"), opening.starts_with("Every"), "{shown}");
        }
    }

    #[test]
    fn quantile_beyond_the_limit_is_a_lower_limit() {
        let rare = cell(1, false);
        assert_eq!(
            (time(rare.median, &rare), time(rare.p90, &rare)),
            ("70.0 ms".to_owned(), "> 50 s".to_owned())
        );
    }
}
