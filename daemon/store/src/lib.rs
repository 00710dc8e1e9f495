//! Keeps what was measured: one SQLite file, append-only, one writer, any number of read-only readers.
//!
//! A run is acknowledged only when it is on disk, all of it in one transaction; so whatever happens to the process,
//! the machine or the disk, every acknowledged run is there and no run is there in part.
//!
//! [`Store::open`] makes or opens the file, [`Writer`] owns it from then on, [`Reader`] reads beside it.

mod bulk;
mod calls;
mod epochs;
mod error;
mod history;
mod insert;
mod location;
mod migrations;
mod names;
mod open;
mod operations;
mod outbox;
mod read_samples;
mod reader;
mod records;
mod rows;
mod samples;
mod schedule;
mod wire;
mod writer;

#[cfg(test)]
mod tests;

pub use bulk::Bulk;
pub use error::{Error, Result};
pub use insert::CALLS_KEPT_DAYS;
pub use longhaul_measure::model::{Event, RoundStatus};
pub use open::Store;
pub use outbox::{Fate, FinishedRound, Outbox, Rejection, SampledStep, Signal};
pub use read_samples::SampleFilter;
pub use reader::Reader;
pub use records::{
    NewRound, Planned, Room, RoundCounts, RoundEnd, RunFilter, StoredCalls, StoredEpoch, StoredEvent,
    StoredOperation, StoredRound, StoredRun, StoredTarget,
};
pub use samples::Samples;
pub use schedule::PREPARED;
pub use writer::{SharedWriter, Writer};
