//! Reads the operations of all runs one at a time, because a year of histograms would take too much memory.

use std::ops::{ControlFlow, RangeInclusive};

use longhaul_model::{CacheState, ColdMethod, Outcome, Scale};
use rusqlite::{Connection, Row};

use crate::error::Fault;
use crate::rows::TableRow;
use crate::runs::operation;
use longhaul_model::stored::StoredOperation;

const OPERATIONS_QUERY: &str =
    "SELECT run.number AS run, run.round, run.epoch, target.name AS target, run.protocol,
        run.workload, run.scale, run.outcome, run.started_us, phase.name AS phase, phase.cache, phase.cold_by,
        operation.operation, operation.errors, operation.latency
    FROM run JOIN target ON target.number = run.target
    CROSS JOIN phase ON phase.run = run.number CROSS JOIN operation ON operation.phase = phase.number
    WHERE run.number BETWEEN ?1 AND ?2
    ORDER BY run.number, phase.position, operation.position";

/// Calls `visitor` for every operation of the runs with these numbers, in the order of run numbers, until it returns
/// [`ControlFlow::Break`].
pub(crate) fn for_each(
    cx: &Connection,
    runs: RangeInclusive<i64>,
    mut visitor: impl FnMut(StoredOperation) -> ControlFlow<()>,
) -> Result<(), Fault> {
    let mut statement = cx.prepare_cached(OPERATIONS_QUERY)?;
    let mut rows = statement.query([runs.start(), runs.end()])?;
    while let Some(row) = rows.next()? {
        if visitor(stored_operation(row)?).is_break() {
            break;
        }
    }
    Ok(())
}

fn stored_operation(row: &Row<'_>) -> Result<StoredOperation, Fault> {
    let row = TableRow::new(row, "run", row.get("run")?);
    Ok(StoredOperation {
        run: row.number,
        round: row.get("round")?,
        epoch: row.get("epoch")?,
        target: row.parsed("target", |name| name.parse().ok())?,
        protocol: row.optional_json("protocol")?,
        workload: row.get("workload")?,
        scale: row.parsed("scale", Scale::from_name)?,
        outcome: row.parsed("outcome", Outcome::from_name)?,
        started: row.time("started_us")?,
        phase: row.get("phase")?,
        cache: row.parsed("cache", CacheState::from_name)?,
        cold_by: row.optional_parsed("cold_by", ColdMethod::from_name)?,
        stats: operation(row)?,
    })
}
