//! Pure numbers: histograms, quantiles, and what may be said of days. No clock, no file; randomness is a seed.

mod bootstrap;
mod buckets;
mod change;
mod discordant;
mod gamma;
mod histogram;
mod multiple;
mod quantile;
mod sequential;
mod steady;
mod student;
pub(crate) mod varint;
mod weeks;

pub use bootstrap::{Bootstrap, ratio_of_sums};
pub use buckets::{BUCKETS, bucket_of, upper_bound_ns};
pub(crate) use buckets::{index_of_slot, slot_of};
pub use change::{Split, best_split, split_at_event};
pub use discordant::{Discordant, episodes, ln_e_discordant};
pub use histogram::{Histogram, HistogramError};
pub use multiple::{e_bh, pairwise_alpha};
pub use quantile::{P95_NEEDS, carries_quantile, median, quantile};
pub use sequential::{DaySeries, HORIZON, avt_half};
pub use steady::Steadiness;
pub use student::{student_critical, student_tails};
pub use weeks::{WEEK_PAIRS_NEEDED, week_pairs_half};
