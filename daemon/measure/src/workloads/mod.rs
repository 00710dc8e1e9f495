//! The workloads: everyday tasks that are replayed on a target. Each has its own module and an entry in
//! [`WORKLOADS`].
//!
//! To add a workload, write its module and add it to the table. Lists, configuration and tests are derived from the
//! table. A program passes a [`Catalog`] of all its workloads to the worker; the catalog can have
//! workloads of other crates.

mod catalog;
pub(crate) mod folder_index;
pub(crate) mod incremental_backup;
mod job;
mod leftovers;
mod listings;
pub(crate) mod photo_batch;
mod read_back;
mod settings;
mod time_machine;
mod workload;
pub(crate) mod your_day;

pub use catalog::{Catalog, WORKLOADS};
pub use job::Job;
pub use leftovers::{create_or_replace, unlink_leftover};
pub use listings::{change_for_a_moment, evict_listings};
pub use read_back::{READ_BACK, last_good};
pub use settings::{Settings, SliceSelection};
pub use workload::{ContentLookup, Workload};
pub use your_day::replay_plan;
