//! What many runs say. Pure: values in, one serialisable value out.
//!
//! [`summarise`] describes whatever runs there are, figure by figure. [`weekly`] is the only place where a verdict is
//! made, from a [`History`]: the narrow form of everything that is kept, which an export holds as well.

mod before_after;
mod caching;
mod cell;
mod change;
mod classic;
mod comparison;
mod figures;
mod history;
mod journal;
mod minutes;
mod pairing;
mod public;
mod reliability;
mod sampled;
mod samples;
mod scope;
mod scores;
mod sequential;
mod table;
mod verdict;
mod week;
mod weekly;
mod words;

#[cfg(test)]
mod tests;

pub use before_after::{BeforeAfter, DAYS_AROUND, RatioChange, before_after};
pub use caching::{CACHED_SHARE, Caching, LEAST_READINGS, Reread, caching};
pub use change::Change;
pub use classic::{Beforehand, Beside, ClassicSummary, FigureOfRuns, OperationOfRuns, PhaseOfRuns, classic};
pub use comparison::{Comparison, DayRatio, Rounds, Subject};
pub use figures::{FigureSummary, Ratio, Spread, Summary, TargetSummary, WorkloadSummary, summarise};
pub use history::{History, KeptEpoch, KeptRound, KeptRun, KeptTarget, Premises, local_day};
pub use journal::{JournalEntry, one_line};
pub use minutes::MinutesAWeek;
pub use pairing::FEWEST_ROUNDS_A_DAY;
pub use public::{is_private_key, public};
pub use reliability::{Failures, Reliability, ReliabilityVerdict};
pub use sampled::{FELT_MS, Felt, Sampled, WaitedFor, Window, felt, longer_than, sampled};
pub use samples::{LeftOut, Sample};
pub use scope::{CAP_FACTOR, CAP_SECONDS};
pub use scores::{NOT_SMOOTH, Scores, Share};
pub use sequential::{CONFOUNDED, SequentialWeeks, WeekRatio};
pub use table::{EndpointRow, Times, TimesOnTarget};
pub use verdict::{ALPHA, EARLY_DAYS, EARLY_RATIO, Estimate, OPENING_DAYS, UNNOTICED_SECONDS, Verdict};
pub use week::{Week, WeekError, calendar};
pub use weekly::{PairSummary, Question, RoundsOfWeek, TargetLine, Weekly, weekly};
