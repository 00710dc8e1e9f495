//! The NAS itself: its disks and processors around each run, and the check that it can be read.

mod check;
mod monitor;

pub use check::{NasSample, check_nas, sample};
pub use monitor::{NasMonitor, RUN_LIMIT, ReadingBefore, store_use};
