//! Errors of the store. Each of them knows the next step for the user.

use std::path::{Path, PathBuf};

use longhaul_model::{Hint, Protocol};
use rusqlite::ErrorCode;
use rusqlite::ffi::{SQLITE_IOERR_SHMSIZE, SQLITE_IOERR_WRITE};

/// Result type of the store.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the store. The text says what failed and in which file; [`Hint`] says what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The database does not exist: nothing has been measured yet, or the path is wrong.
    #[error("there is no database yet at {}", path.display())]
    NoDatabase {
        /// Path of the database.
        path: PathBuf,
    },
    /// The database has no tables, although its file has content.
    #[error("the database {} has no tables: it may be a copy without the file `{}-wal`", path.display(), file_name(path))]
    Incomplete {
        /// Path of the database.
        path: PathBuf,
    },
    /// The database path is on a network or FUSE file system, or at an automount.
    #[error(
        "the database cannot be stored at {}: that path is on {file_system}, but SQLite is reliable only on a local disk",
        path.display()
    )]
    NotLocal {
        /// Path of the database.
        path: PathBuf,
        /// Type of the file system.
        file_system: String,
    },
    /// The database was written by a newer version of longhaul.
    #[error(
        "the database {} was written by a newer longhaul (schema {found}, this program supports up to {known}); nothing was changed",
        path.display()
    )]
    SchemaTooNew {
        /// Path of the database.
        path: PathBuf,
        /// Schema version of the database.
        found: i64,
        /// Newest schema version that this program supports.
        known: i64,
    },
    /// The database was written by an older version of longhaul and must be migrated first. A reader cannot
    /// migrate it.
    #[error(
        "the database {} was last written by an older longhaul (schema {found}, this program needs {known})",
        path.display()
    )]
    SchemaTooOld {
        /// Path of the database.
        path: PathBuf,
        /// Schema version of the database.
        found: i64,
        /// Schema version that this program reads.
        known: i64,
    },
    /// The file is an SQLite database of another program.
    #[error(
        "{} is an SQLite database, but not a longhaul database; nothing was changed",
        path.display()
    )]
    Foreign {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file is damaged or is not an SQLite database.
    #[error(
        "the database {} is damaged or not a database ({operation}: {detail})",
        path.display()
    )]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Operation that failed, as a verb phrase.
        operation: &'static str,
        /// Error message of SQLite.
        detail: String,
    },
    /// A row holds a value that this version does not know.
    #[error(
        "cannot {operation} in {}: `{column}` in row {row} of table `{table}` holds `{value}`, which this version of longhaul does not know; the rest of the database is fine",
        path.display()
    )]
    InvalidValue {
        /// Path of the database.
        path: PathBuf,
        /// Operation that failed, as a verb phrase.
        operation: &'static str,
        /// Name of the table.
        table: &'static str,
        /// Number of the row.
        row: i64,
        /// Name of the column.
        column: &'static str,
        /// The unknown value.
        value: String,
    },
    /// Another process held a lock on the database for longer than the busy timeout.
    #[error(
        "cannot {operation}: another program holds a lock on {}; nothing was changed",
        path.display()
    )]
    Locked {
        /// Path of the database.
        path: PathBuf,
        /// Operation that failed, as a verb phrase.
        operation: &'static str,
    },
    /// The disk is full.
    #[error(
        "cannot {operation}: the disk under {} is full; everything stored before is safe",
        path.display()
    )]
    DiskFull {
        /// Path of the database.
        path: PathBuf,
        /// Operation that failed, as a verb phrase.
        operation: &'static str,
    },
    /// The user has no access to the file or folder.
    #[error(
        "cannot {operation}: no access to {} ({detail})",
        path.display()
    )]
    PermissionDenied {
        /// Path of the file or folder.
        path: PathBuf,
        /// Operation that failed, as a verb phrase.
        operation: &'static str,
        /// Error message of the operating system.
        detail: String,
    },
    /// Any other SQLite error.
    #[error("cannot {operation} in {}", path.display())]
    Sqlite {
        /// Path of the database.
        path: PathBuf,
        /// Operation that failed, as a verb phrase.
        operation: &'static str,
        /// Error of SQLite.
        source: rusqlite::Error,
    },
    /// The round does not exist, or it has already ended.
    #[error("cannot {operation}: round {round} in {} does not exist or has already ended", path.display())]
    NoSuchRound {
        /// Path of the database.
        path: PathBuf,
        /// Operation that failed, as a verb phrase.
        operation: &'static str,
        /// Number of the round.
        round: i64,
    },
    /// The data contradict each other or contain a value that cannot be stored, such as NaN. This is a bug in
    /// longhaul.
    #[error("cannot {operation} in {}: {what}; this is a bug in longhaul", path.display())]
    Unstorable {
        /// Path of the database.
        path: PathBuf,
        /// Operation that failed, as a verb phrase.
        operation: &'static str,
        /// Description of the problem.
        what: String,
    },
    /// The writer thread has ended.
    #[error("the database writer has stopped and nothing more can be stored")]
    WriterStopped,
}

impl Error {
    /// Returns true if the failed call changed nothing and may succeed when it is retried.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Locked { .. } | Self::DiskFull { .. } => true,
            // SQLite reports a user's exceeded quota so (`unixWrite` in os_unix.c knows ENOSPC only).
            Self::Sqlite { source, .. } => {
                source.sqlite_error().is_some_and(|failure| failure.extended_code == SQLITE_IOERR_WRITE)
            }
            _ => false,
        }
    }
}

