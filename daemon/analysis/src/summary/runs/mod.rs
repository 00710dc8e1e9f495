//! Describes runs and samples figure by figure, without a verdict.

mod caching;
mod figures;
mod latency;
mod run_selection;

pub use caching::{CACHED_SHARE, ClientCaching, MIN_REREADS, client_caching};
pub use figures::{
    FigureSummary, KnownWorkload, Ratio, Spread, Summary, TargetSummary, WorkloadSummary, summarize,
};
pub use latency::{
    LATENCY_LIMITS_MS, LatencyRow, SampledWindow, StallTotals, WindowSummary, count_longer_than,
    latency_rows, summarize_window,
};
pub use run_selection::{EpochRun, Excluded};
pub(super) use run_selection::{OLDER_EPOCH, OTHER_SCALE, VOID_ROUNDS, exclude};
