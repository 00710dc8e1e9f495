//! Opening the database for writing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use longhaul_measure::model::Mount;
use longhaul_measure::platform::wall_clock_us;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OptionalExtension, TransactionBehavior};

use crate::error::{Error, Fault, Result};
use crate::location;
use crate::migrations::{self, KNOWN, Origin};

/// How long a statement waits for another process's lock.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// The pause between attempts where SQLite itself does not wait.
const PAUSE: Duration = Duration::from_millis(10);
const OPENING: &str = "open the database";

/// The database, open for writing. Give it to a [`Writer`](crate::Writer).
#[derive(Debug)]
pub struct Store {
    pub(crate) connection: Connection,
    pub(crate) path: PathBuf,
    machine_id: String,
}

impl Store {
    /// Opens the database at `path`, making it and its folders if they are not there.
    ///
    /// `mounts` is the mount table, by which places that are not on a local disk are refused.
    ///
    /// # Errors
    ///
    /// Everything in [`Error`] except what is about single rounds and runs. A file that is not longhaul's, or that is of
    /// a newer longhaul, is left as it is.
    pub fn open(path: &Path, mounts: &[Mount]) -> Result<Self> {
        Self::open_with_patience(path, mounts, PATIENCE)
    }

    /// As [`Store::open`], with another time to wait for locks.
    pub(crate) fn open_with_patience(path: &Path, mounts: &[Mount], patience: Duration) -> Result<Self> {
        let path = location::prepare(path, mounts)?;
        let crashed = log_of(&path).exists();
        let in_opening = |fault: Fault| fault.during(OPENING, &path);
        let mut connection = Connection::open(&path).map_err(|error| in_opening(error.into()))?;
        connection.busy_timeout(patience).map_err(|error| in_opening(error.into()))?;
        refuse_what_is_not_ours(&connection, &path)?;
        if crashed {
            check_pages(&connection, &path)?;
        }
        configure(&connection, patience).map_err(in_opening)?;
        migrations::apply(&mut connection).map_err(in_opening)?;
        let machine_id = machine_id(&mut connection).map_err(in_opening)?;
        Ok(Self { connection, path, machine_id })
    }

    /// Gives this database the id of the machine that had another one before, so that its arenas are found again.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub fn adopt(&mut self, machine_id: &str) -> Result<()> {
        let update = "UPDATE meta SET value = ?1 WHERE key = 'machine_id'";
        let adopted = self.connection.execute(update, [machine_id]);
        adopted.map_err(|error| Fault::from(error).during("keep the machine's id", &self.path))?;
        machine_id.clone_into(&mut self.machine_id);
        Ok(())
    }

    /// 16 random hexadecimal digits, made when the database was: stands for this machine in names of arenas.
    pub fn machine_id(&self) -> &str {
        &self.machine_id
    }
}

/// The write-ahead log, which SQLite removes when the last connection is closed in order.
pub(crate) fn log_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// Stops before anything is written to a file of another program or of a newer longhaul.
fn refuse_what_is_not_ours(connection: &Connection, path: &Path) -> Result<()> {
    let in_opening = |fault: Fault| fault.during(OPENING, path);
    // Otherwise closing the refused file would move its log into it.
    let keep_log = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
    connection.set_db_config(keep_log, true).map_err(|error| in_opening(error.into()))?;
    refuse(migrations::origin(connection).map_err(in_opening)?, path)?;
    connection.set_db_config(keep_log, false).map_err(|error| in_opening(error.into()))?;
    Ok(())
}

/// The error for a file that this program must not write to.
pub(crate) fn refuse(origin: Origin, path: &Path) -> Result<()> {
    let path = path.to_owned();
    match origin {
        Origin::Foreign => Err(Error::Foreign { path }),
        Origin::Longhaul(found) if found > KNOWN => Err(Error::Newer { path, found, known: KNOWN }),
        Origin::Longhaul(_) | Origin::Empty => Ok(()),
    }
}

/// After a crash, reads every page once: better to stop here than in the middle of a week.
fn check_pages(connection: &Connection, path: &Path) -> Result<()> {
    let verdict: String = connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(|error| Fault::from(error).during("check the database", path))?;
    if verdict == "ok" {
        return Ok(());
    }
    Err(Error::Damaged { path: path.to_owned(), operation: "check the database", detail: verdict })
}

/// The settings of a connection that writes. `auto_vacuum` has to come before the first table.
fn configure(connection: &Connection, patience: Duration) -> Result<(), Fault> {
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    use_log(connection, patience)?;
    // FULL: a run is on disk before it is acknowledged, and there is one transaction per run, so it costs nothing felt.
    connection.pragma_update(None, "synchronous", "FULL")?;
    // On macOS fsync leaves the data in the drive's cache; elsewhere these two change nothing.
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(())
}

/// Switches to the write-ahead log. SQLite does not wait for locks here, so two first openings at once need this loop.
fn use_log(connection: &Connection, patience: Duration) -> Result<(), Fault> {
    let mut attempts = patience.as_millis() / PAUSE.as_millis();
    loop {
        match connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0)) {
            Err(error) if is_busy(&error) && attempts > 0 => {
                attempts -= 1;
                std::thread::sleep(PAUSE);
            }
            Err(error) => return Err(error.into()),
            Ok(mode) if mode.eq_ignore_ascii_case("wal") => return Ok(()),
            Ok(mode) => return Err(Fault::Unstorable(format!("the log mode stays `{mode}`"))),
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Reads the machine's id, and makes it in a new database.
fn machine_id(connection: &mut Connection) -> Result<String, Fault> {
    if let Some(id) = read_machine_id(connection)? {
        return Ok(id);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let insert = "INSERT OR IGNORE INTO meta (key, value)
        VALUES ('machine_id', lower(hex(randomblob(8)))), ('created_us', CAST(?1 AS TEXT))";
    transaction.execute(insert, [wall_clock_us()])?;
    let id = read_machine_id(&transaction)?;
    transaction.commit()?;
    Ok(id.expect("the row was inserted a moment ago, in a transaction of its own"))
}

/// The ratio from which on a difference matters, once it is settled.
pub(crate) fn read_threshold(connection: &Connection) -> Result<Option<f64>, Fault> {
    let query = "SELECT CAST(value AS REAL) FROM meta WHERE key = 'threshold'";
    Ok(connection.query_row(query, [], |row| row.get(0)).optional()?)
}

/// The machine's id, if the database has one.
pub(crate) fn read_machine_id(connection: &Connection) -> Result<Option<String>, Fault> {
    let query = "SELECT value FROM meta WHERE key = 'machine_id'";
    Ok(connection.query_row(query, [], |row| row.get(0)).optional()?)
}
