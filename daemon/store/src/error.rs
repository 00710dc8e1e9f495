//! What can go wrong with the database, and the way out of it.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;

/// The result of everything that the store does.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, what it means and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing has been measured on this machine, or the path is another.
    #[error("there is no database yet at {}: run `longhaul try` or `longhaul run` to make one", path.display())]
    NoDatabase {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The folder is not on a local disk.
    #[error(
        "the database cannot be kept at {}: that is on {file_system}, and SQLite needs a local disk to keep its promises; give `--database PATH` on a local disk",
        path.display()
    )]
    NotLocal {
        /// Where it was to be.
        path: PathBuf,
        /// The type of the file system.
        file_system: String,
    },
    /// The schema is newer than this program knows.
    #[error(
        "the database {} was written by a newer longhaul (its schema is {found}, this program knows up to {known}); it was left alone: update longhaul, or give another `--database PATH`",
        path.display()
    )]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// The newest schema that this program knows.
        known: i64,
    },
    /// The schema is older than this program reads, and a reader changes nothing.
    #[error(
        "the database {} was last written by an older longhaul (its schema is {found}, this program reads {known}): start the longhaul service once to bring it up to date",
        path.display()
    )]
    Older {
        /// The database.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// The schema that this program reads.
        known: i64,
    },
    /// A SQLite database of another program.
    #[error(
        "{} is a SQLite database, but not one of longhaul's; it was left alone: give another `--database PATH`",
        path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Not a database, or a broken one.
    #[error(
        "the database {} is damaged or not a database ({operation}: {detail}): move it aside and longhaul will begin a new one; what is in the old one can often be saved with `sqlite3 OLD .recover`",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was being done.
        operation: &'static str,
        /// What SQLite says.
        detail: String,
    },
    /// A row holds something that this program does not know.
    #[error(
        "cannot {operation} in {}: `{column}` in row {row} of table `{table}` holds `{value}`, which this longhaul does not understand; the rest of the database is fine: update longhaul, or correct that row",
        path.display()
    )]
    Row {
        /// The database.
        path: PathBuf,
        /// What was being done.
        operation: &'static str,
        /// The table.
        table: &'static str,
        /// The row's number.
        row: i64,
        /// The column.
        column: &'static str,
        /// What it holds.
        value: String,
    },
    /// Another process kept the database locked for longer than the store waits.
    #[error(
        "cannot {operation}: another program holds a lock on {}; nothing was changed and it can be tried again: close whatever has the database open (`lsof {}` names it)",
        path.display(), path.display()
    )]
    Locked {
        /// The database.
        path: PathBuf,
        /// What was being done.
        operation: &'static str,
    },
    /// There is no room.
    #[error(
        "cannot {operation}: the disk under {} is full; what was stored before is safe and it can be tried again: make room on that disk",
        path.display()
    )]
    Full {
        /// The database.
        path: PathBuf,
        /// What was being done.
        operation: &'static str,
    },
    /// The system does not let this user at the file or folder.
    #[error(
        "cannot {operation}: no access to {} ({detail}): check that its folder exists and that you may read and write in it, or give another `--database PATH`",
        path.display()
    )]
    Denied {
        /// The file or folder.
        path: PathBuf,
        /// What was being done.
        operation: &'static str,
        /// What the system says.
        detail: String,
    },
    /// Anything else that SQLite reports.
    #[error("cannot {operation} in {} ({source}); what was stored before is safe: look at the disk's health, and report it if it goes on", path.display())]
    Engine {
        /// The database.
        path: PathBuf,
        /// What was being done.
        operation: &'static str,
        /// What SQLite says.
        source: rusqlite::Error,
    },
    /// There is no such round, or it has ended already.
    #[error("cannot {operation}: {} has no round {round} for it, or that round has ended; begin a new round", path.display())]
    NoSuchRound {
        /// The database.
        path: PathBuf,
        /// What was being done.
        operation: &'static str,
        /// The round's number.
        round: i64,
    },
    /// A run that contradicts itself, or holds what cannot be stored: a defect of longhaul.
    #[error("cannot {operation} in {}: {what}; this is a defect of longhaul, please report it", path.display())]
    Unstorable {
        /// The database.
        path: PathBuf,
        /// What was being done.
        operation: &'static str,
        /// What is wrong with it.
        what: String,
    },
    /// The thread that writes is gone.
    #[error("the database writer has stopped and nothing more can be stored: restart the longhaul service")]
    WriterStopped,
}

impl Error {
    /// Whether the same call may succeed later, without anything having been changed by this one.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Locked { .. } | Self::Full { .. })
    }
}

/// A failure that does not yet know which database it is about.
#[derive(Debug)]
pub(crate) enum Fault {
    Engine(rusqlite::Error),
    Row { table: &'static str, row: i64, column: &'static str, value: String },
    NoSuchRound(i64),
    Unstorable(String),
}

impl From<rusqlite::Error> for Fault {
    fn from(source: rusqlite::Error) -> Self {
        Self::Engine(source)
    }
}

impl Fault {
    /// The failure of a JSON value to become text.
    pub(crate) fn json(source: serde_json::Error) -> Self {
        Self::Unstorable(format!("a value does not fit into JSON ({source})"))
    }

    /// The error for people: what was being done, to which database.
    pub(crate) fn during(self, operation: &'static str, path: &Path) -> Error {
        let path = path.to_owned();
        match self {
            Self::Engine(source) => engine_error(source, operation, path),
            Self::Row { table, row, column, value } => {
                Error::Row { path, operation, table, row, column, value }
            }
            Self::NoSuchRound(round) => Error::NoSuchRound { path, operation, round },
            Self::Unstorable(what) => Error::Unstorable { path, operation, what },
        }
    }
}

/// Sorts what SQLite reports by what a person can do about it.
fn engine_error(source: rusqlite::Error, operation: &'static str, path: PathBuf) -> Error {
    let detail = source.to_string();
    let Some(failure) = source.sqlite_error() else {
        return if is_unreadable(&source) {
            Error::Damaged { path, operation, detail }
        } else {
            Error::Engine { path, operation, source }
        };
    };
    match failure.code {
        ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt => Error::Damaged { path, operation, detail },
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Error::Locked { path, operation },
        ErrorCode::DiskFull => Error::Full { path, operation },
        // SQLite reports ENOSPC as `DiskFull` except where it cannot enlarge the shared index of its log.
        ErrorCode::SystemIoFailure if failure.extended_code == SQLITE_IOERR_SHMSIZE => {
            Error::Full { path, operation }
        }
        ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly => {
            Error::Denied { path, operation, detail }
        }
        _ => Error::Engine { path, operation, source },
    }
}

/// Whether a column holds what a STRICT table of ours cannot hold.
fn is_unreadable(source: &rusqlite::Error) -> bool {
    matches!(
        source,
        rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..)
    )
}
