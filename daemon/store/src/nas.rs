//! Stores and reads the use of the NAS during runs.

use std::ops::RangeInclusive;

use longhaul_model::{DiskUse, NasProblem, NasUse, PhaseTimes, RunNasUse};
use rusqlite::{Connection, Row, named_params};

use crate::error::{Fault, Result};
use crate::reader::Reader;
use crate::rows::{TableRow, query_all};
use crate::writer::Writer;

impl Writer {
    /// Stores the use of the NAS during a stored run, or the reason why it is unknown. Of the disks, the busiest one is
    /// kept.
    pub fn add_nas_use(&self, found: RunNasUse) -> Result<()> {
        self.transact("store the use of the NAS", move |cx| insert(cx, &found))
    }
}

impl Reader {
    /// Returns the use of the NAS during the runs with these numbers, in their order. Runs without any are left out.
    pub fn nas_use(&self, runs: RangeInclusive<i64>) -> Result<Vec<RunNasUse>> {
        let query = "SELECT * FROM nas_use WHERE run BETWEEN ?1 AND ?2 ORDER BY run";
        self.in_snapshot("read the use of the NAS", |cx| {
            query_all(cx, query, [runs.start(), runs.end()], nas_use)
        })
    }

    /// Returns the use of the NAS during the runs of these phases, which are in the order of their runs.
    pub fn nas_use_of(&self, phases: &[PhaseTimes]) -> Result<Vec<RunNasUse>> {
        match (phases.first(), phases.last()) {
            (Some(first), Some(last)) => self.nas_use(first.run..=last.run),
            _ => Ok(vec![]),
        }
    }
}

fn insert(cx: &Connection, found: &RunNasUse) -> std::result::Result<(), Fault> {
    let insert =
        "INSERT INTO nas_use (run, problem, seconds, processor_share, disk, disk_busy_share, disk_request_ms,
            disk_requests, disk_bytes)
        VALUES (:run, :problem, :seconds, :processor_share, :disk, :disk_busy_share, :disk_request_ms,
            :disk_requests, :disk_bytes)";
    let (problem, known) = match &found.found {
        Ok(known) => (None, Some(known)),
        Err(problem) => (Some(problem.name()), None),
    };
    let disk = known.and_then(NasUse::busiest_disk);
    cx.prepare_cached(insert)?.execute(named_params! {
        ":run": found.run, ":problem": problem, ":seconds": known.map(|known| known.seconds),
        ":processor_share": known.and_then(|known| known.processor_share),
        ":disk": disk.map(|disk| &disk.name), ":disk_busy_share": disk.and_then(|disk| disk.busy_share),
        ":disk_request_ms": disk.and_then(|disk| disk.request_seconds).map(|seconds| seconds * 1e3),
        ":disk_requests": disk.and_then(|disk| disk.requests).map(u64::cast_signed),
        ":disk_bytes": disk.and_then(|disk| disk.bytes).map(u64::cast_signed),
    })?;
    Ok(())
}

fn nas_use(row: &Row<'_>) -> std::result::Result<RunNasUse, Fault> {
    let run = row.get("run")?;
    let row = TableRow::new(row, "nas_use", run);
    let found = match row.optional_parsed("problem", NasProblem::from_name)? {
        Some(problem) => Err(problem),
        None => Ok(NasUse {
            seconds: row.get("seconds")?,
            processor_share: row.get("processor_share")?,
            disks: disk(row)?.into_iter().collect(),
        }),
    };
    Ok(RunNasUse { run, found })
}

fn disk(row: TableRow<'_>) -> std::result::Result<Option<DiskUse>, Fault> {
    let Some(name) = row.get::<Option<String>>("disk")? else { return Ok(None) };
    Ok(Some(DiskUse {
        name,
        busy_share: row.get("disk_busy_share")?,
        request_seconds: row.get::<Option<f64>>("disk_request_ms")?.map(|ms| ms / 1e3),
        requests: row.optional_unsigned("disk_requests")?,
        bytes: row.optional_unsigned("disk_bytes")?,
    }))
}
