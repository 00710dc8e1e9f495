//! Prints the table of the days until a difference is claimed.

use longhaul_analysis::simulation::{
    Scenario, World, claims_a_difference, pairs_at_end_of_day, simulate_rounds, simulated_history,
};

use crate::replicate::replicate;
use crate::report::{ONE_TASK, first_comparison, header, is_asked_for, places};

/// Number of simulated days: sixteen weeks.
const DAYS: i64 = 112;
/// Hours from one round to the next, with the rounds of a day that result: the machine sleeps for seven hours of most nights.
const INTERVALS: [(i64, f64); 3] = [(1, 17.0), (2, 8.5), (4, 4.25)];
/// True ratio of the times of the two targets.
const RATIO: f64 = 1.10;

/// Prints the day from the first round on, warm-up included, by which a true difference of 10 % was claimed in half, and in four
/// fifths, of the replicates, if the report is read every evening.
pub fn days_until_claimed(replicates: u64) {
    header(
        "Sixteen weeks: day by which a difference of 10 % was claimed in 50 / 80 % of the replicates",
        &["world, rounds a day", "two targets", "three targets"],
    );
    for world in [World::WIRED, World::TYPICAL, World::ROUGH].into_iter().filter(is_asked_for) {
        for (hours, rounds) in INTERVALS {
            let two = quantiles(replicate(replicates, |seed| {
                first_claim(&world, [0.0, RATIO.ln()], Rounds { hours, seed })
            }));
            let three = quantiles(replicate(replicates, |seed| {
                first_claim(&world, [0.0, RATIO.ln(), 0.0], Rounds { hours, seed })
            }));
            println!("| {}, {rounds} | {two} | {three} |", world.name);
        }
    }
}

/// Rounds of one replicate: the hours from one to the next, and the seed.
struct Rounds {
    hours: i64,
    seed: u64,
}

/// Returns the day on whose evening a difference between the first two targets was claimed first, counted from 1.
fn first_claim<const TARGETS: usize>(
    world: &World,
    ln_ratios: [f64; TARGETS],
    rounds: Rounds,
) -> Option<i64> {
    let scenario = Scenario { days: DAYS, ..Scenario::eight_weeks(ln_ratios) };
    let mut simulated = simulate_rounds(world, &scenario, rounds.seed);
    simulated.retain(|round| round.hour % rounds.hours == 0);
    let history = simulated_history(&simulated, &places(&ONE_TASK));
    let is_claimed = |day: &i64| {
        let pairs = pairs_at_end_of_day(&history, *day, None);
        first_comparison(&pairs).is_some_and(|comparison| claims_a_difference(comparison.verdict))
    };
    (0..DAYS).find(is_claimed).map(|day| day + 1)
}

/// Returns the days by which half and four fifths of the replicates had a claim, as text.
fn quantiles(mut days: Vec<Option<i64>>) -> String {
    days.sort_by_key(|day| day.unwrap_or(i64::MAX));
    let at = |share: usize| days[(days.len() * share).div_ceil(100) - 1];
    [50, 80].map(|share| at(share).map_or(format!("over {DAYS}"), |day| day.to_string())).join(" / ")
}
