//! The figures themselves, and what stands around them.

use longhaul_measure::summary::{EndpointRow, Times, TimesOnTarget, Weekly};
use maud::{Markup, html};

use super::parts::{figure, table_of};
use crate::charts::{Looks, Table, TimeRow, TimeRows, TimesChart};
use crate::units::seconds;
use crate::{Environment, method, private, words};

/// What each task took: a picture per workload, and one table.
pub fn times(weekly: &Weekly, looks: &Looks) -> Markup {
    let families: Vec<&[EndpointRow]> =
        weekly.table.chunk_by(|a, b| a.subject.workload == b.subject.workload).collect();
    html! {
        p { "The mark is the median of all times since the target settled, the line the medians of its days from lowest to \
             highest, the small bar the 95th percentile where enough values carry one. The tasks of one picture share their axis. \
             Failures (✗) have no time." }
        div class="many" {
            @for family in families {
                @let chart = family_chart(family, looks);
                (figure(&chart.draw(chart.scale()), &[]))
            }
        }
        h3 { "All of it as a table" }
        (table_of("What each task took on each target", &times_table(weekly)))
    }
}

/// The times of the tasks of one workload.
pub fn family_chart(family: &[EndpointRow], looks: &Looks) -> TimesChart {
    let workload = family.first().and_then(|row| row.subject.workload).unwrap_or("tasks");
    let row = |on: &TimesOnTarget| TimeRow {
        name: on.target.to_string(),
        look: looks.look(&on.target),
        times: on.epoch,
    };
    let task = |endpoint: &EndpointRow| TimeRows {
        label: words::subject(&endpoint.subject),
        rows: endpoint.targets.iter().map(row).collect(),
    };
    TimesChart {
        id: format!("times-{workload}"),
        title: format!("Times of {workload}"),
        tasks: family.iter().map(task).collect(),
    }
}

/// What each task took on each target, figure by figure.
pub fn times_table(weekly: &Weekly) -> Table {
    let mut table = Table::new([
        "task",
        "target",
        "median",
        "medians of days",
        "p95",
        "n",
        "failed",
        "this week",
        "medians of days",
        "n",
        "failed",
    ]);
    let known = |value: Option<f64>| value.map_or("–".to_owned(), seconds);
    let range = |times: &Times| {
        times
            .days_range
            .map_or("–".to_owned(), |(low, high)| format!("{} to {}", seconds(low), seconds(high)))
    };
    for row in &weekly.table {
        for on in &row.targets {
            table.rows.push(vec![
                words::subject(&row.subject),
                on.target.to_string(),
                known(on.epoch.median),
                range(&on.epoch),
                known(on.epoch.p95),
                on.epoch.times.to_string(),
                on.epoch.failed.to_string(),
                known(on.week.median),
                range(&on.week),
                on.week.times.to_string(),
                on.week.failed.to_string(),
            ]);
        }
    }
    table
}

/// The three numbers of each share.
pub fn scores(weekly: &Weekly) -> Markup {
    let mut table = Table::new(["target", "speed", "smoothness", "reliability", "place"]);
    for scores in &weekly.scores {
        table.rows.push(vec![
            scores.target.to_string(),
            words::speed(scores),
            words::share(scores.smoothness),
            words::share(scores.reliability),
            words::place(scores),
        ]);
    }
    html! {
        (table_of("Speed, smoothness and reliability of each share", &table))
        p class="muted" { (method::scores()) }
    }
}

/// The failures of each target.
pub fn failures(weekly: &Weekly) -> Markup {
    let mut table = Table::new([
        "target",
        "rounds",
        "failed rounds",
        "episodes",
        "hung runs",
        "hung for",
        "error runs",
        "rounds not there",
    ]);
    for failures in &weekly.failures {
        table.rows.push(vec![
            failures.target.to_string(),
            failures.rounds.to_string(),
            failures.failed_rounds.to_string(),
            failures.episodes.to_string(),
            failures.hung_runs.to_string(),
            words::waited(failures.hung_seconds),
            failures.error_runs.to_string(),
            failures.unavailable_rounds.to_string(),
        ]);
    }
    html! {
        (table_of("Failures of each target since it settled", &table))
        p class="muted" { "Failing rounds in a row are one episode. A run that hangs is given up at its cap, and counted for that long." }
    }
}

/// The events of the week.
pub fn journal(weekly: &Weekly) -> Markup {
    let mut table = Table::new(["when", "target", "what", "particulars"]);
    for event in weekly.events.iter().map(private::event) {
        let target = event.target.as_ref().map_or("machine".to_owned(), ToString::to_string);
        table.rows.push(vec![event.at, target, event.kind, event.detail]);
    }
    html! {
        @if table.rows.is_empty() { p { "None was recorded." } }
        @else { (table_of("Events of the week", &table)) }
    }
}

/// What the verdicts do not rest on, and what became of the week's rounds.
pub fn left_out(weekly: &Weekly) -> Markup {
    let ended = weekly.rounds.by_status.iter().map(|(status, rounds)| format!("{rounds} {status}"));
    let ended = ended.collect::<Vec<_>>().join(", ");
    html! {
        p {
            "Rounds of the week: " (weekly.rounds.planned)
            @if !ended.is_empty() { " (" (ended) ")" }
            "."
        }
        @if weekly.rounds.reasons.is_empty() && weekly.left_out.is_empty() { p { "Nothing was left out." } }
        ul {
            @for (reason, rounds) in &weekly.rounds.reasons { li { (rounds) " rounds: " (private::prose(reason)) } }
            @for left in &weekly.left_out {
                li { (left.runs) " runs left out of the verdicts: " (private::prose(&left.reason)) }
            }
        }
    }
}

/// The machine and what was negotiated, without a name.
pub fn environment(weekly: &Weekly, environment: &Environment) -> Markup {
    let mut table = Table::new(["target", "protocol", "role", "negotiated", "counted since"]);
    for target in &weekly.targets {
        table.rows.push(vec![
            target.name.to_string(),
            target.protocol.clone().unwrap_or_else(|| "not known".to_owned()),
            target.role.name().to_owned(),
            environment.negotiated_on(&target.name).unwrap_or_else(|| "not known".to_owned()),
            target.settled.clone().unwrap_or_else(|| "–".to_owned()),
        ]);
    }
    html! {
        p { (environment.in_one_line()) }
        (table_of("Targets and what was negotiated", &table))
    }
}
