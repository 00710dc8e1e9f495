//! Errors of the export and the import.

use std::path::PathBuf;

use longhaul_model::Hint;

/// An error of the export or the import. The text says what failed and in which file; [`Hint`] says what to do
/// next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The export cannot be written.
    #[error("cannot write the export to {to}")]
    Write {
        /// Name of the destination.
        to: String,
        /// The I/O error.
        source: std::io::Error,
    },
    /// The database could not be read.
    #[error(transparent)]
    Store(#[from] longhaul_store::Error),
    /// This program was built without Parquet support.
    #[error("this longhaul was built without Parquet")]
    ParquetDisabled,
    /// The file could not be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// The I/O error.
        source: std::io::Error,
    },
    /// The file is not an archive of runs.
    #[error("{} is not what `longhaul export runs` writes: {why}", path.display())]
    NotAnArchive {
        /// Path of the file.
        path: PathBuf,
        /// The difference to an archive, as the end of the message.
        why: String,
    },
    /// The archive was written by a newer version of longhaul.
    #[error(
        "{} was written by a newer longhaul (schema {found}, this program supports up to {known})",
        path.display()
    )]
    UnsupportedSchema {
        /// Path of the file.
        path: PathBuf,
        /// Schema version of the file.
        found: u64,
        /// Newest schema version that this program reads.
        known: u64,
    },
    /// The file is so damaged that nothing in it can be used.
    #[error("{} is damaged or incomplete ({detail})", path.display())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Description of the damage.
        detail: String,
    },
    /// Two rows have the same kind and number, but different content.
    #[error(
        "{}: {place} {first} and {place} {second} are both {record} {number}, but differ: the file was edited or combined from different exports",
        path.display()
    )]
    ConflictingRows {
        /// Path of the file.
        path: PathBuf,
        /// Kind of both records.
        record: &'static str,
        /// Number of both records.
        number: i64,
        /// Unit of the two positions: `line` or `row`.
        place: &'static str,
        /// Position of the first record, from 1.
        first: u64,
        /// Position of the second record, from 1.
        second: u64,
    },
}

impl Hint for Error {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Store(error) => return error.hint(),
            Self::Read { .. } | Self::NotAnArchive { .. } => return None,
            Self::Write { .. } => {
                "the file is incomplete; free space on the disk or give another `--output FILE`"
            }
            Self::ParquetDisabled => "use `csv` or `json`, or build longhaul with the feature `parquet`",
            Self::UnsupportedSchema { .. } => "update longhaul",
            Self::Damaged { .. } => "export or copy the file again",
            Self::ConflictingRows { .. } => "use each export separately",
        };
        Some(hint.to_owned())
    }
}
