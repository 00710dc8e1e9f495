//! Opens the database for writing.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use longhaul_measure::platform::{host_id, wall_clock};
use longhaul_measure::private_files;
use longhaul_model::Mount;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OptionalExtension, TransactionBehavior};

use crate::error::{Error, Fault, Result};
use crate::migrations::{self, FileOrigin, SCHEMA_VERSION};
use crate::{host, location};

/// Maximum time that a statement waits for a lock of another process.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause between attempts to switch to write-ahead logging, for which SQLite ignores the busy timeout.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);
const OPEN_OPERATION: &str = "open the database";
/// First bytes of every SQLite database (sqlite.org/fileformat.html, 1.3).
const SQLITE_HEADER: &[u8; 16] = b"SQLite format 3\0";

/// A database that is open for writing. Pass it to a [`Writer`](crate::Writer).
#[derive(Debug)]
pub struct Store {
    pub(crate) connection: Connection,
    pub(crate) path: PathBuf,
    machine_id: String,
}

impl Store {
    /// Opens the database at `path`. Creates the file and its folders if they do not exist, and applies missing
    /// migrations. If another computer used the file before, this one gets a machine id and epochs of its own.
    ///
    /// `mounts` is the mount table, which is used to refuse paths that are not on a local disk.
    ///
    /// # Errors
    ///
    /// All variants of [`Error`] except those about single rounds and runs. A file of another program or of a
    /// newer version of longhaul is not changed.
    pub fn open(path: &Path, mounts: &[Mount]) -> Result<Self> {
        Self::open_with_busy_timeout(path, mounts, BUSY_TIMEOUT)
    }

    /// Opens the database like [`Store::open`], but with a different busy timeout.
    pub(crate) fn open_with_busy_timeout(
        path: &Path,
        mounts: &[Mount],
        busy_timeout: Duration,
    ) -> Result<Self> {
        Self::open_on(host_id().as_deref(), path, mounts, busy_timeout)
    }

    /// Opens the database like [`Store::open`], but as the computer with the id `host`; `None`: the id is unknown.
    ///
    /// # Errors
    ///
    /// Same as [`Store::open`].
    pub fn open_on(
        host: Option<&str>,
        path: &Path,
        mounts: &[Mount],
        busy_timeout: Duration,
    ) -> Result<Self> {
        let path = location::create_database_folder(path, mounts)?;
        // SQLite keeps the log beside the file that a link leads to.
        let [log, _] = wal_files(&path.canonicalize().unwrap_or_else(|_| path.clone()));
        let crashed = log.exists();
        let in_opening = |fault: Fault| fault.into_error(OPEN_OPERATION, &path);
        create_private(&path);
        let mut connection = Connection::open(&path).map_err(|error| in_opening(error.into()))?;
        connection.busy_timeout(busy_timeout).map_err(|error| in_opening(error.into()))?;
        require_our_database(&connection, &path)?;
        if crashed {
            check_pages(&connection, &path)?;
        }
        configure(&connection, busy_timeout).map_err(in_opening)?;
        migrations::apply(&mut connection).map_err(in_opening)?;
        let machine_id = read_or_create_machine_id(&mut connection).map_err(in_opening)?;
        let own_id = host::claim(&mut connection, host).map_err(in_opening)?;
        Ok(Self { connection, path, machine_id: own_id.unwrap_or(machine_id) })
    }

    /// Replaces the machine id. A new database for a known machine takes over the old id, so that existing
    /// sandboxes on the targets, which contain the id in their names, are found again.
    pub fn set_machine_id(&mut self, machine_id: &str) -> Result<()> {
        let update = "UPDATE meta SET value = ?1 WHERE key = 'machine_id'";
        let adopted = self.connection.execute(update, [machine_id]);
        adopted.map_err(|error| Fault::from(error).into_error("store the machine id", &self.path))?;
        machine_id.clone_into(&mut self.machine_id);
        Ok(())
    }

    /// Returns the machine id: 16 hexadecimal digits, drawn at random when the database was created; another computer that uses it
    /// gets other ones. It identifies this machine in the names of sandboxes.
    pub fn machine_id(&self) -> &str {
        &self.machine_id
    }
}

/// Creates an empty file that other users cannot read, unless the file exists. SQLite gives its write-ahead log and
/// shared memory the mode of the database. An error is ignored, because SQLite meets it again and says more about it.
pub(crate) fn create_private(path: &Path) {
    let _ = private_files::options().write(true).create_new(true).open(path);
}

/// Returns whether a file begins like every SQLite database. False if it cannot be read.
pub fn has_sqlite_header(file: &File) -> bool {
    let mut header = [0; SQLITE_HEADER.len()];
    file.read_exact_at(&mut header, 0).is_ok() && header == *SQLITE_HEADER
}

/// Returns the paths of the write-ahead log of a database and of its index. SQLite deletes these files when the last connection is
/// closed properly.
pub fn wal_files(path: &Path) -> [PathBuf; 2] {
    ["-wal", "-shm"].map(|suffix| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        name.into()
    })
}