/// Returns whether a folder was given in place of a database.
fn is_folder(path: &Path, operation: &str) -> bool {
    operation.starts_with("open the database") && path.is_dir()
}

fn file_name(path: &Path) -> std::borrow::Cow<'_, str> {
    path.file_name().unwrap_or_default().to_string_lossy()
}

impl Error {
    /// Returns whether the database is at an idle automount: the next access may mount a local disk there.
    pub fn is_at_automount(&self) -> bool {
        matches!(self, Self::NotLocal { file_system, .. } if Protocol::Other(file_system.clone()).is_automount())
    }
}

impl Hint for Error {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NoDatabase { .. } => {
                "`longhaul init` chooses what to compare; `longhaul try` measures at once"
            }
            Self::Incomplete { .. } => {
                "copy that file as well, or make copies with `sqlite3 DATABASE \".backup COPY\"`"
            }
            Self::NotLocal { .. } if self.is_at_automount() => {
                "open that folder once, so that its disk is mounted, and try again; or give `--database PATH` on a local disk"
            }
            Self::NotLocal { .. } => "give `--database PATH` on a local disk",
            Self::SchemaTooNew { .. } => "update longhaul, or give another `--database PATH`",
            Self::SchemaTooOld { .. } => "`longhaul run` or `longhaul service start` brings it up to date",
            Self::Foreign { .. } => "give another `--database PATH`",
            Self::Damaged { .. } => {
                "move it aside and longhaul will create a new one; most data in the old file can often be recovered \
                 with `sqlite3 OLD .recover`"
            }
            Self::InvalidValue { .. } => "update longhaul, or correct that row",
            Self::Locked { path, .. } => {
                return Some(format!(
                    "close the program that has the database open (`lsof {}` lists it), then try again",
                    path.display()
                ));
            }
            Self::DiskFull { .. } => "free space on that disk, then try again",
            Self::PermissionDenied { path, operation, .. } if is_folder(path, operation) => {
                "give a file, not a folder"
            }
            Self::PermissionDenied { .. } => {
                "check that its folder exists and that you can read and write it, or give another `--database PATH`"
            }
            Self::Sqlite { .. } => {
                "everything stored before is safe; check your quota on that disk and its health, and report the error if it persists"
            }
            Self::NoSuchRound { .. } => "start a new round",
            Self::Unstorable { .. } => "please report it",
            Self::WriterStopped => "restart the longhaul service",
        };
        Some(hint.to_owned())
    }
}

/// An error without the path of the database and the operation; [`Fault::into_error`] adds both.
#[derive(Debug)]
pub(crate) enum Fault {
    Sqlite(rusqlite::Error),
    InvalidValue { table: &'static str, row: i64, column: &'static str, value: String },
    NoSuchRound(i64),
    Unstorable(String),
}

impl From<rusqlite::Error> for Fault {
    fn from(source: rusqlite::Error) -> Self {
        Self::Sqlite(match source {
            // Without the statement: that of a migration has hundreds of lines.
            rusqlite::Error::SqlInputError { error, msg, .. } => {
                rusqlite::Error::SqliteFailure(error, Some(msg))
            }
            other => other,
        })
    }
}

impl Fault {
    /// Returns the error for a value that cannot be serialized to JSON.
    pub(crate) fn json(source: serde_json::Error) -> Self {
        Self::Unstorable(format!("a value cannot be written as JSON ({source})"))
    }

    /// Converts to an [`Error`] by adding the operation and the path of the database.
    pub(crate) fn into_error(self, operation: &'static str, path: &Path) -> Error {
        let path = path.to_owned();
        match self {
            Self::Sqlite(source) => sqlite_error(source, operation, path),
            Self::InvalidValue { table, row, column, value } => {
                Error::InvalidValue { path, operation, table, row, column, value }
            }
            Self::NoSuchRound(round) => Error::NoSuchRound { path, operation, round },
            Self::Unstorable(what) => Error::Unstorable { path, operation, what },
        }
    }
}

/// Maps an SQLite error to the [`Error`] variant whose message names the right next step.
fn sqlite_error(source: rusqlite::Error, operation: &'static str, path: PathBuf) -> Error {
    let detail = source.to_string();
    let Some(failure) = source.sqlite_error() else {
        return if is_unreadable(&source) {
            Error::Damaged { path, operation, detail }
        } else {
            Error::Sqlite { path, operation, source }
        };
    };
    match failure.code {
        ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt => Error::Damaged { path, operation, detail },
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Error::Locked { path, operation },
        ErrorCode::DiskFull => Error::DiskFull { path, operation },
        // SQLite reports ENOSPC as `DiskFull`, except when it cannot grow the shared-memory index of its
        // write-ahead log.
        ErrorCode::SystemIoFailure if failure.extended_code == SQLITE_IOERR_SHMSIZE => {
            Error::DiskFull { path, operation }
        }
        ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly => {
            Error::PermissionDenied { path, operation, detail }
        }
        _ => Error::Sqlite { path, operation, source },
    }
}

/// Returns true if a column holds a value of a type that longhaul's STRICT tables cannot contain, so the file
/// is damaged.
fn is_unreadable(source: &rusqlite::Error) -> bool {
    matches!(
        source,
        rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..)
    )
}
