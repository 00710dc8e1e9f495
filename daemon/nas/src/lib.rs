//! Reads the disk and processor use of a NAS from the NAS itself, without changing anything on it: over SNMP, from a
//! node_exporter, or with the system's `ssh` from `/proc`.
//!
//! A NAS is not trusted: each reading has a limit of time and of bytes, answers of other hosts are dropped, and every
//! kind of failure has its [`NasProblem`](longhaul_model::NasProblem). Secrets are read from a file or an environment
//! variable for each reading; nothing here prints them.
//!
//! ```
//! use longhaul_model::NasUse;
//! use longhaul_nas::parse::proc_files;
//! use std::time::Duration;
//!
//! let before = proc_files::read(b"cpu 10 0 0 90 0 0 0 0\n8 0 sda 1 0 8 1 0 0 0 0 0 1000 0\n").unwrap();
//! let after = proc_files::read(b"cpu 30 0 0 170 0 0 0 0\n8 0 sda 9 0 8 1 0 0 0 0 0 1250 0\n").unwrap();
//! let found = NasUse::between(&before, &after, Duration::from_secs(1)).unwrap();
//! assert_eq!(found.processor_share, Some(0.2));
//! assert_eq!(found.busiest_disk().unwrap().busy_share, Some(0.25));
//! ```

mod error;
mod node_exporter;
pub mod parse;
mod reader;
mod settings;
mod snmp;
mod ssh;

pub use async_snmp::{AuthProtocol, PrivProtocol};
pub use error::NasError;
pub use reader::{NasReader, TimedReading, read};
pub use settings::{
    NasSettings, NasSource, SNMP_AUTHENTICATIONS, SNMP_ENCRYPTIONS, SNMP_PORT, SnmpAccess, SnmpSettings,
    SnmpUser,
};

/// Largest number of disks, partitions included, that a NAS may have.
pub const MAX_DISKS: usize = 1024;
