//! The list of runs.

use jiff::tz::TimeZone;
use longhaul_model::stored::StoredRun;
use longhaul_model::{MetricTimes, Outcome, Phase, Run, TASKS, WaitMetric};

use super::words::with_cache;
use super::{NO_VALUE, outcome, protocol};
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

/// Returns the metrics of a run that are known, with their times in seconds; none for a preset.
pub(super) fn metric_times(run: &Run) -> Vec<(&'static WaitMetric, f64)> {
    let task = TASKS.iter().find(|task| task.name() == run.workload);
    let metrics = task.map_or(&[][..], |task| task.metrics());
    let times = MetricTimes::from_run(run, metrics);
    let known = metrics.iter().enumerate().filter_map(|(index, metric)| Some((metric, times.get(index)?)));
    known.collect()
}

/// Returns the failure of a run, or the times of its metrics and the first figure of each phase without one.
fn result(stored: &StoredRun) -> String {
    let metrics = metric_times(&stored.run);
    let time = |(metric, seconds): &(&WaitMetric, f64)| {
        format!("{}: {}", with_cache(metric.activity, metric.cache), units::seconds(*seconds))
    };
    let is_other =
        |phase: &&Phase| !metrics.iter().any(|(metric, _)| metric.covers(&phase.name, phase.cache));
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
        None => {
            let others = stored.run.phases.iter().filter(is_other).filter_map(figure);
            metrics.iter().map(time).chain(others).collect::<Vec<_>>().join("; ")
        }
    }
}

/// Amount of detail in a line of progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressDetail {
    /// Number, target, protocol, task, outcome and time, and the message of a failure.
    Short,
    /// Also the times of the metrics, and the first figure of each other phase.
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

#[cfg(test)]
mod tests {
    use longhaul_model::{CacheState, Figure, Timestamp, Unit};

    use super::*;

    fn run(workload: &str, phases: &[(&str, CacheState, &str)]) -> StoredRun {
        let phase = |(name, cache, figure): &(&str, CacheState, &str)| {
            let figures = vec![Figure::new(figure, Unit::Seconds, 1.5)];
            Phase { figures, ..Phase::new(*name, *cache) }
        };
        let new = Run::new(1, "smb".parse().unwrap(), workload, Timestamp::UNIX_EPOCH);
        let run = Run { phases: phases.iter().map(phase).collect(), ..new };
        StoredRun { number: 1, trace_id: String::new(), epoch: 1, run }
    }

    #[test]
    fn metrics_are_named_as_in_the_report() {
        let folder = [
            ("open-folder", CacheState::Cold, "folder-shown"),
            ("search", CacheState::Warm, "search"),
            ("open-folder", CacheState::Warm, "folder-shown"),
        ];
        assert_eq!(
            result(&run("folder-index", &folder)),
            "opening a large folder, cold: 1.50 s; opening a large folder, warm: 1.50 s; search, warm: 1.50 s"
        );
        let backup = [
            ("scan", CacheState::Cold, "scan"),
            ("copy", CacheState::None, "copy"),
            ("delete", CacheState::None, "delete"),
        ];
        assert_eq!(result(&run("incremental-backup", &backup)), "an incremental backup: 4.50 s");
        assert_eq!(result(&run("incremental-backup", &backup[..1])), "scan, cold: 1.50 s");
        assert_eq!(result(&run("dd", &[("write", CacheState::None, "write")])), "write: 1.50 s");
    }
}
