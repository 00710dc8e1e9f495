//! Stores and reads what phases verified, and the totals of it.

use std::ops::RangeInclusive;

use longhaul_model::stored::VerifiedRun;
use longhaul_model::{DataAge, Phase, VerifiedData};
use rusqlite::{Connection, named_params};

use crate::error::{Fault, Result};
use crate::reader::Reader;
use crate::rows::{TableRow, query_all};

/// Stores the data that a phase verified.
pub(crate) fn insert_verified(cx: &Connection, phase: &Phase, number: i64) -> Result<(), Fault> {
    let insert = "INSERT INTO verified (phase, age, bytes, files, wire_bytes) VALUES (:phase, :age, :bytes, :files, :wire_bytes)";
    phase.verified.iter().try_for_each(|part| {
        cx.prepare_cached(insert)?.execute(named_params! {
            ":phase": number, ":age": part.age.name(), ":bytes": part.bytes.cast_signed(),
            ":files": part.files.cast_signed(), ":wire_bytes": phase.verified_over_the_wire(*part).cast_signed(),
        })?;
        Ok(())
    })
}

/// Adds the data that the phases of a run verified to the totals.
pub(crate) fn add_to_totals(cx: &Connection, run: i64) -> Result<(), Fault> {
    let upsert = "INSERT INTO verified_total (target, protocol, age, bytes, files, wire_bytes, first_us, last_us)
        SELECT run.target, run.protocol, verified.age, sum(verified.bytes), sum(verified.files), sum(verified.wire_bytes),
            run.started_us, run.started_us
        FROM run JOIN phase ON phase.run = run.number JOIN verified ON verified.phase = phase.number
        WHERE run.number = ?1 GROUP BY verified.age
        ON CONFLICT (target, coalesce(protocol, ''), age) DO UPDATE SET
            bytes = bytes + excluded.bytes, files = files + excluded.files,
            wire_bytes = wire_bytes + excluded.wire_bytes,
            first_us = min(first_us, excluded.first_us), last_us = max(last_us, excluded.last_us)";
    cx.prepare_cached(upsert)?.execute([run])?;
    Ok(())
}

/// Reads the data that a phase verified.
pub(crate) fn verified(cx: &Connection, phase: i64) -> Result<Vec<VerifiedData>, Fault> {
    // In the order of ages, not of their names.
    let mut parts = query_all(cx, "SELECT * FROM verified WHERE phase = ?1", [phase], |row| {
        let row = TableRow::new(row, "verified", phase);
        Ok(VerifiedData {
            age: row.parsed("age", DataAge::from_name)?,
            bytes: row.unsigned("bytes")?,
            files: row.unsigned("files")?,
        })
    })?;
    parts.sort_by_key(|part| part.age);
    Ok(parts)
}

const VERIFIED_RUNS_QUERY: &str =
    "SELECT run.number AS run, sum(verified.bytes) AS bytes, sum(verified.files) AS files,
        sum(verified.wire_bytes) AS wire_bytes,
        (SELECT count(*) FROM mismatch WHERE mismatch.run = run.number) AS mismatches
    FROM run JOIN phase ON phase.run = run.number JOIN verified ON verified.phase = phase.number
    WHERE run.number BETWEEN ?1 AND ?2 GROUP BY run.number ORDER BY run.number";

impl Reader {
    /// Returns what each of the runs with these numbers compared with what was written, and how many wrong ranges it was the
    /// first to find over its protocol. Runs that compared nothing are left out.
    pub fn verified_runs(&self, runs: RangeInclusive<i64>) -> Result<Vec<VerifiedRun>> {
        self.in_snapshot("read what runs verified", |cx| {
            query_all(cx, VERIFIED_RUNS_QUERY, [runs.start(), runs.end()], |row| {
                let row = TableRow::new(row, "verified", row.get("run")?);
                Ok(VerifiedRun {
                    run: row.number,
                    bytes: row.unsigned("bytes")?,
                    wire_bytes: row.unsigned("wire_bytes")?,
                    files: row.unsigned("files")?,
                    mismatches: row.unsigned("mismatches")?,
                })
            })
        })
    }
}
