//! Quoted benchmark tools as data, and the engine that runs them as workloads.
//!
//! A [`profile`] describes a task in TOML. A [`Preset`] is a profile that runs as a workload: it uses the same
//! timed file operations, sandbox, caps and verification as every other workload. [`presets`] are bundled;
//! [`Preset::custom`] runs a profile that a user wrote. [`catalog`] lists all workloads for the worker.
//! [`preset_summary`] computes the figures that the original tool prints, and [`published_figures`] are those that
//! others published.
//!
//! ```
//! use longhaul_presets::profile::Profile;
//!
//! let profile = Profile::parse(
//!     r#"
//! summary = "reads four small files"
//! [files.notes]
//! count = 4
//! size = "4 KiB"
//! [[phase]]
//! name = "read"
//! [[phase.work]]
//! files = "notes"
//! steps = [{ do = "read", amount = "file" }]
//! "#,
//! )?;
//! assert_eq!(profile.cost().bytes_read, 4 * 4096);
//! # Ok::<(), longhaul_presets::profile::ProfileError>(())
//! ```

mod catalog;
mod content_mode;
mod custom;
mod engine;
mod preset;
pub mod profile;
mod published;
mod summary;

pub use catalog::catalog;
pub use content_mode::{AS_ORIGINAL_SUFFIX, ContentMode};
pub use preset::{Preset, preset, presets, profile_source};
pub use published::{PublishedFigure, published_figures};
pub use summary::{
    OperationSummary, PhaseSummary, PresetFigure, PresetSummary, PublishedComparison, PublishedMode,
    preset_summary,
};
