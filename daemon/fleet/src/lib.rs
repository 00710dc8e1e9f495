//! Exports of many machines into one folder or bucket, and checks of such a collection (docs/fleet/README.md).
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use longhaul_fleet::{BucketEnvironment, Collection, MissingCollection, RefusedFiles, check};
//! use longhaul_model::Timestamp;
//!
//! let environment = BucketEnvironment::All;
//! let collection = Collection::open("/Volumes/fleet", None, MissingCollection::Refuse, environment)?;
//! let report = check(&collection, RefusedFiles::Keep, Timestamp::from_us(1_764_000_000_000_000))?;
//! println!("{} files, {} refused", report.files, report.refused.len());
//! # Ok(())
//! # }
//! ```

mod check;
mod error;
mod export;
mod folder;
mod http;
mod layout;
mod location;
mod manifest;
mod runtime;

pub use check::{CheckReport, RefusedFile, RefusedFiles, check};
pub use error::Error;
pub use export::{ExportReport, ExportSettings, WeeksToWrite, export};
pub use layout::{FILE_NAME, FileKey};
pub use location::{BucketEnvironment, Collection, MissingCollection};
