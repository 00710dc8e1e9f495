//! The round in progress; without one, the last and the next round.

use jiff::tz::TimeZone;
use longhaul_model::status::{LiveOperation, LiveRunStatus, LiveStatus, Status};

use super::status;
use crate::document::Document;
use crate::screens::{or_no_value, seconds};
use crate::table::Table;
use crate::text::{Text, Tone};
use crate::units;

/// Age in seconds from which a call in flight is shown.
const WAITING_SECONDS: f64 = 1.0;

/// Returns the screen between two rounds.
pub fn idle(status: &Status, zone: &TimeZone) -> Document {
    let mut document = Document::new();
    document.paragraph(format!("No round in progress: {}.", status::state(status, zone)));
    if let Some(next) = status::next_round(status, zone) {
        document.paragraph(format!("Next round: {next}."));
    }
    if let Some(last) = &status.last_round {
        document.note(format!("Last round: {}.", status::last_round(last, zone)));
    }
    document
}

/// Returns how far a round is.
pub fn progress(live: &LiveStatus) -> Text {
    let (done, all) = live.runs;
    Text::from(format!("Round {}: ", live.round)).strong(format!("{done} of {all} runs")).plain(" done.")
}

/// Returns the run in progress, with its operations.
pub fn run(live: &LiveStatus) -> Document {
    let mut document = Document::new();
    match &live.run {
        Some(run) => add_run(&mut document, run),
        None => _ = document.note("Between two runs."),
    }
    document
}

fn add_run(document: &mut Document, run: &LiveRunStatus) {
    let phase = run.phase.as_ref().map_or(String::new(), |phase| format!(", phase {phase}"));
    let text = format!(
        ", {}{phase}: {} so far.",
        run.workload.as_deref().unwrap_or("preparation"),
        units::duration(run.seconds.round())
    );
    document.paragraph(Text::from(&run.target).plain(text));
    if let Some(progress) = &run.progress {
        let (item, files, total) = (&progress.item, progress.files, progress.files_total);
        document.note(format!("Preparing {item}: {files} of {total} files."));
    }
    if let Some((operation, age)) = run.in_flight.as_ref().filter(|(_, age)| *age >= WAITING_SECONDS) {
        let waiting = Text::new().toned("Waiting:", Tone::Bad).plain(" ").code(operation.as_str());
        let age = units::duration(age.round());
        document.paragraph(waiting.plain(format!(" has not returned for {age}.")));
    }
    document.table(operations(&run.operations));
    let (read, written) = (units::bytes(run.bytes_read as f64), units::bytes(run.bytes_written as f64));
    document.note(format!("Read {read}, written {written} in this phase."));
}

fn operations(all: &[LiveOperation]) -> Table {
    let mut table = Table::new("Operations of this phase so far").words(["operation"]).figures([
        "count",
        "per second",
        "p50",
        "p99",
        "max",
        "errors",
    ]);
    for one in all {
        let time = |us: Option<f64>| seconds(us.map(|us| us / 1e6));
        table.row([
            one.operation.clone(),
            one.count.to_string(),
            or_no_value(one.per_second.map(units::grouped)),
            time(one.p50_us),
            time(one.p99_us),
            time(one.max_us),
            one.errors.to_string(),
        ]);
    }
    table
}
