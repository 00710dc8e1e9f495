//! Pure statistics of daily values and of rounds: intervals, tests, change points, pooling over machines. They use no clock and
//! no files; random numbers come from a seed.

mod bisection;
mod bootstrap;
mod change_point;
mod confidence_sequence;
mod discordant;
mod machine_bets;
mod multiple_testing;
mod proportion;
mod random_effects;
mod regression;
mod round_series;
mod steadiness;
mod student;
mod winsorize;

pub(crate) use bisection::bisect;
pub use bootstrap::{Bootstrap, ratio_of_sums};
pub use change_point::{Split, best_split, split_at_event};
pub use confidence_sequence::{AUTOCORRELATION_LIMIT, DaySeries, anytime_valid_half_width, claim_margin};
pub use discordant::{DiscordantEpisodes, count_episodes};
pub use machine_bets::{BET_LIMIT, ln_e_above};
pub use multiple_testing::{e_bh, pairwise_alpha};
pub use proportion::proportion_interval;
pub use random_effects::{MachineEstimate, PooledEstimate, pool};
pub use regression::{BreakEven, CovariateDay, DayRegression};
pub use round_series::{MIN_ROUNDS_SO_FAR, RoundSeries, log_ratio_with_outliers};
pub use steadiness::Steadiness;
pub use student::student_critical;
