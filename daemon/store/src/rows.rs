//! Rows into values. A value that this program does not know is an error that names it, never a panic.

use std::path::PathBuf;

use longhaul_measure::model::{
    CacheState, Call, ColdBy, Failure, Figure, Operation, OperationStats, Outcome, Phase, Run, Scale, Unit,
    decode_calls,
};
use longhaul_measure::stats::Histogram;
use rusqlite::{Connection, Row};
use serde::de::DeserializeOwned;

use crate::error::Fault;
use crate::names::path_from_value;
use crate::records::StoredRun;
use crate::wire;

/// A table and the number of one of its rows, for messages.
pub(crate) type Place = (&'static str, i64);

/// A value that this program does not know, as an error.
pub(crate) fn unknown(place: Place, column: &'static str, value: impl ToString) -> Fault {
    Fault::Row { table: place.0, row: place.1, column, value: value.to_string() }
}

/// A column that holds JSON.
pub(crate) fn json_of<T: DeserializeOwned>(
    row: &Row<'_>,
    place: Place,
    column: &'static str,
) -> Result<T, Fault> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|_| unknown(place, column, text))
}

/// A column that holds JSON, or NULL.
pub(crate) fn optional_json_of<T: DeserializeOwned>(
    row: &Row<'_>,
    place: Place,
    column: &'static str,
) -> Result<Option<T>, Fault> {
    let text: Option<String> = row.get(column)?;
    let Some(text) = text else { return Ok(None) };
    serde_json::from_str(&text).map(Some).map_err(|_| unknown(place, column, text))
}

