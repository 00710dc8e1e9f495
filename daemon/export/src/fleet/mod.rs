//! Tables of many machines: one Parquet file for each table, week and machine (docs/fleet/README.md).
//!
//! Weeks are ISO weeks of the local day on which a round started, as in the weekly summary; samples, events and changes made
//! elsewhere count by their day in UTC. The same records always give the same bytes.

mod encode;
mod fleet_table;
mod history_tables;
mod inspect;
mod operations;
mod origin;
mod other_tables;
mod plausible;
mod week;

pub use encode::TableFile;
pub use fleet_table::FleetTable;
pub use inspect::{FileLocation, inspect};
pub use operations::EachOperation;
pub use origin::{FLEET_SCHEMA, Origin};
pub use plausible::{ImplausibleRecords, PlausibleHistory, plausible_history};
pub use week::{Week, WeekRecords, weeks_of};
