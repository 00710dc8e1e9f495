//! Error rates and power of merging, over simulated machines (docs/validation/merge.md).

use longhaul_analysis::stats::{DaySeries, MachineEstimate, ln_e_above, pool};
use longhaul_model::draw::draw;

/// Machines that are merged one after the other.
const MACHINES: usize = 300;
/// Standard deviation of the daily log ratios of a machine: typical Wi-Fi (docs/methodology.md#simulation).
const DAILY_DEVIATION: f64 = 0.081;

/// True log ratios of machines.
#[derive(Clone, Copy)]
struct Population {
    mean: f64,
    between: f64,
}

fn uniform(seed: u64, stream: u64) -> f64 {
    ((draw(seed, stream, 0) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// Returns a normal number, by Box and Muller.
fn normal(seed: u64, stream: u64) -> f64 {
    (-2.0 * uniform(seed, 2 * stream).ln()).sqrt()
        * (std::f64::consts::TAU * uniform(seed, 2 * stream + 1)).cos()
}

/// Returns the days of a machine: from 14 to 56 of them.
fn machine(population: Population, seed: u64) -> DaySeries {
    let truth = population.mean + population.between * normal(seed, 1);
    let count = 14 + (uniform(seed, 900) * 43.0) as i64;
    let days: Vec<(i64, f64)> =
        (0..count).map(|day| (day, truth + DAILY_DEVIATION * normal(seed, 10 + day as u64))).collect();
    DaySeries::from_days(&days).unwrap()
}

/// Results of one replicate: the number of machines at which a statement was first made, and the coverage at the end.
struct Replicate {
    machines_shown: Option<usize>,
    all_in_shown: Option<usize>,
    covers: bool,
}

fn replicate(population: Population, machines: usize, seed: u64) -> Replicate {
    let series: Vec<DaySeries> =
        (0..machines as u64).map(|number| machine(population, draw(seed, 77, number))).collect();
    let ratios: Vec<f64> = series.iter().map(DaySeries::mean).collect();
    let bound = 20f64.ln();
    let evidence = |count: usize, sign: f64| ln_e_above(ratios[..count].iter().map(|ratio| ratio * sign));
    let shown = (1..=machines).find(|count| evidence(*count, 1.0).max(evidence(*count, -1.0)) >= bound);
    let mut sum = 0.0;
    let all_in = series.iter().position(|one| {
        sum += one.ln_e_value();
        sum >= bound
    });
    let estimates: Vec<MachineEstimate> = series
        .iter()
        .map(|one| MachineEstimate {
            value: one.mean(),
            variance: one.variance() * one.variance_inflation() / (one.days() as f64 - 1.0),
        })
        .collect();
    let pooled = pool(&estimates, 0.05).unwrap();
    Replicate {
        machines_shown: shown,
        all_in_shown: all_in.map(|index| index + 1),
        covers: (pooled.mean - population.mean).abs() <= pooled.half_width,
    }
}

/// Shares of replicates, and the median number of machines.
struct Rates {
    shown: f64,
    all_in: f64,
    covers: f64,
    median_machines: Option<usize>,
}

fn rates(population: Population, machines: usize, replicates: u64) -> Rates {
    let all: Vec<Replicate> =
        (0..replicates).map(|seed| replicate(population, machines, draw(5, 5, seed))).collect();
    let share = |holds: &dyn Fn(&Replicate) -> bool| {
        all.iter().filter(|one| holds(one)).count() as f64 / all.len() as f64
    };
    let mut counts: Vec<usize> = all.iter().map(|one| one.machines_shown.unwrap_or(usize::MAX)).collect();
    counts.sort_unstable();
    Rates {
        shown: share(&|one| one.machines_shown.is_some()),
        all_in: share(&|one| one.all_in_shown.is_some()),
        covers: share(&|one| one.covers),
        median_machines: Some(counts[counts.len() / 2]).filter(|count| *count < usize::MAX),
    }
}

#[test]
#[ignore = "takes half a minute: .ci/run runs it by name"]
fn no_difference_is_rarely_shown_however_often_merged() {
    let equal = rates(Population { mean: 0.0, between: 0.0 }, MACHINES, 400);
    assert!(equal.shown <= 0.05 && equal.all_in <= 0.05, "{} {}", equal.shown, equal.all_in);
    let differing = rates(Population { mean: 0.0, between: 0.1 }, MACHINES, 400);
    assert!(differing.shown <= 0.05, "{}", differing.shown);
    assert!(differing.all_in > 0.9, "machines do differ, which the product of all machines finds");
}

#[test]
#[ignore = "takes half a minute: .ci/run runs it by name"]
fn small_effect_is_found_among_sixty_differing_machines() {
    let found = rates(Population { mean: 1.05f64.ln(), between: 0.1 }, 60, 400);
    assert!(found.shown > 0.7, "{}", found.shown);
    assert!(found.median_machines.is_some_and(|count| count <= 45), "{:?}", found.median_machines);
    assert!((0.92..=0.98).contains(&found.covers), "{}", found.covers);
}

#[test]
#[ignore = "prints the table of docs/validation/merge.md; takes a minute"]
fn print_table_of_error_rates() {
    for (mean, between) in [(0.0, 0.0), (0.0, 0.05), (0.0, 0.1), (0.0, 0.3)] {
        let rates = rates(Population { mean, between }, MACHINES, 2000);
        println!(
            "| 0 % | {between} | 300 | {:.3} | {:.3} | – | {:.3} |",
            rates.shown, rates.all_in, rates.covers
        );
    }
    for (ratio, between) in [(1.05, 0.05), (1.05, 0.1), (1.1, 0.1), (1.1, 0.3)] {
        let rates = rates(Population { mean: f64::ln(ratio), between }, 60, 2000);
        let median = rates.median_machines.map_or("–".to_owned(), |count| count.to_string());
        println!(
            "| {:.0} % | {between} | 60 | {:.3} | {:.3} | {median} | {:.3} |",
            (ratio - 1.0) * 100.0,
            rates.shown,
            rates.all_in,
            rates.covers
        );
    }
}
