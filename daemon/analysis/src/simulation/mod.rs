//! Simulates weeks of rounds with a known truth, to test the statistics (docs/methodology.md#simulation).
//!
//! This module is not part of the product: it is compiled for tests, examples and benchmarks only. All results follow
//! from a seed. The noise is assumed, not measured; the four worlds bracket what is plausible between a cable and
//! crowded Wi-Fi. Most of their parameters are those of docs/methodology.md#the-study-of-designs. The gusts and the
//! length of hangs were chosen here, so that daily medians scatter as in the study: by 0.044, 0.081, 0.166 (wired,
//! typical, rough).

mod error_rates;
mod history;
mod noise;
mod round_trip;
mod rounds;
mod slow_calls;

pub use error_rates::{
    ErrorRates, IntervalAtDay, IntervalAtRound, daily_intervals, day_medians, intervals_after_rounds,
    normal_days,
};
pub use history::{
    add_event, claims_a_difference, pairs_at_end_of_day, simulated_history, verdict_with_interval,
    weekly_at_end_of_day,
};
pub use round_trip::RoundTripWander;
pub use rounds::{CAP_SECONDS, Scenario, SimulatedRound, UNDISTURBED_SECONDS, World, simulate_rounds};
pub use slow_calls::{Injection, simulated_observations};