/// Returns the size of a database and its write-ahead log, in bytes.
///
/// # Errors
///
/// The error of the operating system if the size of the database cannot be read.
pub fn database_bytes(path: &Path) -> io::Result<u64> {
    let [log, _] = wal_files(path);
    // The log does not exist while no process has the database open for writing.
    Ok(std::fs::metadata(path)?.len() + std::fs::metadata(log).map_or(0, |log| log.len()))
}

/// Returns an error if the file belongs to another program or to a newer version of longhaul. Writes nothing.
fn require_our_database(connection: &Connection, path: &Path) -> Result<()> {
    let in_opening = |fault: Fault| fault.into_error(OPEN_OPERATION, path);
    // Without this setting, closing the connection would checkpoint the log into the file, which must stay
    // unchanged.
    let keep_log = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
    connection.set_db_config(keep_log, true).map_err(|error| in_opening(error.into()))?;
    origin_error(migrations::origin(connection).map_err(in_opening)?, path)?;
    connection.set_db_config(keep_log, false).map_err(|error| in_opening(error.into()))?;
    Ok(())
}

/// Returns an error if this program must not write to a file of this origin.
pub(crate) fn origin_error(origin: FileOrigin, path: &Path) -> Result<()> {
    let path = path.to_owned();
    match origin {
        FileOrigin::Foreign => Err(Error::Foreign { path }),
        FileOrigin::Longhaul(found) if found > SCHEMA_VERSION => {
            Err(Error::SchemaTooNew { path, found, known: SCHEMA_VERSION })
        }
        FileOrigin::Longhaul(_) | FileOrigin::Empty => Ok(()),
    }
}

/// Reads every page of the database once. Called after a crash, so that damage is found at startup instead of
/// days later, and after a write that met damage.
pub(crate) fn check_pages(connection: &Connection, path: &Path) -> Result<()> {
    let verdict: String = connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(|error| Fault::from(error).into_error("check the database", path))?;
    if verdict == "ok" {
        return Ok(());
    }
    Err(Error::Damaged { path: path.to_owned(), operation: "check the database", detail: verdict })
}

/// Applies the settings of a writing connection. `auto_vacuum` takes effect only before the first table is
/// created.
fn configure(connection: &Connection, busy_timeout: Duration) -> Result<(), Fault> {
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    enable_wal(connection, busy_timeout)?;
    // FULL: a run is on disk before it is acknowledged. With one transaction per run, the extra fsync does not
    // matter.
    connection.pragma_update(None, "synchronous", "FULL")?;
    // On macOS, fsync leaves the data in the cache of the drive. On other systems these two settings have no
    // effect.
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    keep_plans(connection)?;
    Ok(())
}

/// Keeps SQLite from preparing a statement again whenever its values change. It would look for a better plan in statistics about the
/// tables (`sqlite_stat4`), which longhaul does not collect.
pub(crate) fn keep_plans(connection: &Connection) -> rusqlite::Result<bool> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
}

/// Switches the database to write-ahead logging. SQLite ignores the busy timeout for this statement, so the
/// loop handles two processes that create the database at the same time.
fn enable_wal(connection: &Connection, busy_timeout: Duration) -> Result<(), Fault> {
    let mut attempts = busy_timeout.as_millis() / RETRY_INTERVAL.as_millis();
    loop {
        match connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0)) {
            Err(error) if is_busy(&error) && attempts > 0 => {
                attempts -= 1;
                std::thread::sleep(RETRY_INTERVAL);
            }
            Err(error) => return Err(error.into()),
            Ok(mode) if mode.eq_ignore_ascii_case("wal") => return Ok(()),
            Ok(mode) => {
                return Err(Fault::Unstorable(format!(
                    "the journal mode is still `{mode}` instead of `wal`"
                )));
            }
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Returns the machine id; draws and stores one if the database is new.
fn read_or_create_machine_id(connection: &mut Connection) -> Result<String, Fault> {
    if let Some(id) = read_machine_id(connection)? {
        return Ok(id);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let insert = "INSERT OR IGNORE INTO meta (key, value)
        VALUES ('machine_id', lower(hex(randomblob(8)))), ('created_us', CAST(?1 AS TEXT))";
    transaction.execute(insert, [wall_clock().as_us()])?;
    let id = read_machine_id(&transaction)?;
    transaction.commit()?;
    Ok(id.expect("the row was inserted a moment ago, in a transaction of its own"))
}

/// Returns the threshold: the ratio from which a difference matters. `None`: no round has fixed it yet.
pub(crate) fn read_threshold(connection: &Connection) -> Result<Option<f64>, Fault> {
    let query = "SELECT CAST(value AS REAL) FROM meta WHERE key = 'threshold'";
    Ok(connection.query_row(query, [], |row| row.get(0)).optional()?)
}

/// Returns the machine id. `None`: the database is new.
pub(crate) fn read_machine_id(connection: &Connection) -> Result<Option<String>, Fault> {
    let query = "SELECT value FROM meta WHERE key = 'machine_id'";
    Ok(connection.query_row(query, [], |row| row.get(0)).optional()?)
}