/// A column that holds the name of an enum value, or any other text of a closed set.
pub(crate) fn named<T>(
    row: &Row<'_>,
    column: (Place, &'static str),
    from_name: impl FnOnce(&str) -> Option<T>,
) -> Result<T, Fault> {
    let (place, column) = column;
    let name = row.get_ref(column)?.as_str().map_err(rusqlite::Error::from)?;
    from_name(name).ok_or_else(|| unknown(place, column, name))
}

/// As [`named`], the column by its number, and its name for messages.
pub(crate) fn named_at<T>(
    row: &Row<'_>,
    column: (Place, usize, &'static str),
    from_name: impl FnOnce(&str) -> Option<T>,
) -> Result<T, Fault> {
    let (place, number, column) = column;
    let name = row.get_ref(number)?.as_str().map_err(rusqlite::Error::from)?;
    from_name(name).ok_or_else(|| unknown(place, column, name))
}

/// As [`named`], or NULL.
pub(crate) fn optional_named<T>(
    row: &Row<'_>,
    column: (Place, &'static str),
    from_name: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, Fault> {
    let (place, column) = column;
    let name: Option<String> = row.get(column)?;
    let Some(name) = name else { return Ok(None) };
    from_name(&name).map(Some).ok_or_else(|| unknown(place, column, name))
}

/// A column that holds a path.
pub(crate) fn path_of(row: &Row<'_>, place: Place, column: &'static str) -> Result<PathBuf, Fault> {
    let value = row.get_ref(column)?;
    path_from_value(value).ok_or_else(|| unknown(place, column, format!("{value:?}")))
}

/// The columns that [`stored_run`] reads, up to `WHERE`.
pub(crate) const RUNS: &str = "SELECT run.*, target.name AS target_name
    FROM run JOIN target ON target.number = run.target";

/// A run from a row of [`RUNS`], with its phases from their own tables.
pub(crate) fn stored_run(cx: &Connection, row: &Row<'_>) -> Result<StoredRun, Fault> {
    let number = row.get("number")?;
    let place = ("run", number);
    let run = Run {
        round: row.get("round")?,
        slot: row.get("slot")?,
        target: named(row, (place, "target_name"), |name| name.parse().ok())?,
        protocol: optional_json_of(row, place, "protocol")?,
        workload: row.get("workload")?,
        scale: named(row, (place, "scale"), Scale::from_name)?,
        outcome: named(row, (place, "outcome"), Outcome::from_name)?,
        started_us: row.get("started_us")?,
        utc_offset_seconds: row.get("utc_offset_seconds")?,
        seconds: row.get("seconds")?,
        phases: phases(cx, number)?,
        failure: failure(row, place)?,
        facts: json_of(row, place, "facts")?,
        conditions: json_of(row, place, "conditions")?,
    };
    Ok(StoredRun { number, trace_id: row.get("trace_id")?, epoch: row.get("epoch")?, run })
}

fn failure(row: &Row<'_>, place: Place) -> Result<Option<Failure>, Fault> {
    let Some(message) = row.get("failure_message")? else { return Ok(None) };
    Ok(Some(Failure {
        operation: optional_named(row, (place, "failure_operation"), Operation::from_name)?,
        path: row.get("failure_path")?,
        error: row.get("failure_error")?,
        message,
    }))
}

fn phases(cx: &Connection, run: i64) -> Result<Vec<Phase>, Fault> {
    let mut statement = cx.prepare_cached("SELECT * FROM phase WHERE run = ?1 ORDER BY place")?;
    let mut rows = statement.query([run])?;
    let mut phases = Vec::new();
    while let Some(row) = rows.next()? {
        phases.push(phase(cx, row)?);
    }
    Ok(phases)
}

fn phase(cx: &Connection, row: &Row<'_>) -> Result<Phase, Fault> {
    let number = row.get("number")?;
    let place = ("phase", number);
    let operations = operations(cx, number)?;
    Ok(Phase {
        name: row.get("name")?,
        cache: named(row, (place, "cache"), CacheState::from_name)?,
        cold_by: optional_named(row, (place, "cold_by"), ColdBy::from_name)?,
        began_us: row.get("began_us")?,
        seconds: row.get("seconds")?,
        bytes_read: row.get::<_, i64>("bytes_read")?.cast_unsigned(),
        bytes_written: row.get::<_, i64>("bytes_written")?.cast_unsigned(),
        complete: row.get("complete")?,
        figures: figures(cx, number)?,
        calls: calls(row, place, || Ok(operations.iter().map(|stats| stats.operation).collect()))?,
        operations,
        wire: wire::of_row(row, place)?,
    })
}

/// The calls that were kept of a phase which had these operations.
pub(crate) fn calls(
    row: &Row<'_>,
    place: Place,
    operations: impl FnOnce() -> Result<Vec<Operation>, Fault>,
) -> Result<Vec<Call>, Fault> {
    let Some(bytes) = row.get_ref("calls")?.as_blob_or_null().map_err(rusqlite::Error::from)? else {
        return Ok(vec![]);
    };
    decode_calls(bytes, &operations()?).ok_or_else(|| unknown(place, "calls", "they are damaged"))
}

fn figures(cx: &Connection, phase: i64) -> Result<Vec<Figure>, Fault> {
    let mut statement = cx.prepare_cached("SELECT * FROM figure WHERE phase = ?1 ORDER BY place")?;
    let mut rows = statement.query([phase])?;
    let mut figures = Vec::new();
    while let Some(row) = rows.next()? {
        let unit = named(row, (("figure", phase), "unit"), Unit::from_symbol)?;
        figures.push(Figure { name: row.get("name")?, unit, value: row.get("value")? });
    }
    Ok(figures)
}

fn operations(cx: &Connection, phase: i64) -> Result<Vec<OperationStats>, Fault> {
    let query = "SELECT operation, errors, latency FROM operation WHERE phase = ?1 ORDER BY place";
    let mut statement = cx.prepare_cached(query)?;
    let mut rows = statement.query([phase])?;
    let mut operations = Vec::new();
    while let Some(row) = rows.next()? {
        operations.push(operation(row, ("operation", phase))?);
    }
    Ok(operations)
}

/// A kind of call with its histogram.
pub(crate) fn operation(row: &Row<'_>, place: Place) -> Result<OperationStats, Fault> {
    let bytes = row.get_ref("latency")?.as_blob().map_err(rusqlite::Error::from)?;
    let latency = Histogram::decode(bytes).map_err(|error| unknown(place, "latency", error))?;
    Ok(OperationStats {
        operation: named(row, (place, "operation"), Operation::from_name)?,
        latency,
        errors: row.get::<_, i64>("errors")?.cast_unsigned(),
    })
}
