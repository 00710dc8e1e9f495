//! The schema, as a dated list that only ever grows.

use rusqlite::{Connection, TransactionBehavior};

use crate::error::Fault;

/// `LgHl`: marks the file as longhaul's in SQLite's header.
pub(crate) const APPLICATION_ID: i64 = 0x4c67_486c;

/// One step of the schema.
struct Migration {
    /// Its date and name, as its file.
    #[cfg_attr(not(test), allow(dead_code, reason = "for people and for the test of the order"))]
    name: &'static str,
    sql: &'static str,
}

/// Every step, oldest first. Steps are added at the end and never edited: databases remember only how many they have.
const MIGRATIONS: &[Migration] = &[
    Migration { name: "2026-11-20-first", sql: include_str!("../migrations/2026-11-20-first.sql") },
    Migration { name: "2026-11-20-schedule", sql: include_str!("../migrations/2026-11-20-schedule.sql") },
    Migration { name: "2026-11-20-verdicts", sql: include_str!("../migrations/2026-11-20-verdicts.sql") },
    Migration { name: "2026-11-21-samples", sql: include_str!("../migrations/2026-11-21-samples.sql") },
    Migration { name: "2026-11-21-telemetry", sql: include_str!("../migrations/2026-11-21-telemetry.sql") },
    Migration { name: "2026-11-21-wire", sql: include_str!("../migrations/2026-11-21-wire.sql") },
];

/// The schema that this program reads and writes.
pub(crate) const KNOWN: i64 = MIGRATIONS.len() as i64;

/// What the header of a file says about whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nothing is in it yet.
    Empty,
    /// Longhaul's, with this schema.
    Longhaul(i64),
    /// Another program's.
    Foreign,
}

/// Whose database this is. Reads only, and as of one moment: another process may be making it just now.
pub(crate) fn origin(connection: &Connection) -> Result<Origin, Fault> {
    let moment = connection.unchecked_transaction()?;
    let application = pragma(&moment, "application_id")?;
    let version = pragma(&moment, "user_version")?;
    let objects: i64 = moment.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(match application {
        APPLICATION_ID => Origin::Longhaul(version),
        0 if version == 0 && objects == 0 => Origin::Empty,
        _ => Origin::Foreign,
    })
}

/// Applies what is missing, each step in a transaction of its own.
pub(crate) fn apply(connection: &mut Connection) -> Result<(), Fault> {
    while pragma(connection, "user_version")? < KNOWN {
        step(connection)?;
    }
    Ok(())
}

/// Applies the next step. The version is read again under the lock: another process may have been faster.
fn step(connection: &mut Connection) -> Result<(), Fault> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version = pragma(&transaction, "user_version")?;
    let next = usize::try_from(version).ok().and_then(|applied| MIGRATIONS.get(applied));
    if let Some(migration) = next {
        transaction.execute_batch(migration.sql)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", version + 1)?;
    }
    Ok(transaction.commit()?)
}

pub(crate) fn pragma(connection: &Connection, name: &str) -> Result<i64, Fault> {
    Ok(connection.pragma_query_value(None, name, |row| row.get(0))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn migrations_are_dated_and_in_order() {
        assert!(MIGRATIONS.is_sorted_by(|a, b| a.name < b.name));
        assert!(MIGRATIONS.iter().all(|migration| migration.name.starts_with("20")));
    }
}
