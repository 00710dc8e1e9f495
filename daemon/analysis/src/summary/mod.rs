//! Statistics over many runs. All functions are pure: they take values and return one serializable value.
//!
//! [`summarize`] describes any set of runs, figure by figure, and makes no verdict. Verdicts are made only in
//! [`summarize_week`], from a [`History`](longhaul_model::History): the reduced form of all stored data, which an export also contains.

mod before_after;
mod change;
mod comparison;
mod damage;
mod events;
mod freshness;
mod minutes_saved;
mod objection;
mod pair_data;
mod pair_summary;
mod pairing;
mod public_history;
mod recent_days;
mod recent_rounds;
mod recommendation;
mod reliability;
mod replay;
mod round_trips;
mod runs;
mod scores;
mod sequential;
mod so_far;
mod table;
mod verdict;
mod week;
mod weekly;
mod weekly_minutes;
mod window;

#[cfg(test)]
mod tests;

pub use before_after::{BeforeAfter, MAX_DAYS_PER_SIDE, RatioChange, before_after};
pub use change::{ChangePart, LastingChange};
pub use comparison::{Comparison, DayRatio, Subject};
pub use events::{EventLine, event_day};
pub use freshness::{Freshness, KindFreshness, TOLERATED_SHARE, shows_old_state};
pub use minutes_saved::{MinutesSaved, ProfileSource};
pub use objection::{Objection, Withheld};
pub use pair_summary::PairSummary;
pub use pairing::{ComparedRounds, MIN_ROUNDS_PER_DAY};
pub use public_history::{anonymize, is_private_key};
pub use recent_days::UnmeasuredShare;
pub use recent_rounds::{RecentRounds, RoundState, SLOW_FACTOR, recent_rounds};
pub use recommendation::{Confidence, Recommendation};
pub use reliability::{FAILING_ROUNDS, Failures, Reliability, ReliabilityVerdict};
pub use replay::{ReplayFidelity, TargetReplays};
pub use round_trips::{AtRoundTrip, MIN_RATIO_OF_QUARTILES, MIN_SHARE_OF_DAYS, RoundTripUnused, Unadjusted};
pub use runs::{
    CACHED_SHARE, ClientCaching, EpochRun, Excluded, FigureSummary, KnownWorkload, LATENCY_LIMITS_MS,
    LatencyRow, MIN_REREADS, Ratio, SampledWindow, Spread, StallTotals, Summary, TargetSummary,
    WindowSummary, WorkloadSummary, client_caching, count_longer_than, latency_rows, summarize,
    summarize_window,
};
pub use scores::{Proportion, ROUGH_FACTOR, Scores};
pub use sequential::{CONFOUNDING_NOTE, SequentialWeeks, WeekRatio};
pub use so_far::SoFar;
pub use table::{MetricRow, TimeSummary, TimesOnTarget};
pub use verdict::{
    ALPHA, EARLY_VERDICT_DAYS, EARLY_VERDICT_RATIO, INSTANT_SECONDS, MIN_VERDICT_DAYS, RatioEstimate, Verdict,
};
pub use week::{Week, WeekError, date_of_day};
pub use weekly::{RoundsOfWeek, TargetLine, WeeklyQuery, WeeklySummary, pair_verdicts, summarize_week};
pub use weekly_minutes::WeeklyMinutes;
pub use window::{CAP_FACTOR, CAP_SECONDS};
