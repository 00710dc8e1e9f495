//! The database schema as a list of dated migrations.

use rusqlite::{Connection, TransactionBehavior};

use crate::error::Fault;

/// SQLite application id that marks a file as a longhaul database: `LgHl` in ASCII.
pub const APPLICATION_ID: i32 = 0x4c67_486c;

/// One schema change.
struct Migration {
    /// Date and name of the migration, the same as its file name.
    #[cfg_attr(
        not(test),
        allow(dead_code, reason = "documents the list; only the test of the order reads it")
    )]
    name: &'static str,
    sql: &'static str,
}

/// All migrations, oldest first. New ones are appended and existing ones never edited, because a database
/// stores only the number of applied migrations.
const MIGRATIONS: &[Migration] = &[
    Migration { name: "2026-11-25-first", sql: include_str!("../migrations/2026-11-25-first.sql") },
    Migration {
        name: "2026-11-25-notifications",
        sql: include_str!("../migrations/2026-11-25-notifications.sql"),
    },
    Migration { name: "2026-11-25-usage", sql: include_str!("../migrations/2026-11-25-usage.sql") },
    Migration { name: "2026-11-26-fidelity", sql: include_str!("../migrations/2026-11-26-fidelity.sql") },
    Migration { name: "2026-11-26-freshness", sql: include_str!("../migrations/2026-11-26-freshness.sql") },
    Migration { name: "2026-11-26-integrity", sql: include_str!("../migrations/2026-11-26-integrity.sql") },
    Migration { name: "2026-11-26-nas", sql: include_str!("../migrations/2026-11-26-nas.sql") },
    Migration {
        name: "2026-11-26-request-times",
        sql: include_str!("../migrations/2026-11-26-request-times.sql"),
    },
    Migration {
        name: "2026-11-26-round-checks",
        sql: include_str!("../migrations/2026-11-26-round-checks.sql"),
    },
    Migration { name: "2026-11-26-round-trip", sql: include_str!("../migrations/2026-11-26-round-trip.sql") },
    Migration {
        name: "2026-11-26-wrong-range-elsewhere",
        sql: include_str!("../migrations/2026-11-26-wrong-range-elsewhere.sql"),
    },
    Migration {
        name: "2026-11-27-connection-bytes",
        sql: include_str!("../migrations/2026-11-27-connection-bytes.sql"),
    },
    Migration {
        name: "2026-11-28-unread-columns",
        sql: include_str!("../migrations/2026-11-28-unread-columns.sql"),
    },
    Migration {
        name: "2026-11-29-wrong-range-by-protocol",
        sql: include_str!("../migrations/2026-11-29-wrong-range-by-protocol.sql"),
    },
];

/// Schema version that this program reads and writes.
pub(crate) const SCHEMA_VERSION: i64 = MIGRATIONS.len() as i64;

/// The program that created a database file, according to the SQLite header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileOrigin {
    /// New or empty file.
    Empty,
    /// A longhaul database with this schema version.
    Longhaul(i64),
    /// A database of another program.
    Foreign,
}

/// Returns the origin of a database file. It only reads, and in one transaction, because another process may be
/// creating the database at the same time.
pub(crate) fn origin(connection: &Connection) -> Result<FileOrigin, Fault> {
    let snapshot = connection.unchecked_transaction()?;
    let application = pragma(&snapshot, "application_id")?;
    let version = pragma(&snapshot, "user_version")?;
    // A version below the first one was not written by longhaul.
    if application == i64::from(APPLICATION_ID) && version > 0 {
        return Ok(FileOrigin::Longhaul(version));
    }
    let objects: i64 = snapshot.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(if [application, version, objects] == [0; 3] { FileOrigin::Empty } else { FileOrigin::Foreign })
}

/// Applies all missing migrations, each in its own transaction.
pub(crate) fn apply(connection: &mut Connection) -> Result<(), Fault> {
    while pragma(connection, "user_version")? < SCHEMA_VERSION {
        apply_next(connection)?;
    }
    Ok(())
}

/// Applies the next migration. The version is read again under the write lock, because another process may have
/// applied the migration in the meantime.
fn apply_next(connection: &mut Connection) -> Result<(), Fault> {
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

    /// Columns of a wrong range that the migration to wrong ranges by protocol copies.
    const MISMATCH_COLUMNS: &str =
        "number, target, run, file, offset, length, pattern, found_us, last_found_us, times_found,
        written_us, last_good_us, phase, cache, reread, elsewhere, fingerprint, expected, found";

    /// Returns the values of columns of the only wrong range, as in SQL.
    fn mismatch(connection: &Connection, columns: &str) -> String {
        let values: Vec<String> = columns.split(',').map(|column| format!("quote({column})")).collect();
        let query = format!("SELECT {} FROM mismatch", values.join(" || ', ' || "));
        connection.query_row(&query, [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn migration_keeps_all_values_of_a_wrong_range() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.pragma_update(None, "foreign_keys", false).unwrap();
        let name = "2026-11-29-wrong-range-by-protocol";
        let before = MIGRATIONS.iter().position(|migration| migration.name == name).unwrap();
        (0..before).for_each(|_| apply_next(&mut connection).unwrap());
        let run = "INSERT INTO run (number, trace_id, round, slot, target, epoch, protocol, workload, scale, outcome, started_us,
                utc_offset_seconds, seconds, facts, conditions)
            VALUES (7, 't', 1, 0, 2, 3, 'protocol', 'w', 'quick', 'ok', 0, 0, 1.0, '{}', '{}')";
        connection.execute(run, []).unwrap();
        let values = "5, 2, 7, 'file', 11, 12, 'pattern', 13, 14, 15, 16, 17, 'phase', 'cache', 'reread', 'elsewhere', 18, X'01', X'02'";
        let wrong_range = format!("INSERT INTO mismatch ({MISMATCH_COLUMNS}) VALUES ({values})");
        connection.execute(&wrong_range, []).unwrap();
        apply(&mut connection).unwrap();
        assert_eq!(mismatch(&connection, MISMATCH_COLUMNS), values);
        assert_eq!(mismatch(&connection, "protocol, epoch"), "'protocol', 3");
    }
}
