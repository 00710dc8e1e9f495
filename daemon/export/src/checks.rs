//! Exports the checks apart from speed: freshness, integrity and fidelity. No table names a path or a file.

use std::time::Duration;

use longhaul_analysis::checks::{IntegrityLine, integrity_lines};
use longhaul_model::{DataAge, Finding, FreshnessOutcome, FreshnessSample, TargetFidelity};
use longhaul_store::Reader;

use crate::table::{Cell, Column, Definition, Kind, timestamp_cell};
use crate::write::Output;
use crate::{Error, Window};

const FRESHNESS_COLUMNS: [Definition; 11] = [
    ("target", Kind::Text, "target through which the change was looked for"),
    ("protocol", Kind::Text, "protocol of the target"),
    ("epoch", Kind::Integer, "number of the target's epoch"),
    ("round", Kind::Integer, "number of the round; empty: not measured in a round"),
    ("changed_through", Kind::Text, "target through which the change was made; empty: on the NAS itself"),
    (
        "shares_client",
        Kind::Integer,
        "1: both targets use one client, so it says nothing about other machines",
    ),
    ("kind", Kind::Text, "kind of the change"),
    ("at_us", Kind::Integer, "time of the change, in microseconds since 1970 UTC"),
    ("outcome", Kind::Text, "seen, not-seen or void (nothing is known)"),
    ("earliest_seconds", Kind::Real, "time until the change was visible, at least"),
    ("latest_seconds", Kind::Real, "seen: that time, at most; not-seen: how long it was looked for"),
];

/// Writes one row for each change of a window that was made elsewhere, and returns their number.
///
/// # Errors
///
/// [`Error::Write`], [`Error::ParquetDisabled`], [`Error::Store`].
pub fn freshness(reader: &Reader, window: &Window, output: Output<'_>) -> Result<u64, Error> {
    let samples = reader.freshness(window.from.unwrap_or(longhaul_model::Timestamp::MIN))?;
    output.write(&Column::all(&FRESHNESS_COLUMNS), |sink| {
        let mut in_window = samples.iter().filter(|sample| window.contains(sample.at));
        in_window.try_for_each(|sample| sink.row(&freshness_row(sample)))
    })
}

fn freshness_row(sample: &FreshnessSample) -> [Cell<'_>; FRESHNESS_COLUMNS.len()] {
    let [outcome, earliest, latest] = outcome_cells(&sample.outcome);
    [
        sample.target.as_str().into(),
        sample.protocol.as_ref().map(|protocol| Cell::text(protocol.to_string())).unwrap_or_default(),
        sample.epoch.into(),
        sample.round.into(),
        sample.changed_through.as_ref().map(|name| name.as_str()).into(),
        i64::from(sample.shares_client).into(),
        sample.kind.name().into(),
        sample.at.into(),
        outcome,
        earliest,
        latest,
    ]
}

/// Returns the cells of `outcome`, `earliest_seconds` and `latest_seconds`.
pub(crate) fn outcome_cells(outcome: &FreshnessOutcome) -> [Cell<'static>; 3] {
    let (name, earliest, latest) = match outcome {
        FreshnessOutcome::Seen { earliest, latest } => ("seen", Some(earliest), Some(latest)),
        FreshnessOutcome::NotSeen { limit } => ("not-seen", None, Some(limit)),
        FreshnessOutcome::Void { .. } => ("void", None, None),
    };
    [name.into(), earliest.map(Duration::as_secs_f64).into(), latest.map(Duration::as_secs_f64).into()]
}

