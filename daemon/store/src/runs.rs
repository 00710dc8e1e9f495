//! Reads runs with their phases, figures, operations and calls.

use longhaul_model::{
    CacheState, Call, ColdMethod, Failure, Figure, Histogram, Operation, OperationStats, Outcome, Phase, Run,
    Scale, Unit, decode_calls,
};
use rusqlite::{Connection, Row, RowIndex};

use crate::checks::verified;
use crate::error::Fault;
use crate::rows::{TableRow, query_all};
use crate::{request_times, wire};
use longhaul_model::stored::StoredRun;

/// Query for the columns that [`stored_run`] reads, without a `WHERE` clause.
pub(crate) const RUNS_QUERY: &str = "SELECT run.*, target.name AS target_name
    FROM run JOIN target ON target.number = run.target";

/// Converts a row of [`RUNS_QUERY`] to a run and reads its phases from their tables.
pub(crate) fn stored_run(cx: &Connection, row: &Row<'_>) -> Result<StoredRun, Fault> {
    let mut stored = without_phases(row)?;
    stored.run.phases = phases(cx, stored.number)?;
    Ok(stored)
}

/// Converts a row of [`RUNS_QUERY`] to a run without phases.
pub(crate) fn without_phases(row: &Row<'_>) -> Result<StoredRun, Fault> {
    let row = TableRow::numbered(row, "run")?;
    let run = Run {
        round: row.get("round")?,
        slot: row.get("slot")?,
        target: row.parsed("target_name", |name| name.parse().ok())?,
        protocol: row.optional_json("protocol")?,
        workload: row.get("workload")?,
        scale: row.parsed("scale", Scale::from_name)?,
        outcome: row.parsed("outcome", Outcome::from_name)?,
        started_us: row.time("started_us")?,
        utc_offset_seconds: row.get("utc_offset_seconds")?,
        seconds: row.get("seconds")?,
        phases: vec![],
        failure: failure(row)?,
        facts: row.json("facts")?,
        conditions: row.json("conditions")?,
    };
    Ok(StoredRun { number: row.number, trace_id: row.get("trace_id")?, epoch: row.get("epoch")?, run })
}

fn failure(row: TableRow<'_>) -> Result<Option<Failure>, Fault> {
    let Some(message) = row.get("failure_message")? else { return Ok(None) };
    Ok(Some(Failure {
        operation: row.optional_parsed("failure_operation", Operation::from_name)?,
        path: row.get("failure_path")?,
        error: row.get("failure_error")?,
        message,
    }))
}

fn phases(cx: &Connection, run: i64) -> Result<Vec<Phase>, Fault> {
    query_all(cx, "SELECT * FROM phase WHERE run = ?1 ORDER BY position", [run], |row| phase(cx, row))
}

fn phase(cx: &Connection, row: &Row<'_>) -> Result<Phase, Fault> {
    let row = TableRow::numbered(row, "phase")?;
    let operations = operations(cx, row.number)?;
    Ok(Phase {
        name: row.get("name")?,
        cache: row.parsed("cache", CacheState::from_name)?,
        cold_by: row.optional_parsed("cold_by", ColdMethod::from_name)?,
        began_us: row.optional_time("began_us")?,
        seconds: row.get("seconds")?,
        bytes_read: row.unsigned("bytes_read")?,
        bytes_written: row.unsigned("bytes_written")?,
        complete: row.get("complete")?,
        figures: figures(cx, row.number)?,
        calls: calls(row, || Ok(operations.iter().map(|stats| stats.operation).collect()))?,
        operations,
        wire: wire::from_row(row)?,
        request_times: request_times::of_phase(cx, row.number)?,
        verified: verified::verified(cx, row.number)?,
    })
}

/// Decodes the individually stored calls of a phase. `operations` returns the operations of the phase in stored
/// order; it is called only if there are calls.
pub(crate) fn calls(
    row: TableRow<'_>,
    operations: impl FnOnce() -> Result<Vec<Operation>, Fault>,
) -> Result<Vec<Call>, Fault> {
    let Some(bytes) = row.bytes("calls")? else { return Ok(vec![]) };
    decode_calls(bytes, &operations()?).ok_or_else(|| row.unknown("calls", "damaged data"))
}

fn figures(cx: &Connection, phase: i64) -> Result<Vec<Figure>, Fault> {
    query_all(cx, "SELECT * FROM figure WHERE phase = ?1 ORDER BY position", [phase], |row| {
        let row = TableRow::new(row, "figure", phase);
        Ok(Figure {
            name: row.get("name")?,
            unit: row.parsed("unit", Unit::from_symbol)?,
            value: row.get("value")?,
        })
    })
}

fn operations(cx: &Connection, phase: i64) -> Result<Vec<OperationStats>, Fault> {
    let query = "SELECT operation, errors, latency FROM operation WHERE phase = ?1 ORDER BY position";
    query_all(cx, query, [phase], |row| operation(TableRow::new(row, "operation", phase)))
}

/// Reads the statistics of one operation, with its histogram.
pub(crate) fn operation(row: TableRow<'_>) -> Result<OperationStats, Fault> {
    let latency = histogram(row, "latency")?;
    Ok(OperationStats {
        operation: row.parsed("operation", Operation::from_name)?,
        latency,
        errors: row.unsigned("errors")?,
    })
}

/// Reads a histogram from a column, which error messages call `latency`.
pub(crate) fn histogram(row: TableRow<'_>, column: impl RowIndex) -> Result<Histogram, Fault> {
    let bytes = row.bytes(column)?.unwrap_or_default();
    Histogram::decode(bytes).map_err(|error| row.unknown("latency", error))
}
