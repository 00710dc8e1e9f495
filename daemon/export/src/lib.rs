//! Exports the stored data as CSV, JSON Lines or Parquet files, and imports the archive format.
//!
//! [`runs`] writes the archive: all data that verdicts are computed from, without private data.
//! [`read_history`] reads an archive in any of the three formats, so that every verdict can be recomputed from
//! the file alone. The output of all others is for other programs and cannot be imported.
//!
//! The crate does no I/O except writing to the given `Write` and reading the given database or file. It uses no
//! clock, no system time zone and no network.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use longhaul_export::read_bytes;
//!
//! let error = read_bytes(b"no archive", "file.csv".as_ref()).unwrap_err();
//! assert!(error.to_string().contains("file.csv"), "errors name the file");
//! # Ok(())
//! # }
//! ```

mod archive;
mod checks;
mod error;
mod events;
pub mod fleet;
mod operations;
mod read;
mod runs;
mod table;
mod window;
mod write;

#[cfg(test)]
mod tests;

pub use archive::SCHEMA_VERSION;
pub use checks::{fidelity, freshness, integrity};
pub use error::Error;
pub use events::events;
pub use operations::operations;
pub use read::{ImportedArchive, Skipped, SkippedUnit, read_bytes, read_history};
pub use runs::runs;
pub use window::{Window, WindowError};
pub use write::{Format, Output};
