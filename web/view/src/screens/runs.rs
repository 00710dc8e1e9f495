//! The list of runs.

use jiff::tz::TimeZone;
use longhaul_model::stored::StoredRun;
use longhaul_model::{Outcome, Phase, Run};

use super::{NO_VALUE, outcome, protocol, with_cache};
use crate::document::Document;
use crate::table::Table;
use crate::text::{Style, Text};
use crate::{time, units};

/// Returns the list of runs in the given order. Their starts are local time in a time zone.
pub fn runs(runs: &[StoredRun], zone: &TimeZone) -> Document {
    let mut document = Document::new();
    if runs.is_empty() {
        document.paragraph(
            Text::from("No runs match. If there are none yet: ")
                .code("longhaul run")
                .plain(", or with the service ")
                .code("longhaul round")
                .plain("."),
        );
    }
    document.table(table(runs, zone));
    document
}

fn table(runs: &[StoredRun], zone: &TimeZone) -> Table {
    let mut table = Table::new("Runs")
        .words(["run", "start", "target", "protocol", "task", "outcome"])
        .figures(["time"])
        .words(["result"]);
    for stored in runs {
        let run = &stored.run;
        let number = stored.number.to_string();
        table.row([
            Text::new().link(number.as_str(), format!("/runs/{number}")),
            time::timestamp(run.started_us, zone).into(),
            (&run.target).into(),
            protocol(run.protocol.as_ref()).into(),
            run.workload.as_str().into(),
            outcome(run.outcome),
            time(run).into(),
            result(stored).into(),
        ]);
    }
    table
}

/// Returns the time of a run; one that never met its target has none.
fn time(run: &Run) -> String {
    if run.outcome == Outcome::Unavailable { NO_VALUE.to_owned() } else { units::seconds(run.seconds) }
}

/// Returns the failure of a run, or the first figure of each phase.
fn result(stored: &StoredRun) -> String {
    let figure = |phase: &Phase| {
        let figure = phase.figures.first()?;
        Some(format!(
            "{}: {}",
            with_cache(&figure.name, phase.cache),
            units::value(figure.value, figure.unit)
        ))
    };
    match &stored.run.failure {
        Some(failure) => failure.message.clone(),
        None => stored.run.phases.iter().filter_map(figure).collect::<Vec<_>>().join("; "),
    }
}

/// Amount of detail in a line of progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressDetail {
    /// Number, target, protocol, task, outcome and time, and the message of a failure.
    Short,
    /// Also the first figure of each phase.
    Figures,
}

/// Returns the line that is printed when a run ends. Its columns have fixed widths, because the next runs are not known.
pub fn progress_line(stored: &StoredRun, detail: ProgressDetail) -> Text {
    let run = &stored.run;
    let protocol = protocol(run.protocol.as_ref());
    let head = format!("{:>5}  {:<10} {protocol:<10} {:<22} ", stored.number, run.target, run.workload);
    let mut line = Text::from(head);
    for span in outcome(run.outcome).0 {
        line = line.with(format!("{:<11}", span.text), span.style);
    }
    line = line.plain(format!(" {:>9}", units::seconds(run.seconds)));
    let shows_result = run.failure.is_some() || detail == ProgressDetail::Figures;
    if shows_result { line.with(format!("  {}", result(stored)), Style::Plain) } else { line }
}
