//! Reads the individually stored calls of runs, such as the slowest calls of each phase.

use longhaul_model::{CacheState, Operation, Scale, Timestamp};
use rusqlite::{Connection, Row};

use crate::error::Fault;
use crate::rows::{TableRow, query_all};
use crate::runs;
use longhaul_model::stored::StoredCalls;

const PHASES_QUERY: &str = "SELECT phase.number, phase.name, phase.cache, phase.began_us, phase.calls,
        run.number AS run, run.protocol, run.workload, run.scale, target.name AS target
    FROM run JOIN target ON target.number = run.target CROSS JOIN phase ON phase.run = run.number
    WHERE run.started_us >= ?1 AND (?2 IS NULL OR run.workload = ?2) AND phase.calls IS NOT NULL AND phase.began_us IS NOT NULL
    ORDER BY phase.number";

/// Returns the phases with stored calls of all runs that started at `since` or later. `workload`: only of this one.
pub(crate) fn calls(
    cx: &Connection,
    workload: Option<&str>,
    since: Timestamp,
) -> Result<Vec<StoredCalls>, Fault> {
    query_all(cx, PHASES_QUERY, (since.as_us(), workload), |row| stored_calls(cx, row))
}

fn stored_calls(cx: &Connection, row: &Row<'_>) -> Result<StoredCalls, Fault> {
    let row = TableRow::numbered(row, "phase")?;
    Ok(StoredCalls {
        run: row.get("run")?,
        target: row.parsed("target", |name| name.parse().ok())?,
        protocol: row.optional_json("protocol")?,
        workload: row.get("workload")?,
        scale: row.parsed("scale", Scale::from_name)?,
        phase: row.get("name")?,
        cache: row.parsed("cache", CacheState::from_name)?,
        began: row.time("began_us")?,
        calls: runs::calls(row, || phase_operations(cx, row.number))?,
    })
}

/// Returns the operations of a phase in stored order. A stored call refers to its operation by index in this
/// list.
fn phase_operations(cx: &Connection, phase: i64) -> Result<Vec<Operation>, Fault> {
    let query = "SELECT operation FROM operation WHERE phase = ?1 ORDER BY position";
    query_all(cx, query, [phase], |row| {
        TableRow::new(row, "operation", phase).parsed("operation", Operation::from_name)
    })
}
