//! Prints the tables of the simulation, one function each. All tables except the first use the results of the weekly
//! summary.

use longhaul_analysis::simulation::{
    ErrorRates, IntervalAtDay, Scenario, World, add_event, claims_a_difference, daily_intervals,
    intervals_after_rounds, normal_days, pairs_at_end_of_day, simulate_rounds, simulated_history,
    verdict_with_interval, weekly_at_end_of_day,
};
use longhaul_analysis::summary::{ALPHA, MIN_VERDICT_DAYS, ReliabilityVerdict, Verdict};
use longhaul_model::median;

use crate::claim_day::days_until_claimed;
use crate::replicate::{replicate, share};
use crate::report::{LAST_DAY, ONE_TASK, first_comparison, header, is_asked_for, places};
use crate::round_trips::{at_the_median_of_the_weeks, at_the_median_of_the_world};

/// Functions that print the tables, in order.
pub const ALL: [fn(u64); 11] = [
    formula,
    so_far,
    verdicts,
    words,
    already_clear,
    many,
    hangs,
    changes,
    at_the_median_of_the_world,
    at_the_median_of_the_weeks,
    days_until_claimed,
];

/// Workloads for the table about many comparisons.
const FOUR_TASKS: [&str; 4] = ["folder-index", "photo-batch", "incremental-backup", "time-machine"];

/// Returns the interval and the verdict of two targets with one task, at the end of each of the given days.
fn evenings(
    world: &World,
    ratio: f64,
    seed: u64,
    days: impl Iterator<Item = i64>,
) -> Vec<(IntervalAtDay, Verdict)> {
    let scenario = Scenario::eight_weeks([0.0, ratio.ln()]);
    let history = simulated_history(&simulate_rounds(world, &scenario, seed), &places(&ONE_TASK));
    days.filter_map(|day| verdict_with_interval(first_comparison(&pairs_at_end_of_day(&history, day, None))?))
        .collect()
}

/// Prints the error rate of the interval on independent normal days, where the guarantee is exact.
fn formula(replicates: u64) {
    header("The interval on independent normal days", &["looks", "any look misses the truth"]);
    for days in [56, 200] {
        let missed = |seed| {
            daily_intervals(&normal_days(days, seed), 2, ALPHA)
                .iter()
                .any(|look: &IntervalAtDay| look.excludes(0.0))
        };
        println!("| days 2 to {days} | {:.3} |", share(replicates, missed));
    }
}

/// Prints how often the statement about the rounds made so far was ever wrong about them, and when the first one came,
/// if the report is read after every round.
fn so_far(replicates: u64) {
    header(
        "So far: read after every round for eight weeks",
        &[
            "world",
            "misses the past",
            "names the wrong target at 10 %",
            "first statement, median day, at 10 / 15 / 25 %",
        ],
    );
    for world in World::ALL.into_iter().filter(is_asked_for) {
        let looks = |ratio: f64| {
            let first = (ratio * 100.0) as u64 * replicates;
            replicate(replicates, |seed| {
                let scenario = Scenario::eight_weeks([0.0, ratio.ln()]);
                let looks = intervals_after_rounds(&simulate_rounds(&world, &scenario, first + seed), ALPHA);
                let first = looks.iter().find(|look| look.interval.0 > 0.0 || look.interval.1 < 0.0);
                SoFarLooks {
                    has_missed: looks.iter().any(|look| look.misses()),
                    is_wrong: first.is_some_and(|look| (look.interval.0 > 0.0) != (look.truth > 0.0)),
                    first_day: first.map_or(f64::INFINITY, |look| look.days),
                }
            })
        };
        let all = [1.0, 1.10, 1.15, 1.25].map(looks);
        let missed = all.iter().flatten().filter(|looks| looks.has_missed).count();
        let wrong = all[1].iter().filter(|looks| looks.is_wrong).count();
        let first = [1, 2, 3].map(|ratio| {
            let days: Vec<f64> = all[ratio].iter().map(|looks| looks.first_day).collect();
            median(&days).filter(|day| day.is_finite()).map_or("–".to_owned(), |day| format!("{day:.1}"))
        });
        println!(
            "| {} | {:.3} | {:.3} | {} |",
            world.name,
            missed as f64 / (4 * replicates) as f64,
            wrong as f64 / replicates as f64,
            first.join(" / ")
        );
    }
}

/// Result of the looks at one replicate.
struct SoFarLooks {
    /// True if any interval excluded the truth about the rounds made up to then.
    has_missed: bool,
    /// True if the first statement named the wrong target.
    is_wrong: bool,
    /// Day of the first interval that excluded "no difference"; infinite if none did.
    first_day: f64,
}

