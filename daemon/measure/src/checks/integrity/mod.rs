//! Integrity of the data on a target: what a damaged file has, compared with what was written.
//!
//! A workload that reads wrong bytes fails. Outside of the timed region, the worker then reads the file again and
//! describes each wrong range.

mod examine;
mod known_content;
mod pattern;
mod write_times;

pub use examine::{
    FileToRead, OtherSandboxRange, ReadFinding, examine_file, fingerprint, read_and_compare, read_elsewhere,
};
pub use known_content::{KnownContent, SeededFile};
pub use pattern::{Compared, WrongRange, wrong_ranges};
pub use write_times::WriteTimes;
