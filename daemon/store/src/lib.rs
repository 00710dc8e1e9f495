//! Stores measurements in one append-only SQLite file with one writer and any number of read-only readers.
//!
//! A run is stored in one transaction and acknowledged only after it is on disk. After a crash of the process
//! or the machine, every acknowledged run is therefore complete in the database, and no run is stored
//! partially.
//!
//! [`Store::open`] creates or opens the file, [`Writer`] takes ownership of the [`Store`], and [`Reader`] reads
//! at the same time.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use longhaul_store::{Reader, Store};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("longhaul.sqlite");
//! drop(Store::open(&path, &[])?);
//! assert!(Reader::open(&path)?.rounds()?.is_empty());
//! # Ok(())
//! # }
//! ```

mod bulk;
mod calls;
mod checks;
mod epochs;
mod error;
mod events;
mod history;
mod host;
mod insert;
mod location;
mod migrations;
mod nas;
mod notifications;
mod operations;
mod outbox;
mod path_value;
mod read_samples;
mod reader;
mod request_times;
mod rows;
mod runs;
mod samples;
mod schedule;
mod store;
mod usage;
mod wire;
mod writer;

#[cfg(test)]
mod tests;

pub use bulk::Bulk;
pub use error::{Error, Result};
pub use host::OTHER_COMPUTER_EVENT;
pub use insert::CALL_RETENTION_DAYS;
pub use location::{check_database_location, create_database_folder};
pub use longhaul_model::stored::{
    FreeSpace, NewRound, PlannedRun, RoundCounts, RoundEnd, RunFilter, StoredCalls, StoredEpoch, StoredEvent,
    StoredOperation, StoredRound, StoredRun, StoredTarget, VerifiedRun,
};
pub use longhaul_model::{Event, RoundStatus};
pub use migrations::APPLICATION_ID;
pub use notifications::{
    ChannelCounts, NewNotification, NotificationBatch, NotificationStatus, QueuedNotification, StateChange,
};
pub use outbox::{DeliveryStatus, FinishedRound, OutboxStatus, Rejection, SampledStep, Signal};
pub use read_samples::SampleFilter;
pub use reader::Reader;
pub use samples::Samples;
pub use schedule::PREPARATION_EVENT;
pub use store::{Store, database_bytes, has_sqlite_header, wal_files};
pub use usage::TaskRequests;
pub use writer::{SharedWriter, Writer};
