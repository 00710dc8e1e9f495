//! Profiles: tasks that are described as data, in TOML. A profile has sets of files, and phases in which threads
//! repeat steps on these files.
//!
//! ```toml
//! summary = "one line: what it replays"
//!
//! [files.mail]              # a set of files, created before the phases start
//! count = 1000
//! size = "16 KiB"           # or ["2 MB", "1 GB"], { from = 1024, to = 32767 }, { mean = "128 KiB", shape = 1.5 }, "home"
//!
//! [[phase]]
//! name = "deliver"
//!
//! [[phase.work]]            # a group of threads that repeat the same steps
//! files = "mail"
//! threads = 16
//! seconds = 10              # or `times = 500`; with neither, once for each file
//! steps = [
//!   { do = "open", pick = "random" },
//!   { do = "read", amount = "file", block = "1 MiB" },
//!   { do = "close" },
//! ]
//! ```
//!
//! [`Profile::parse`] checks every name, unit and number in a profile. [`ProfileCost`] is an estimate of the
//! bytes, calls and seconds of a run.

mod bytes;
mod check;
mod cost;
mod parse;
mod printed_figure;
mod schema;
mod size;
mod step;
#[cfg(test)]
mod tests;

pub use bytes::ByteSize;
pub(crate) use check::is_valid_name;
pub use cost::ProfileCost;
pub use parse::ProfileError;
pub use printed_figure::{FigureSource, PrintUnit, PrintedFigure, Statistic};
pub use schema::{
    Analysis, Divisors, FileSet, FileSharing, NamePattern, Phase, Profile, Program, StepChoice, ThreadGroup,
};
pub use size::Size;
pub use step::{Action, Amount, BlockPosition, FileChoice, Step};