/// Prints false verdicts, coverage and power if the report is read every day.
fn verdicts(replicates: u64) {
    let columns = [
        "world",
        "false verdict",
        "excludes 1",
        "misses at 10 %",
        "power 5 / 10 / 25 %",
        "wrong sign",
        "half width at week 8",
        "median first day 5 / 10 / 25 %",
    ];
    header("Two targets, read every evening for eight weeks", &columns);
    for world in World::ALL.into_iter().filter(is_asked_for) {
        let [none, five, ten, more] = [1.0, 1.05, 1.10, 1.25].map(|ratio| tally(&world, ratio, replicates));
        let claims = [&five.claims, &ten.claims, &more.claims];
        let power = claims.map(|claims| format!("{:.2}", claims.share(claims.correct)));
        let wrong: usize = claims.iter().map(|claims| claims.declared - claims.correct).sum();
        let first = claims.map(|claims| match median(&claims.first_days) {
            Some(day) if day.is_finite() => format!("{day}"),
            Some(_) | None => "–".to_owned(),
        });
        println!(
            "| {} | {:.3} | {:.3} | {:.3} | {} | {:.4} | {:.1} % | {} |",
            world.name,
            none.claims.share(none.claims.declared),
            none.intervals.share(none.intervals.declared),
            ten.intervals.share(ten.intervals.missed),
            power.join(" / "),
            wrong as f64 / (3 * replicates) as f64,
            median(&ten.intervals.half_widths).map_or(f64::NAN, |half| (half.exp() - 1.0) * 100.0),
            first.join(" / "),
        );
    }
}

/// Error rates of one world at one true ratio.
#[derive(Default)]
struct Tally {
    /// Of all intervals from day 14 on.
    intervals: ErrorRates,
    /// Of the intervals of verdicts that claim a difference, on any day.
    claims: ErrorRates,
}

fn tally(world: &World, ratio: f64, replicates: u64) -> Tally {
    // Each ratio uses other seeds, so that the shares in one row are independent.
    let first = (ratio * 100.0) as u64 * replicates;
    let mut tally = Tally::default();
    for shown in replicate(replicates, |seed| evenings(world, ratio, first + seed, 0..=LAST_DAY)) {
        let claims = shown.iter().filter(|(_, verdict)| claims_a_difference(*verdict));
        tally.claims.add(&claims.map(|(look, _)| *look).collect::<Vec<_>>(), ratio.ln());
        let open = shown.iter().map(|(look, _)| *look).filter(|look| look.days >= MIN_VERDICT_DAYS);
        tally.intervals.add(&open.collect::<Vec<_>>(), ratio.ln());
    }
    tally
}

/// Prints the share of replicates with each verdict at the end of a week, in percent.
fn words(replicates: u64) {
    header(
        "Verdict: right / wrong winner / no real difference / too small / not enough data, in %",
        &["world, true ratio", "week 2", "week 3", "week 4", "week 8"],
    );
    for (world, ratio) in [World::WIRED, World::TYPICAL, World::ROUGH]
        .into_iter()
        .filter(is_asked_for)
        .flat_map(|world| [1.0, 1.03, 1.10, 1.15, 1.25].map(|ratio| (world, ratio)))
    {
        let read = replicate(replicates, |seed| {
            [13, 20, 27, LAST_DAY].map(|day| evenings(&world, ratio, seed, std::iter::once(day)).pop())
        });
        let weeks: [String; 4] = std::array::from_fn(|week| {
            let mut counts = [0u64; 5];
            read.iter().for_each(|read| counts[kind(read[week])] += 1);
            counts.map(|count| ((100 * count + replicates / 2) / replicates).to_string()).join("/")
        });
        println!("| {}, {ratio} | {} |", world.name, weeks.join(" | "));
    }
}

/// Returns the column of a verdict in the table of [`words`], if in truth the second target takes longer.
fn kind(shown: Option<(IntervalAtDay, Verdict)>) -> usize {
    match shown {
        None => 4,
        Some((look, verdict)) => match verdict {
            Verdict::AlreadyClear | Verdict::Faster | Verdict::ClearlyFaster => {
                usize::from(look.interval.0 <= 0.0)
            }
            Verdict::NoRealDifference => 2,
            Verdict::TooSmall => 3,
            Verdict::NotEnoughData => 4,
        },
    }
}

/// Prints the share of replicates with an early verdict.
fn already_clear(replicates: u64) {
    header("Already clear before day 14", &["world", "equal", "1.25×", "1.5×", "2×"]);
    for world in World::ALL.into_iter().filter(is_asked_for) {
        let clear = |ratio: f64| {
            share(replicates, |seed| {
                let shown = evenings(&world, ratio, seed, 0..21);
                shown.iter().any(|(_, verdict)| *verdict == Verdict::AlreadyClear)
            })
        };
        let shares = [1.0, 1.25, 1.5, 2.0].map(|ratio| format!("{:.3}", clear(ratio)));
        println!("| {} | {} |", world.name, shares.join(" | "));
    }
}

