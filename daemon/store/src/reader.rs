//! Read-only access to the database. Readers never block the writer, because the database uses write-ahead
//! logging.

use std::ops::{ControlFlow, RangeInclusive};
use std::path::{Path, PathBuf};

use longhaul_measure::platform::host_id;
use longhaul_model::{History, Reread, Role, RoundStatus, Scale, Target, Timestamp};
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params_from_iter};

use crate::epochs::Fingerprint;
use crate::error::{Error, Fault, Result};
use crate::migrations::{self, FileOrigin, SCHEMA_VERSION};
use crate::rows::{TableRow, query_all};
use crate::store::{BUSY_TIMEOUT, database_bytes, keep_plans, origin_error, read_machine_id};
use crate::{calls, events, history, host, operations, runs, wire};
use longhaul_model::stored::{
    NewRound, RoundEnd, RunFilter, StoredCalls, StoredEpoch, StoredEvent, StoredOperation, StoredRound,
    StoredRun, StoredTarget,
};

/// A read-only connection to the database. Its methods fail with [`Error::InvalidValue`] if a row holds a value unknown to this
/// version, and with [`Error::Damaged`] if the file is damaged.
#[derive(Debug)]
pub struct Reader {
    connection: Connection,
    path: PathBuf,
}

impl Reader {
    /// Opens the database at `path`.
    ///
    /// # Errors
    ///
    /// [`Error::NoDatabase`] where nothing has been measured yet; [`Error::Incomplete`], [`Error::SchemaTooNew`], [`Error::SchemaTooOld`],
    /// [`Error::Foreign`], [`Error::Damaged`] and [`Error::PermissionDenied`] for files that cannot be read.
    pub fn open(path: &Path) -> Result<Self> {
        const OPENING: &str = "open the database for reading";
        if matches!(path.try_exists(), Ok(false)) {
            return Err(Error::NoDatabase { path: path.to_owned() });
        }
        if path.is_dir() {
            // SQLite reports a folder as a disk I/O error, which would mislead the user.
            let detail = "it is a folder".to_owned();
            return Err(Error::PermissionDenied { path: path.to_owned(), operation: OPENING, detail });
        }
        let fault = |fault: Fault| fault.into_error(OPENING, path);
        let connection = connect(path).map_err(|error| fault(error.into()))?;
        let origin = migrations::origin(&connection).map_err(fault)?;
        origin_error(origin, path)?;
        match origin {
            FileOrigin::Empty if path.metadata().is_ok_and(|facts| facts.len() > 0) => {
                Err(Error::Incomplete { path: path.to_owned() })
            }
            FileOrigin::Empty => Err(Error::NoDatabase { path: path.to_owned() }),
            FileOrigin::Longhaul(found) if found < SCHEMA_VERSION => {
                Err(Error::SchemaTooOld { path: path.to_owned(), found, known: SCHEMA_VERSION })
            }
            FileOrigin::Longhaul(_) | FileOrigin::Foreign => Ok(Self { connection, path: path.to_owned() }),
        }
    }

    /// Returns the runs that match `filter`, oldest first; runs with the same start time are ordered by number.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a row holds a value unknown to this version, [`Error::Damaged`] if the file
    /// is damaged.
    pub fn runs(&self, filter: &RunFilter) -> Result<Vec<StoredRun>> {
        self.runs_with(filter, runs::stored_run)
    }

    /// Like [`Self::runs`], without phases, which take most of the time.
    pub fn runs_without_phases(&self, filter: &RunFilter) -> Result<Vec<StoredRun>> {
        self.runs_with(filter, |_, row| runs::without_phases(row))
    }

