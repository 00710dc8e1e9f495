//! Stalls: times in which a target kept calls waiting.

use jiff::tz::TimeZone;
use longhaul_analysis::stalls::{ExplainedStall, StallCauses};
use longhaul_analysis::summary::{SampledWindow, StallTotals, summarize_window};
use longhaul_model::{Stall, Timestamp};

use super::stall_causes;
use crate::document::{Document, Fact};
use crate::screens::{NO_VALUE, or_no_value};
use crate::table::Table;
use crate::{time, units};

/// Maximum number of stalls of [`StallList::Newest`].
const MAX_NEWEST: usize = 100;

/// Selection and order of the listed stalls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StallList {
    /// All stalls, oldest first.
    All,
    /// At most 100 stalls, newest first.
    Newest,
}

/// Returns the stalls of a window, with the total of each target, and the causes of slow calls. Ongoing stalls last until
/// the end of the window.
pub fn stalls(
    causes: &StallCauses,
    span: (Timestamp, Timestamp),
    list: StallList,
    zone: &TimeZone,
) -> Document {
    let mut document = Document::new();
    let stalls = &causes.stalls;
    if stalls.is_empty() {
        let period = match list {
            StallList::All => last(span),
            // The window of the page may lie in the past.
            StallList::Newest => "in this period".to_owned(),
        };
        document.paragraph(if causes.was_watched { none(&period) } else { nothing_measured(&period) });
        document.append(stall_causes::causes(&causes.named));
        return document;
    }
    // The page has a heading of its own.
    if list == StallList::All {
        document.section("stalls", format!("Stalls {}", last(span)));
    }
    let plain = stalls.iter().map(|explained| explained.stall.clone()).collect();
    let window = SampledWindow { span, stalls: plain, ..SampledWindow::default() };
    let listed: Vec<&ExplainedStall> = match list {
        StallList::All => stalls.iter().collect(),
        StallList::Newest => stalls.iter().rev().take(MAX_NEWEST).collect(),
    };
    if listed.len() < stalls.len() {
        document.note(format!("The newest {} of {} stalls.", listed.len(), stalls.len()));
    }
    document.table(table(&listed, span.1, zone)).facts(totals(&summarize_window(&window).stalls));
    document.append(stall_causes::causes(&causes.named));
    document
}

/// Returns a window that ends now as text, such as "in the last 7 days".
pub fn last(span: (Timestamp, Timestamp)) -> String {
    format!("in the last {}", units::window(span.1.seconds_since(span.0)))
}

/// Says that nothing was measured in a period, such as "in this period".
pub fn nothing_measured(period: &str) -> String {
    format!("Nothing was measured {period}, so there is nothing to say about stalls.")
}

/// Says that no stall was seen in a period in which something was measured, such as "in this period".
pub fn none(period: &str) -> String {
    format!("No stalls longer than 1 s {period}.")
}

fn table(stalls: &[&ExplainedStall], now: Timestamp, zone: &TimeZone) -> Table {
    let mut table = Table::new("Stalls")
        .words(["start", "duration", "target", "longest call"])
        .figures(["calls"])
        .words(["errors", "source", "during"]);
    // Most stalls have no known cause, and the table is wide.
    let has_cause = stalls.iter().any(|stall| stall.cause.is_some());
    if has_cause {
        table = table.words(["cause"]);
    }
    for ExplainedStall { stall, cause, .. } in stalls {
        let errors: Vec<String> =
            stall.errors.iter().map(|(error, count)| format!("{error} ×{count}")).collect();
        let mut row = vec![
            time::timestamp(stall.started_us, zone),
            length(stall, now),
            stall.target.to_string(),
            format!("{} {}", stall.operation, units::duration(stall.longest_ns as f64 / 1e9)),
            stall.calls.to_string(),
            if errors.is_empty() { NO_VALUE.to_owned() } else { errors.join(", ") },
            stall.sources.join(", "),
            or_no_value(stall.during.clone()),
        ];
        row.extend(
            has_cause.then(|| or_no_value(cause.map(|cause| stall_causes::cause_words(cause).to_owned()))),
        );
        table.row(row);
    }
    table
}

fn length(stall: &Stall, now: Timestamp) -> String {
    let length = units::duration(stall.ended_us.unwrap_or(now).seconds_since(stall.started_us));
    match (stall.ended_us, stall.is_truncated) {
        (None, _) => format!("{length} so far"),
        (Some(_), true) => format!("{length} or more"),
        (Some(_), false) => length,
    }
}

/// Returns the total of each target.
pub fn totals(totals: &[StallTotals]) -> Vec<Fact> {
    let fact = |totals: &StallTotals| {
        let own_runs = match totals.seen_only_by_runs {
            0 => String::new(),
            count => format!("; {count} more seen only in longhaul's own runs"),
        };
        let times = units::count(totals.stalls, "stall");
        Fact::new(
            totals.target.to_string(),
            format!("{} in total, in {times}{own_runs}", units::duration(totals.seconds)),
        )
    };
    totals.iter().map(fact).collect()
}
