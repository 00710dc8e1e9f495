//! What can go wrong between a value and a file.

use std::path::PathBuf;

/// What went wrong, what it means and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be written.
    #[error(
        "cannot write the export to {to}: {source}; what is there is incomplete: make room or give another `--output FILE`"
    )]
    Write {
        /// Where it was going.
        to: String,
        /// Why not.
        source: std::io::Error,
    },
    /// The database cannot be read.
    #[error(transparent)]
    Store(#[from] longhaul_store::Error),
    /// This program was built without Parquet.
    #[error(
        "this longhaul was built without Parquet: use `csv` or `json`, or build it with the feature `parquet`"
    )]
    WithoutParquet,
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Not an archive of runs.
    #[error("{} is not what `longhaul export runs` writes: {why}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// By what that is seen.
        why: String,
    },
    /// Written by a newer longhaul.
    #[error(
        "{} was written by a newer longhaul (its schema is {found}, this program reads up to {known}): update longhaul",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: u64,
        /// The newest schema that this program reads.
        known: u64,
    },
    /// Broken, and nothing in it can be relied on.
    #[error("{} is damaged or was cut short ({detail}): export or copy it again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// Two rows say that they are the same thing, and differ.
    #[error(
        "{}: {place} {first} and {place} {second} are both {record} {number}, and differ: the file was put together from different exports or edited; use each export by itself",
        path.display()
    )]
    Contradiction {
        /// The file.
        path: PathBuf,
        /// The kind of record.
        record: &'static str,
        /// Their number.
        number: i64,
        /// What the two places are counted in: `line` or `row`.
        place: &'static str,
        /// Where the first is, from 1.
        first: u64,
        /// Where the second is.
        second: u64,
    },
}
