//! What many runs say. Pure: values in, one serialisable value out.
//!
//! [`summarise`] describes whatever runs there are, figure by figure. [`weekly`] is the only place where a verdict is
//! made, from a [`History`]: the narrow form of everything that is kept, which an export holds as well.

mod figures;
mod history;
mod public;

pub use figures::{
    FigureSummary, LeftOut, Ratio, Sample, Spread, Summary, TargetSummary, WorkloadSummary, summarise,
};
pub use history::{History, KeptEpoch, KeptRound, KeptRun, KeptTarget, Premises};
pub use public::public;
