//! Pure numbers: histograms and quantiles. No clock, no file, no randomness.

mod buckets;
mod histogram;
mod quantile;
mod varint;

pub use buckets::{BUCKETS, bucket_of, upper_bound_ns};
pub(crate) use buckets::{index_of_slot, slot_of};
pub use histogram::{Histogram, HistogramError};
pub use quantile::{P95_NEEDS, median, quantile};
