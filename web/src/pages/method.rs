//! How it is measured and decided, with the constants of the code.

use axum::extract::State;
use axum::response::Response;
use longhaul_measure::model::{LONG_WAIT_NS, LOST_NS, Step};
use longhaul_measure::summary::{
    ALPHA, CAP_FACTOR, EARLY_DAYS, EARLY_RATIO, NOT_SMOOTH, OPENING_DAYS, UNNOTICED_SECONDS,
};
use longhaul_measure::workloads::WORKLOADS;
use longhaul_report::charts::Table;
use longhaul_report::page::parts::{section, table_of};
use longhaul_report::{method as words, units};
use maud::{Markup, html};

use super::{Place, framed};
use crate::face::Face;

/// The page.
pub async fn method(State(face): State<Face>) -> Response {
    framed(face, Place::Method, |book| {
        let newest = book.newest()?;
        let weekly = book.weekly(newest)?;
        let lines = words::in_three_lines(&weekly);
        Ok(html! {
            h1 { "How it is measured and decided" }
            (section("short", "In three lines", &html! { ul { @for line in &lines { li { (line) } } } }))
            (section("limits", "What the figures do not show", &html! { ul { @for line in words::LIMITS { li { (line) } } } }))
            (section("constants", "The constants, as the program has them", &table_of("Constants", &constants(weekly.premises.threshold))))
            (section("tasks", "The tasks", &table_of("Tasks", &tasks())))
            (section("scores", "Three numbers, never one", &html! { p { (words::scores()) } }))
            (section("samples", "Between the rounds", &samples()))
        })
    })
    .await
}

fn constants(threshold: f64) -> Table {
    let mut table = Table::new(["what", "value", "why"]);
    let percent = |share: f64| format!("{} %", units::plain(share * 100.0, 1));
    for (what, value, why) in [
        (
            "a difference matters from",
            percent(threshold - 1.0),
            "settled by the first round of this database",
        ),
        ("all intervals together miss with at most", percent(ALPHA), "however often somebody looks"),
        ("a verdict needs", format!("{OPENING_DAYS} days"), "fewer say too little about a week"),
        (
            "unless it is clear after",
            format!("{EARLY_DAYS} days"),
            "the whole interval has to lie beyond the next line",
        ),
        (
            "early verdicts need an interval beyond",
            percent(EARLY_RATIO - 1.0),
            "a difference that everybody feels",
        ),
        ("nobody notices less than", units::seconds(UNNOTICED_SECONDS), "of what a person waits for"),
        (
            "a failure counts as",
            format!("{} times the usual time", units::plain(CAP_FACTOR, 1)),
            "it is never dropped and never zero",
        ),
        (
            "a task is not smooth from",
            format!("{} times the usual time of its day", units::plain(NOT_SMOOTH, 1)),
            "a person feels that",
        ),
        (
            "a wait is booked on its own from",
            units::seconds(LONG_WAIT_NS as f64 / 1e9),
            "one line of the ledger",
        ),
        (
            "an answer of the probe is lost after",
            units::seconds(LOST_NS as f64 / 1e9),
            "it is counted, not timed",
        ),
    ] {
        table.rows.push(vec![what.to_owned(), value, why.to_owned()]);
    }
    table
}

fn tasks() -> Table {
    let mut table = Table::new(["task", "what it replays", "what somebody waits for"]);
    for workload in WORKLOADS {
        let waits: Vec<&str> = workload.endpoints().iter().map(|endpoint| endpoint.activity).collect();
        table.rows.push(vec![workload.name().to_owned(), workload.summary().to_owned(), waits.join(", ")]);
    }
    table
}

fn samples() -> Markup {
    html! {
        p { "A light probe asks each target for the attributes of a file, 4 KiB that no cache holds, and, where that is switched on, \
             4 KiB made durable. Its clock starts at the instant at which it meant to ask: a stall counts for every question that it \
             swallowed. It asks only where nobody is woken up." }
        ul { @for step in Step::ALL { li { "Kept in steps of " (step.name()) " for " (step.days_kept()) " days." } } }
    }
}