/// Prints the chance of any false claim with three equal targets and four tasks.
fn many(replicates: u64) {
    header(
        "Three equal targets, four tasks, read every week: any false claim",
        &["world", "in a headline", "among the metrics"],
    );
    for world in World::ALL.into_iter().filter(is_asked_for) {
        let claimed = replicate(replicates, |seed| {
            let rounds = simulate_rounds(&world, &Scenario::eight_weeks([0.0; 12]), seed);
            let history = simulated_history(&rounds, &places(&FOUR_TASKS));
            let (mut headline, mut task) = (false, false);
            for week in 2..=8 {
                let pairs = pairs_at_end_of_day(&history, 7 * week - 1, None);
                headline |= pairs
                    .iter()
                    .filter_map(|pair| pair.headline.as_ref())
                    .any(|c| claims_a_difference(c.verdict));
                task |= pairs.iter().flat_map(|pair| &pair.tasks).any(|c| claims_a_difference(c.verdict));
            }
            (headline, task)
        });
        let of = |claimed: usize| claimed as f64 / replicates as f64;
        println!(
            "| {} | {:.3} | {:.3} |",
            world.name,
            of(claimed.iter().filter(|(headline, _)| *headline).count()),
            of(claimed.iter().filter(|(_, task)| *task).count()),
        );
    }
}

/// Prints the effect of hangs: target A hangs in 0.4 % of its runs, target B more often. Both are equally fast when
/// they work.
fn hangs(replicates: u64) {
    header(
        "Hangs: A in 0.4 % of its runs, typical world",
        &["B hangs", "median of days", "time waited", "reliability proven by week 2 / 4 / 8"],
    );
    for hangs in [0.004, 0.008, 0.015, 0.03] {
        let scenario = Scenario { hang_shares: Some([0.004, hangs]), ..Scenario::eight_weeks([0.0; 2]) };
        let results = replicate(replicates, |seed| {
            let history =
                simulated_history(&simulate_rounds(&World::TYPICAL, &scenario, seed), &places(&ONE_TASK));
            let weeks = [13, 27, LAST_DAY].map(|day| weekly_at_end_of_day(&history, day));
            let last = first_comparison(&weeks[2].pairs);
            let percent = |estimate: Option<f64>| (estimate.unwrap_or(f64::NAN) - 1.0) * 100.0;
            let speed = percent(last.and_then(|comparison| comparison.ratio).map(|ratio| ratio.value));
            let waited = percent(last.and_then(|comparison| comparison.wait_ratio).map(|ratio| ratio.value));
            (speed, waited, weeks.map(|weekly| weekly.pairs[0].reliability.verdict))
        });
        let middle = |value: fn(&(f64, f64, [ReliabilityVerdict; 3])) -> f64| {
            median(&results.iter().map(value).collect::<Vec<_>>()).unwrap_or(f64::NAN)
        };
        let proven = [0, 1, 2].map(|week| {
            let worse = results.iter().filter(|(_, _, verdicts)| match verdicts[week] {
                ReliabilityVerdict::WorseA | ReliabilityVerdict::WorseB => true,
                ReliabilityVerdict::NoFailures | ReliabilityVerdict::NotProven => false,
            });
            format!("{:.2}", worse.count() as f64 / replicates as f64)
        });
        let (speed, waited) = (middle(|result| result.0), middle(|result| result.1));
        println!("| {:.1} % | {speed:+.1} % | {waited:+.1} % | {} |", hangs * 100.0, proven.join(" / "));
    }
}

/// Prints how often a change of the ratio on day 28 is detected, with and without a recorded event on the day before.
fn changes(replicates: u64) {
    header(
        "A change of the ratio on day 28, asked at week 8",
        &["world", "unknown time: equal / 10 % / 20 %", "recorded event: equal / 10 % / 20 %"],
    );
    for world in World::ALL.into_iter().filter(is_asked_for) {
        let flagged = |step: f64, recorded: &[i64]| {
            let scenario =
                Scenario { change: Some((28, [0.0, step.ln()])), ..Scenario::eight_weeks([0.0; 2]) };
            let share = share(replicates, |seed| {
                let mut history =
                    simulated_history(&simulate_rounds(&world, &scenario, seed), &places(&ONE_TASK));
                recorded.iter().for_each(|day| add_event(&mut history, *day, "os-update"));
                first_comparison(&pairs_at_end_of_day(&history, LAST_DAY, None))
                    .is_some_and(|comparison| comparison.change.is_some())
            });
            format!("{share:.3}")
        };
        let unknown = [1.0, 1.1, 1.2].map(|step| flagged(step, &[]));
        let event = [1.0, 1.1, 1.2].map(|step| flagged(step, &[27]));
        println!("| {} | {} | {} |", world.name, unknown.join(" / "), event.join(" / "));
    }
}
