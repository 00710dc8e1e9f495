//! Every operation, one at a time: a year of histograms is more than a memory should hold.

use std::ops::ControlFlow;

use longhaul_measure::model::{CacheState, ColdBy, Outcome, Scale};
use rusqlite::{Connection, Row};

use crate::error::Fault;
use crate::records::StoredOperation;
use crate::rows::{named, operation, optional_json_of, optional_named};

const OPERATIONS: &str =
    "SELECT run.number AS run, run.round, run.epoch, target.name AS target, run.protocol,
        run.workload, run.scale, run.outcome, run.started_us, phase.name AS phase, phase.cache, phase.cold_by,
        operation.operation, operation.errors, operation.latency
    FROM run JOIN target ON target.number = run.target
    CROSS JOIN phase ON phase.run = run.number CROSS JOIN operation ON operation.phase = phase.number
    ORDER BY run.number, phase.place, operation.place";

/// Shows every operation to a visitor, in the order of runs, until it has seen enough.
pub(crate) fn visit(
    cx: &Connection,
    mut visitor: impl FnMut(StoredOperation) -> ControlFlow<()>,
) -> Result<(), Fault> {
    let mut statement = cx.prepare_cached(OPERATIONS)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if visitor(stored_operation(row)?).is_break() {
            break;
        }
    }
    Ok(())
}

fn stored_operation(row: &Row<'_>) -> Result<StoredOperation, Fault> {
    let number = row.get("run")?;
    let place = ("run", number);
    Ok(StoredOperation {
        run: number,
        round: row.get("round")?,
        epoch: row.get("epoch")?,
        target: named(row, (place, "target"), |name| name.parse().ok())?,
        protocol: optional_json_of(row, place, "protocol")?,
        workload: row.get("workload")?,
        scale: named(row, (place, "scale"), Scale::from_name)?,
        outcome: named(row, (place, "outcome"), Outcome::from_name)?,
        started_us: row.get("started_us")?,
        phase: row.get("phase")?,
        cache: named(row, (place, "cache"), CacheState::from_name)?,
        cold_by: optional_named(row, (place, "cold_by"), ColdBy::from_name)?,
        stats: operation(row, place)?,
    })
}
