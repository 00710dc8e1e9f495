//! Single calls that are kept as witnesses, of every run of a workload.

use longhaul_measure::model::{CacheState, Operation, Scale};
use rusqlite::{Connection, Row};

use crate::error::Fault;
use crate::reader::collect;
use crate::records::StoredCalls;
use crate::rows::{self, named, optional_json_of};

const PHASES: &str = "SELECT phase.number, phase.name, phase.cache, phase.began_us, phase.calls,
        run.number AS run, run.protocol, run.scale, target.name AS target
    FROM run JOIN target ON target.number = run.target CROSS JOIN phase ON phase.run = run.number
    WHERE run.started_us >= ?1 AND run.workload = ?2 AND phase.calls IS NOT NULL AND phase.began_us IS NOT NULL
    ORDER BY phase.number";

/// The phases of runs that began then or later, as far as calls of them are kept.
pub(crate) fn of_workload(
    cx: &Connection,
    (since_us, workload): (i64, &str),
) -> Result<Vec<StoredCalls>, Fault> {
    collect(cx, PHASES, (since_us, workload), |row| stored_calls(cx, row))
}

fn stored_calls(cx: &Connection, row: &Row<'_>) -> Result<StoredCalls, Fault> {
    let number = row.get("number")?;
    let place = ("phase", number);
    Ok(StoredCalls {
        run: row.get("run")?,
        target: named(row, (place, "target"), |name| name.parse().ok())?,
        protocol: optional_json_of(row, place, "protocol")?,
        scale: named(row, (place, "scale"), Scale::from_name)?,
        phase: row.get("name")?,
        cache: named(row, (place, "cache"), CacheState::from_name)?,
        began_us: row.get("began_us")?,
        calls: rows::calls(row, place, || operations(cx, number))?,
    })
}

/// Calls name their operation by its place in the phase.
fn operations(cx: &Connection, phase: i64) -> Result<Vec<Operation>, Fault> {
    let query = "SELECT operation FROM operation WHERE phase = ?1 ORDER BY place";
    collect(cx, query, [phase], |row| named(row, (("operation", phase), "operation"), Operation::from_name))
}
