//! The round in progress; without one, the last and the next round.

use jiff::tz::TimeZone;
use longhaul_model::status::{LiveOperation, LiveRunStatus, LiveStatus, Status};

use super::status;
use crate::document::Document;
use crate::screens::or_no_value;
use crate::table::Table;
use crate::text::{Text, Tone};
use crate::{time, units};

/// Age in seconds from which a call in flight is shown.
const WAITING_SECONDS: f64 = 1.0;

/// Returns what `status --watch` shows: the problems, the targets, and the round in progress or the next one.
pub fn watch(status: &Status, live: Option<&LiveStatus>, zone: &TimeZone) -> Document {
    let now = time::timestamp(status.now_us, zone);
    let mut document = Document::new();
    document
        .list(status::all_problems(status, zone))
        .note(format!("longhauld {}; rounds: {}; {now}", status.version, status::rounds(status)))
        .table(status::targets(status, zone));
    match live {
        Some(live) => document.paragraph(progress(live)).append(run(live)),
        None => document.append(idle(status, zone)),
    };
    document
}

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
        let time = |us: Option<f64>| units::seconds_or_none(us.map(|us| us / 1e6));
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

#[cfg(test)]
mod tests {
    use longhaul_model::status::{DatabaseStatus, State, TargetState, TargetStatus};
    use longhaul_model::{Role, Timestamp};

    use super::*;
    use crate::render::terminal;

    /// Returns a status in which one target hangs.
    fn status() -> Status {
        let database = DatabaseStatus { path: "/d".into(), bytes: Some(1) };
        Status {
            version: "1.2.3".into(),
            pid: 7,
            started_us: Timestamp::UNIX_EPOCH,
            state: State::Measuring,
            targets: vec![TargetStatus {
                probe: Default::default(),
                name: "smb".parse().unwrap(),
                path: "/m".into(),
                role: Role::Share,
                protocol: Some("SMB 3.1.1".into()),
                state: TargetState::Hung { operation: Some("write".into()), since_us: Timestamp::UNIX_EPOCH },
                last_runs: None,
                failed_tasks: vec![],
                bytes_last_24h: 5_000_000,
                bytes_limit: None,
            }],
            next_round_us: Some(Timestamp::from_us(120_000_000)),
            slices: 4,
            ..Status::new(database, Timestamp::from_us(60_000_000))
        }
    }

    fn shown(status: &Status, live: Option<&LiveStatus>) -> String {
        terminal::render(&watch(status, live, &TimeZone::UTC))
    }
    #[test]
    fn round_in_progress_shows_operations_and_stalls() {
        let operation = LiveOperation {
            operation: "write".into(),
            count: 1234,
            errors: 1,
            per_second: Some(56.0),
            p50_us: Some(800.0),
            p99_us: None,
            max_us: Some(2_000_000.0),
        };
        let task = LiveRunStatus {
            target: "smb".parse().unwrap(),
            workload: Some("time-machine".into()),
            phase: Some("burst".into()),
            progress: None,
            seconds: 12.0,
            in_flight: Some(("write".into(), 12.0)),
            operations: vec![operation],
            bytes_read: 0,
            bytes_written: 3_000_000,
        };
        let text = shown(&status(), Some(&LiveStatus { round: 9, runs: (2, 10), run: Some(task) }));
        for part in [
            "Round 9: ",
            "2 of 10 runs",
            "time-machine, phase burst",
            "800 µs",
            "`write` has not returned for 12 s.",
            "hung: `write`",
            "1234",
        ] {
            assert!(text.contains(part), "`{part}` is missing:\n{text}");
        }
    }

    #[test]
    fn next_round_is_shown_between_two_rounds() {
        let text = shown(&status(), None);
        assert!(text.contains("in 1 min"), "{text}");
    }
}
