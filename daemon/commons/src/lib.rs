//! Results of many machines: the anonymous file that one machine shares ([`SharedResults`]), the checks of such a file ([`check`]), and
//! what many files say together ([`merge`]).
//!
//! All functions are pure: values in, values out. A file of another user is not trusted: [`read`] refuses what cannot be one,
//! and [`check`] recomputes its figures from its rounds.
//!
//! ```
//! let error = longhaul_commons::read(b"{\"format\":\"longhaul share\",\"schema\":99}", None).unwrap_err();
//! assert!(error.to_string().contains("update longhaul"));
//! ```

mod build;
mod check;
mod family;
mod figures;
mod history;
mod merge;
mod read;
mod share;

#[cfg(test)]
mod tests;

pub use build::{ShareBuilder, ShareFacts, SharedRecords};
pub use check::check;
pub use family::{LinkClass, MachineFamily, NasFamily, NasVendor, ProtocolLabel, RoundTripClass, SystemName};
pub use figures::figures;
pub use history::target_name;
pub use merge::{
    Agreement, GroupKind, MachineRatio, Merged, MergedGroup, MergedPair, MergedResult, RefusedFile,
    SharedFile, merge,
};
pub use read::{MAX_FILE_BYTES, ShareError, read};
pub use share::{
    FORMAT, OTHER, PhaseKey, RoundDesign, SCHEMA, SharedEpoch, SharedFigure, SharedHistogram, SharedPhase,
    SharedResults, SharedRound, SharedRun, machine_label,
};