const INTEGRITY_COLUMNS: [Definition; 14] = [
    ("target", Kind::Text, "name of the target"),
    ("protocol", Kind::Text, "protocol of the target"),
    ("bytes_verified", Kind::Integer, "bytes that were read back and compared with what was written"),
    (
        "bytes_over_the_wire",
        Kind::Integer,
        "those of them that are known to have come from the server or disk",
    ),
    ("files_verified", Kind::Integer, "number of times that a file was compared up to its end"),
    ("bytes_hours", Kind::Integer, "verified bytes that were less than a day old"),
    ("bytes_days", Kind::Integer, "verified bytes that were less than a week old"),
    ("bytes_weeks", Kind::Integer, "verified bytes that were less than 30 days old"),
    ("bytes_months", Kind::Integer, "verified bytes that were 30 days old or older"),
    ("bytes_unknown", Kind::Integer, "verified bytes whose age is not known"),
    ("mismatches", Kind::Integer, "number of wrong ranges"),
    ("excluded_rate_bytes", Kind::Real, "a rate above one wrong range in this many bytes is excluded (95 %)"),
    ("first_us", Kind::Integer, "start of the first run that counted, in microseconds since 1970 UTC"),
    ("last_us", Kind::Integer, "start of the last run that counted, in microseconds since 1970 UTC"),
];

/// Writes one row for each target and protocol with what was verified since the beginning, and returns their number.
pub fn integrity(reader: &Reader, output: Output<'_>) -> Result<u64, Error> {
    let lines = integrity_lines(&reader.verified_totals()?, &reader.mismatches(None)?);
    output.write(&Column::all(&INTEGRITY_COLUMNS), |sink| {
        lines.iter().try_for_each(|line| sink.row(&integrity_row(line)))
    })
}

fn integrity_row(line: &IntegrityLine) -> [Cell<'_>; INTEGRITY_COLUMNS.len()] {
    let of_age = |age: DataAge| {
        let known = line.by_age.iter().find(|part| part.age == age);
        Cell::count(known.map_or(0, |part| part.bytes))
    };
    [
        line.target.as_str().into(),
        line.protocol.as_deref().into(),
        Cell::count(line.bytes_verified),
        Cell::count(line.bytes_over_the_wire),
        Cell::count(line.files_verified),
        of_age(DataAge::Hours),
        of_age(DataAge::Days),
        of_age(DataAge::Weeks),
        of_age(DataAge::Months),
        of_age(DataAge::Unknown),
        Cell::count(line.mismatches),
        line.excluded_rate_bytes.into(),
        line.first_us.into(),
        line.last_us.into(),
    ]
}

const FIDELITY_COLUMNS: [Definition; 8] = [
    ("target", Kind::Text, "name of the target"),
    ("protocol", Kind::Text, "protocol of the target"),
    ("at", Kind::Text, "time of the check, in RFC 3339, UTC"),
    ("at_us", Kind::Integer, "time of the check, in microseconds since 1970 UTC"),
    ("property", Kind::Text, "property of files that was checked"),
    ("result", Kind::Text, "kept, changed, refused, lost, hung or not-tested"),
    ("detail", Kind::Text, "explanation of the result; empty if there is none"),
    ("read_back", Kind::Text, "server, or client: possibly from this machine's memory"),
];

/// Writes one row for each property of the last check of each target, if it is in the window, and returns their number.
pub fn fidelity(reader: &Reader, window: &Window, output: Output<'_>) -> Result<u64, Error> {
    let checks = reader.fidelity()?;
    output.write(&Column::all(&FIDELITY_COLUMNS), |sink| {
        let in_window = checks.iter().filter(|check| window.contains(check.at));
        let mut rows =
            in_window.flat_map(|check| check.findings.iter().map(|found| fidelity_row(check, found)));
        rows.try_for_each(|row| sink.row(&row))
    })
}

fn fidelity_row<'a>(check: &'a TargetFidelity, finding: &'a Finding) -> [Cell<'a>; FIDELITY_COLUMNS.len()] {
    let detail = Some(finding.detail.as_str()).filter(|detail| !detail.is_empty());
    [
        check.target.as_str().into(),
        check.protocol.as_deref().into(),
        timestamp_cell(check.at, 0),
        check.at.into(),
        finding.property.name().into(),
        finding.result.name().into(),
        detail.into(),
        finding.read_back.name().into(),
    ]
}