    fn runs_with(
        &self,
        filter: &RunFilter,
        run: impl Fn(&Connection, &Row<'_>) -> Result<StoredRun, Fault>,
    ) -> Result<Vec<StoredRun>> {
        let query = format!(
            "{} WHERE {} ORDER BY run.started_us DESC, run.number DESC LIMIT ?5 OFFSET ?6",
            runs::RUNS_QUERY,
            conditions(filter)
        );
        let part = [filter.limit.map_or(-1, i64::from), i64::from(filter.skip)].map(Value::from);
        let values = params_from_iter(values(filter).into_iter().chain(part));
        self.in_snapshot("read runs", |cx| {
            let mut runs = query_all(cx, &query, values.clone(), |row| run(cx, row))?;
            runs.reverse();
            Ok(runs)
        })
    }

    /// Returns the number of runs that match `filter`, regardless of its limit.
    pub fn run_count(&self, filter: &RunFilter) -> Result<u64> {
        let query = format!(
            "SELECT count(*) AS runs FROM run JOIN target ON target.number = run.target WHERE {}",
            conditions(filter)
        );
        self.in_snapshot("count runs", |cx| {
            let count = |row: &Row<'_>| TableRow::new(row, "run", 0).unsigned("runs");
            Ok(query_all(cx, &query, values(filter), count)?.pop().unwrap_or(0))
        })
    }

    /// Returns the run with this number. `None`: there is no such run.
    pub fn run(&self, number: i64) -> Result<Option<StoredRun>> {
        let query = format!("{} WHERE run.number = ?1", runs::RUNS_QUERY);
        self.in_snapshot("read a run", |cx| {
            Ok(query_all(cx, &query, [number], |row| runs::stored_run(cx, row))?.pop())
        })
    }

    /// Returns the start of the first run on this computer. `None`: there is no run yet.
    pub fn first_run_started(&self) -> Result<Option<Timestamp>> {
        let query = "SELECT started_us FROM run WHERE round > ?1 ORDER BY number LIMIT 1";
        self.in_snapshot("read the start of the first run", |cx| {
            let elsewhere = host::rounds_elsewhere(cx)?;
            Ok(cx.query_row(query, [elsewhere], |row| row.get(0)).optional()?.map(Timestamp::from_us))
        })
    }

    /// Returns all targets in the order in which they were added.
    pub fn targets(&self) -> Result<Vec<StoredTarget>> {
        let query = "SELECT *, (SELECT count(*) FROM run WHERE run.target = target.number) AS runs
            FROM target ORDER BY number";
        self.in_snapshot("read the targets", |cx| query_all(cx, query, [], stored_target))
    }

    /// Returns all epochs, oldest first.
    pub fn epochs(&self) -> Result<Vec<StoredEpoch>> {
        let query = "SELECT epoch.*, target.name AS target_name FROM epoch
            JOIN target ON target.number = epoch.target ORDER BY epoch.number";
        self.in_snapshot("read the epochs", |cx| query_all(cx, query, [], stored_epoch))
    }

    /// Returns all rounds in the order in which they were started or skipped.
    pub fn rounds(&self) -> Result<Vec<StoredRound>> {
        let query = "SELECT * FROM round ORDER BY number";
        self.in_snapshot("read the rounds", |cx| query_all(cx, query, [], stored_round))
    }

    /// Returns the events at or after `since`, oldest first. `None`: all events.
    pub fn events(&self, since: Option<Timestamp>) -> Result<Vec<StoredEvent>> {
        let since = since.unwrap_or(Timestamp::MIN);
        self.in_snapshot("read the events", |cx| events::events_since(cx, since))
    }

    /// Returns the history: all targets, epochs, rounds, runs and events with the columns that verdicts are
    /// computed from. Of its analysis settings, only the machine id and the threshold are stored in the
    /// database; the others have their default values.
    pub fn history(&self) -> Result<History> {
        self.history_since(History::default())
    }

    /// Like [`Reader::history`], but takes the runs of `earlier`, a history that was read from the same file before,
    /// instead of reading them again: with a year of runs it saves most of the time.
    pub fn history_since(&self, earlier: History) -> Result<History> {
        self.in_snapshot("read the history", |cx| {
            let events = events::events_since(cx, Timestamp::MIN)?;
            let events = events.into_iter().map(|stored| stored.event).collect();
            Ok(History { events, ..history::read(cx, earlier)? })
        })
    }

    /// Returns a string that stays the same until the result of [`Reader::history`] changes. Storing samples,
    /// for example, does not change it.
    pub fn history_version(&self) -> Result<String> {
        self.in_snapshot("check whether the history has changed", history::version)
    }

    /// Calls `visitor` for every operation of the runs with these numbers, in their order, until it returns
    /// [`ControlFlow::Break`]. Operations are read one at a time because all of them together may not fit in
    /// memory.
    pub fn for_each_operation(
        &self,
        runs: RangeInclusive<i64>,
        visitor: impl FnMut(StoredOperation) -> ControlFlow<()>,
    ) -> Result<()> {
        self.in_snapshot("read the operations", |cx| operations::for_each(cx, runs, visitor))
    }

    /// Returns the individually stored calls, phase by phase, of all runs that started at `since` or later.
    /// `workload`: only of this one. Calls are deleted after
    /// [`CALL_RETENTION_DAYS`](crate::CALL_RETENTION_DAYS).
    pub fn calls(&self, workload: Option<&str>, since: Timestamp) -> Result<Vec<StoredCalls>> {
        self.in_snapshot("read single calls", |cx| calls::calls(cx, workload, since))
    }

    /// Returns the warm phases of each target's newest epoch for which the traffic on the wire was counted.
    /// They show whether a client serves repeated reads from its cache.
    pub fn rereads(&self) -> Result<Vec<Reread>> {
        self.in_snapshot("read repeated reads", wire::rereads)
    }

    /// Returns the machine id; see [`Store::machine_id`](crate::Store::machine_id). `None`: the database is
    /// just being created.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] if the file is damaged.
    pub fn machine_id(&self) -> Result<Option<String>> {
        self.in_snapshot("read the machine's id", read_machine_id)
    }

    /// Returns the machine id of this computer, also if another one used the database since: the sandboxes of that one are not those
    /// of this one. `None`: it has none yet.
    pub fn own_machine_id(&self) -> Result<Option<String>> {
        let host = host_id();
        self.in_snapshot("read the machine's id", |cx| host::own_machine_id(cx, host.as_deref()))
    }

    /// Returns the machine ids of the other computers that used the database. They are in the names of their sandboxes.
    pub fn machine_ids_elsewhere(&self) -> Result<Vec<String>> {
        let host = host_id();
        self.in_snapshot("read the machine ids", |cx| host::machine_ids_elsewhere(cx, host.as_deref()))
    }

    /// Returns the number of the last round on another computer, which used the database before this one; 0 if there is none. The
    /// rounds up to it are neither exported nor shared as those of this computer.
    pub fn rounds_elsewhere(&self) -> Result<i64> {
        self.in_snapshot("read which rounds are of another computer", host::rounds_elsewhere)
    }

    /// Returns the seed of the last round on this computer. `None`: there was none.
    pub fn seed_of_last_round(&self) -> Result<Option<u64>> {
        self.in_snapshot("read the seed of the last round", |cx| {
            let query = "SELECT seed FROM round WHERE number > ?1 ORDER BY number DESC LIMIT 1";
            let elsewhere = host::rounds_elsewhere(cx)?;
            let seed: Option<i64> = cx.query_row(query, [elsewhere], |row| row.get(0)).optional()?;
            Ok(seed.map(i64::cast_unsigned))
        })
    }

    /// Returns the size of the database file plus its write-ahead log, in bytes.
    ///
    /// # Errors
    ///
    /// [`Error::PermissionDenied`] if the size of the database file cannot be read.
    pub fn size_bytes(&self) -> Result<u64> {
        database_bytes(&self.path).map_err(|error| Error::PermissionDenied {
            path: self.path.clone(),
            operation: "read the size of the database",
            detail: error.to_string(),
        })
    }

    /// Returns a number that changes whenever another connection has changed the database. It is SQLite's
    /// `PRAGMA data_version`, <https://www.sqlite.org/pragma.html#pragma_data_version>.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] if the file is damaged.
    pub fn data_version(&self) -> Result<i64> {
        self.in_snapshot("read the version of the database", |cx| {
            Ok(cx.pragma_query_value(None, "data_version", |row| row.get(0))?)
        })
    }

    /// Calls `read` in one read transaction, so that all its queries see the same state of the database.
    pub(crate) fn in_snapshot<T>(
        &self,
        operation: &'static str,
        read: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<T> {
        let attempt = || {
            let snapshot = self.connection.unchecked_transaction()?;
            read(&snapshot)
        };
        attempt().map_err(|fault: Fault| fault.into_error(operation, &self.path))
    }
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "query_only", true)?;
    keep_plans(&connection)?;
    Ok(connection)
}

/// Returns the condition of a filter in SQL, with only the parts that are set, so that SQLite can choose the matching index. `?4` is
/// always used, so that it has as many places as [`values`] has values.
fn conditions(filter: &RunFilter) -> String {
    let conditions = [
        filter.target.as_ref().map(|_| "target.name = ?1"),
        filter.workload.as_ref().map(|_| "run.workload = ?2"),
        filter.since.map(|_| "run.started_us >= ?3"),
        Some("(?4 IS NULL OR run.outcome = ?4)"),
    ];
    conditions.into_iter().flatten().collect::<Vec<&str>>().join(" AND ")
}

/// Returns the values for [`conditions`].
fn values(filter: &RunFilter) -> [Value; 4] {
    [
        filter.target.as_ref().map(ToString::to_string).into(),
        filter.workload.clone().into(),
        filter.since.map(Timestamp::as_us).into(),
        filter.outcome.map(|outcome| outcome.name().to_owned()).into(),
    ]
}

fn stored_target(row: &Row<'_>) -> Result<StoredTarget, Fault> {
    let row = TableRow::numbered(row, "target")?;
    let target = Target {
        name: row.parsed("name", |name| name.parse().ok())?,
        path: row.path("path")?,
        role: row.parsed("role", Role::from_name)?,
    };
    let runs = row.unsigned("runs")?;
    Ok(StoredTarget { target, added: row.time("added_us")?, runs })
}

fn stored_epoch(row: &Row<'_>) -> Result<StoredEpoch, Fault> {
    let row = TableRow::numbered(row, "epoch")?;
    let Fingerprint { path, protocol, negotiated } = Fingerprint::from_row(row)?;
    let target = row.parsed("target_name", |name| name.parse().ok())?;
    Ok(StoredEpoch { number: row.number, target, opened: row.time("opened_us")?, path, protocol, negotiated })
}

pub(crate) fn stored_round(row: &Row<'_>) -> Result<StoredRound, Fault> {
    let row = TableRow::numbered(row, "round")?;
    let round = NewRound {
        started: row.time("started_us")?,
        utc_offset_seconds: row.get("utc_offset_seconds")?,
        seed: row.unsigned("seed")?,
        scale: row.parsed("scale", Scale::from_name)?,
        planned: row.json("planned")?,
        scheduled: row.optional_time("scheduled_us")?,
        before: row.optional_json("before")?,
    };
    let end = match row.optional_parsed("status", RoundStatus::from_name)? {
        Some(status) => Some(RoundEnd { status, reason: row.get("reason")?, ended: row.time("ended_us")? }),
        None => None,
    };
    Ok(StoredRound { number: row.number, round, end })
}
