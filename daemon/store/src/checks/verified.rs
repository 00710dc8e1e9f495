//! Stores and reads what phases verified, and the totals of it.

use longhaul_model::{DataAge, Phase, VerifiedData};
use rusqlite::{Connection, named_params};

use crate::error::Fault;
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
