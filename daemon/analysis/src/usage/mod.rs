//! The usage profile: how often a week a user does what, as given in the configuration or counted on the mounts
//! (docs/methodology.md#usage).

mod counted;
mod profile;

pub use counted::{CountedUsage, MAX_WEEKS, MIN_DAYS, TargetUsage, UsageInput, count_usage};
pub use profile::{LineSource, NotCounted, UsageLine, UsageProfile, usage_profile};
