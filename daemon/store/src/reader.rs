//! Reading beside the writer, without ever being in its way.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use longhaul_measure::model::{Event, Role, RoundStatus, Scale, Target};
use longhaul_measure::summary::{History, Reread};
use rusqlite::{Connection, OpenFlags, Params, Row};

use crate::calls;
use crate::epochs::Fingerprint;
use crate::error::{Error, Fault, Result};
use crate::history;
use crate::migrations::{self, KNOWN, Origin};
use crate::open::{PATIENCE, log_of, read_machine_id, refuse};
use crate::operations;
use crate::records::{
    NewRound, RoundEnd, RunFilter, StoredCalls, StoredEpoch, StoredEvent, StoredOperation, StoredRound,
    StoredRun, StoredTarget,
};
use crate::rows::{self, json_of, named, optional_json_of, optional_named, path_of};
use crate::wire;

/// The database, open for reading. It cannot change anything.
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
    /// [`Error::NoDatabase`] where nothing has been measured yet; [`Error::Newer`], [`Error::Older`],
    /// [`Error::Foreign`], [`Error::Damaged`] and [`Error::Denied`] for files that cannot be read.
    pub fn open(path: &Path) -> Result<Self> {
        const OPENING: &str = "open the database for reading";
        if matches!(path.try_exists(), Ok(false)) {
            return Err(Error::NoDatabase { path: path.to_owned() });
        }
        if path.is_dir() {
            // SQLite would call it a disk error.
            let detail = "it is a folder".to_owned();
            return Err(Error::Denied { path: path.to_owned(), operation: OPENING, detail });
        }
        let fault = |fault: Fault| fault.during(OPENING, path);
        let connection = connect(path).map_err(|error| fault(error.into()))?;
        let origin = migrations::origin(&connection).map_err(fault)?;
        refuse(origin, path)?;
        match origin {
            Origin::Empty => Err(Error::NoDatabase { path: path.to_owned() }),
            Origin::Longhaul(found) if found < KNOWN => {
                Err(Error::Older { path: path.to_owned(), found, known: KNOWN })
            }
            Origin::Longhaul(_) | Origin::Foreign => Ok(Self { connection, path: path.to_owned() }),
        }
    }

    /// The runs that a filter lets through, oldest first; runs that began at the same time in the order of their numbers.
    ///
    /// # Errors
    ///
    /// [`Error::Row`] for a value that this program does not know, [`Error::Damaged`] for a broken file.
    pub fn runs(&self, filter: &RunFilter) -> Result<Vec<StoredRun>> {
        self.in_snapshot("read runs", |cx| {
            let values = (
                filter.target.as_ref().map(|name| name.as_str()),
                &filter.workload,
                filter.since_us,
                filter.limit.map_or(-1, i64::from),
            );
            let mut runs = collect(cx, &runs_query(filter), values, |row| rows::stored_run(cx, row))?;
            runs.reverse();
            Ok(runs)
        })
    }

    /// One run by its number.
    ///
    /// # Errors
    ///
    /// As [`Reader::runs`].
    pub fn run(&self, number: i64) -> Result<Option<StoredRun>> {
        let query = format!("{} WHERE run.number = ?1", rows::RUNS);
        self.in_snapshot("read a run", |cx| {
            Ok(collect(cx, &query, [number], |row| rows::stored_run(cx, row))?.pop())
        })
    }

    /// Every target that has runs, in the order in which they were first measured.
    ///
    /// # Errors
    ///
    /// As [`Reader::runs`].
    pub fn targets(&self) -> Result<Vec<StoredTarget>> {
        let query = "SELECT *, (SELECT max(number) FROM epoch WHERE epoch.target = target.number) AS epoch,
            (SELECT count(*) FROM run WHERE run.target = target.number) AS runs FROM target ORDER BY number";
        self.in_snapshot("read the targets", |cx| collect(cx, query, [], stored_target))
    }

    /// Every epoch, oldest first.
    ///
    /// # Errors
    ///
    /// As [`Reader::runs`].
    pub fn epochs(&self) -> Result<Vec<StoredEpoch>> {
        let query = "SELECT epoch.*, target.name AS target_name FROM epoch
            JOIN target ON target.number = epoch.target ORDER BY epoch.number";
        self.in_snapshot("read the epochs", |cx| collect(cx, query, [], stored_epoch))
    }

    /// Every round, in the order in which they began.
    ///
    /// # Errors
    ///
    /// As [`Reader::runs`].
    pub fn rounds(&self) -> Result<Vec<StoredRound>> {
        let query = "SELECT * FROM round ORDER BY number";
        self.in_snapshot("read the rounds", |cx| collect(cx, query, [], stored_round))
    }

    /// The events since a moment in microseconds since 1970 UTC, oldest first; all for `None`.
    ///
    /// # Errors
    ///
    /// As [`Reader::runs`].
    pub fn events(&self, since_us: Option<i64>) -> Result<Vec<StoredEvent>> {
        let since_us = since_us.unwrap_or(i64::MIN);
        self.in_snapshot("read the events", |cx| collect(cx, EVENTS, [since_us], stored_event))
    }

    /// What verdicts rest on: every target, epoch, round, run and event in its narrow form. Of the premises only the
    /// machine's id and the threshold are filled in.
    ///
    /// # Errors
    ///
    /// As [`Reader::runs`].
    pub fn history(&self) -> Result<History> {
        self.in_snapshot("read the history", |cx| {
            let events = collect(cx, EVENTS, [i64::MIN], stored_event)?;
            let events = events.into_iter().map(|stored| stored.event).collect();
            Ok(History { events, ..history::read(cx)? })
        })
    }

    /// A text that stays the same for as long as what [`Reader::history`] gives does, whatever else is stored.
    ///
    /// # Errors
    ///
    /// As [`Reader::runs`].
    pub fn history_mark(&self) -> Result<String> {
        self.in_snapshot("look whether the history has changed", history::mark)
    }

    /// Shows every operation of every run to a visitor, in the order of runs, until it has seen enough. One at a time, for
    /// all of them may not fit in memory.
    ///
    /// # Errors
    ///
    /// As [`Reader::runs`].
    pub fn operations(&self, visitor: impl FnMut(StoredOperation) -> ControlFlow<()>) -> Result<()> {
        self.in_snapshot("read the operations", |cx| operations::visit(cx, visitor))
    }

    /// The single calls that are kept of a workload's runs which began at a moment in microseconds since 1970 UTC or later,
    /// phase by phase: see [`CALLS_KEPT_DAYS`](crate::CALLS_KEPT_DAYS).
    ///
    /// # Errors
    ///
    /// As [`Reader::runs`].
    pub fn calls(&self, workload: &str, since_us: i64) -> Result<Vec<StoredCalls>> {
        self.in_snapshot("read single calls", |cx| calls::of_workload(cx, (since_us, workload)))
    }

    /// Every second reading of every target's newest epoch of which it is known what crossed the wire.
    ///
    /// # Errors
    ///
    /// As [`Reader::runs`].
    pub fn rereads(&self) -> Result<Vec<Reread>> {
        self.in_snapshot("read second readings", wire::rereads)
    }

    /// The machine's id: see [`Store::machine_id`](crate::Store::machine_id). `None` in the first moment of a database.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] for a broken file.
    pub fn machine_id(&self) -> Result<Option<String>> {
        self.in_snapshot("read the machine's id", read_machine_id)
    }

    /// What the database occupies on disk with its log, in bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Denied`] if the system does not say.
    pub fn size_bytes(&self) -> Result<u64> {
        let denied = |error: std::io::Error| Error::Denied {
            path: self.path.clone(),
            operation: "read the size of the database",
            detail: error.to_string(),
        };
        let file = std::fs::metadata(&self.path).map_err(denied)?.len();
        // The log is not there when nobody writes.
        Ok(file + std::fs::metadata(log_of(&self.path)).map_or(0, |log| log.len()))
    }

    /// A number that differs from before whenever somebody else has changed the database since.
    /// SQLite's `PRAGMA data_version`, <https://www.sqlite.org/pragma.html#pragma_data_version>.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] for a broken file.
    pub fn version(&self) -> Result<i64> {
        self.in_snapshot("read the version of the database", |cx| {
            Ok(cx.pragma_query_value(None, "data_version", |row| row.get(0))?)
        })
    }

    /// Reads as of one moment, however many questions it takes.
    pub(crate) fn in_snapshot<T>(
        &self,
        operation: &'static str,
        read: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<T> {
        let attempt = || {
            let snapshot = self.connection.unchecked_transaction()?;
            read(&snapshot)
        };
        attempt().map_err(|fault: Fault| fault.during(operation, &self.path))
    }
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// Only the conditions that are asked for, so that SQLite finds the index that fits them. Latest first, for `LIMIT`.
fn runs_query(filter: &RunFilter) -> String {
    let conditions = [
        filter.target.as_ref().map(|_| "target.name = ?1"),
        filter.workload.as_ref().map(|_| "run.workload = ?2"),
        filter.since_us.map(|_| "run.started_us >= ?3"),
    ];
    let conditions: Vec<&str> = std::iter::once("1").chain(conditions.into_iter().flatten()).collect();
    let conditions = conditions.join(" AND ");
    format!("{} WHERE {conditions} ORDER BY run.started_us DESC, run.number DESC LIMIT ?4", rows::RUNS)
}

const EVENTS: &str = "SELECT * FROM event WHERE at_us >= ?1 ORDER BY at_us, number";

/// All that a query finds.
pub(crate) fn collect<T>(
    cx: &Connection,
    query: &str,
    values: impl Params,
    read: impl Fn(&Row<'_>) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let mut statement = cx.prepare_cached(query)?;
    let mut rows = statement.query(values)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}

fn stored_target(row: &Row<'_>) -> Result<StoredTarget, Fault> {
    let place = ("target", row.get("number")?);
    let target = Target {
        name: named(row, (place, "name"), |name| name.parse().ok())?,
        path: path_of(row, place, "path")?,
        role: named(row, (place, "role"), Role::from_name)?,
    };
    let runs = row.get::<_, i64>("runs")?.cast_unsigned();
    Ok(StoredTarget { target, added_us: row.get("added_us")?, epoch: row.get("epoch")?, runs })
}

fn stored_epoch(row: &Row<'_>) -> Result<StoredEpoch, Fault> {
    let number = row.get("number")?;
    let Fingerprint { path, protocol, negotiated } = Fingerprint::from_row(row, number)?;
    let target = named(row, (("epoch", number), "target_name"), |name| name.parse().ok())?;
    Ok(StoredEpoch { number, target, opened_us: row.get("opened_us")?, path, protocol, negotiated })
}

pub(crate) fn stored_round(row: &Row<'_>) -> Result<StoredRound, Fault> {
    let number = row.get("number")?;
    let place = ("round", number);
    let round = NewRound {
        started_us: row.get("started_us")?,
        utc_offset_seconds: row.get("utc_offset_seconds")?,
        seed: row.get::<_, i64>("seed")?.cast_unsigned(),
        scale: named(row, (place, "scale"), Scale::from_name)?,
        planned: json_of(row, place, "planned")?,
        scheduled_us: row.get("scheduled_us")?,
        before: optional_json_of(row, place, "before")?,
    };
    let end = match optional_named(row, (place, "status"), RoundStatus::from_name)? {
        Some(status) => Some(RoundEnd {
            status,
            reason: row.get("reason")?,
            ended_us: row.get("ended_us")?,
            after: optional_json_of(row, place, "after")?,
        }),
        None => None,
    };
    Ok(StoredRound { number, round, end })
}

pub(crate) fn stored_event(row: &Row<'_>) -> Result<StoredEvent, Fault> {
    let number = row.get("number")?;
    let place = ("event", number);
    let event = Event {
        target: optional_named(row, (place, "target"), |name| name.parse().ok())?,
        kind: row.get("kind")?,
        detail: json_of(row, place, "detail")?,
        at_us: row.get("at_us")?,
    };
    Ok(StoredEvent { number, event })
}
