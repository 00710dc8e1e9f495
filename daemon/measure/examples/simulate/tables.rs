//! One function for each table.

use std::thread::{available_parallelism, scope};

use longhaul_measure::simulation::{
    Course, Look, SimulatedRound, Tally, World, daily_looks, day_medians, medians_by_day, normal_days, rounds,
};
use longhaul_measure::stats::{
    DaySeries, Discordant, best_split, e_bh, ln_e_discordant, median, pairwise_alpha, split_at_event,
};

/// All tables, in order.
pub const ALL: [fn(u64); 6] = [formula, verdicts, already_clear, many, hangs, changes];

/// Verdicts open on this day.
const OPENING_DAY: usize = 14;
/// What is promised.
const ALPHA: f64 = 0.05;

/// Replicates, on all processors, in the order of their seeds.
fn replicate<T: Send>(replicates: u64, one: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let threads = available_parallelism().map_or(1, |threads| threads.get() as u64);
    let share = replicates.div_ceil(threads);
    let part = |thread: u64| thread * share..((thread + 1) * share).min(replicates);
    scope(|scope| {
        let one = &one;
        let started: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || part(thread).map(one).collect::<Vec<T>>()))
            .collect();
        started.into_iter().flat_map(|thread| thread.join().expect("a replicate does not panic")).collect()
    })
}

/// In what share of the replicates it happened.
fn share(replicates: u64, happened: impl Fn(u64) -> bool + Sync) -> f64 {
    replicate(replicates, happened).into_iter().filter(|happened| *happened).count() as f64
        / replicates as f64
}

fn header(title: &str, columns: &[&str]) {
    println!("\n### {title}\n\n| {} |\n|{}", columns.join(" | "), "---|".repeat(columns.len()));
}

fn percent(half_width: f64) -> String {
    format!("{:.1} %", (half_width.exp() - 1.0) * 100.0)
}

fn by_day(world: &World, course: &Course<2>, seed: u64) -> Vec<(i64, f64)> {
    day_medians(&rounds(world, course, seed), (0, 1))
}

/// The interval on independent normal days, where the promise is exact.
fn formula(replicates: u64) {
    header("The interval on independent normal days", &["looks", "any look misses the truth"]);
    for days in [56, 200] {
        let missed = |seed| {
            daily_looks(&normal_days(days, seed), 2, ALPHA).iter().any(|look: &Look| look.excludes(0.0))
        };
        println!("| days 2 to {days} | {:.3} |", share(replicates, missed));
    }
}

/// False verdicts, coverage and power with a look on every day.
fn verdicts(replicates: u64) {
    let columns = [
        "world",
        "FALSE",
        "MISS at 10 %",
        "POWER 5 / 10 / 25 %",
        "wrong sign",
        "± at week 8",
        "median first verdict day 5 / 10 / 25 %",
    ];
    header("Two targets, looked at every day from day 14 to week 8", &columns);
    for world in World::ALL {
        let [none, five, ten, more] = [1.0, 1.05, 1.10, 1.25].map(|ratio| tally(&world, ratio, replicates));
        let power = [&five, &ten, &more].map(|tally| format!("{:.2}", tally.share(tally.right)));
        let wrong: usize = [&five, &ten, &more].map(|tally| tally.declared - tally.right).iter().sum();
        let first = [&five, &ten, &more].map(|tally| match median(&tally.first_days) {
            Some(day) if day.is_finite() => format!("{day}"),
            Some(_) | None => "–".to_owned(),
        });
        println!(
            "| {} | {:.3} | {:.3} | {} | {:.4} | {} | {} |",
            world.name,
            none.share(none.declared),
            ten.share(ten.missed),
            power.join(" / "),
            wrong as f64 / (3 * replicates) as f64,
            median(&ten.half_widths).map_or_else(String::new, percent),
            first.join(" / "),
        );
    }
}

fn tally(world: &World, ratio: f64, replicates: u64) -> Tally {
    let course = Course::eight_weeks([0.0, ratio.ln()]);
    // Other weeks for every ratio, so that the shares of one row are independent.
    let first = (ratio * 100.0) as u64 * replicates;
    let looks =
        replicate(replicates, |seed| daily_looks(&by_day(world, &course, first + seed), OPENING_DAY, ALPHA));
    let mut tally = Tally::default();
    looks.iter().for_each(|looks| tally.add(looks, ratio.ln()));
    tally
}

/// The early rule: days 5 to 13, the whole interval beyond 25 %.
fn already_clear(replicates: u64) {
    header("Already clear before day 14", &["world", "equal", "1.25×", "1.5×", "2×"]);
    for world in World::ALL {
        let clear = |ratio: f64| {
            let course = Course::eight_weeks([0.0, ratio.ln()]);
            share(replicates, |seed| {
                let days = by_day(&world, &course, seed);
                let looks = daily_looks(&days[..OPENING_DAY - 1], 5, ALPHA);
                let beyond = 1.25f64.ln();
                looks.iter().any(|look| look.interval.0 > beyond || look.interval.1 < -beyond)
            })
        };
        let shares = [1.0, 1.25, 1.5, 2.0].map(|ratio| format!("{:.3}", clear(ratio)));
        println!("| {} | {} |", world.name, shares.join(" | "));
    }
}

/// Tasks of each target in the table of many comparisons.
const TASKS: usize = 4;
/// Pairs of three targets.
const PAIRS: [(usize, usize); 3] = [(0, 1), (0, 2), (1, 2)];

/// Three equal targets, four tasks: the chance of any false claim, with a look every week from the second on.
fn many(replicates: u64) {
    header(
        "Three equal targets, four tasks, looked at every week",
        &[
            "world",
            "headline, Bonferroni",
            "headline, 0.05 each",
            "grid of 12, e-BH",
            "grid of 12, 0.05 each",
        ],
    );
    for world in World::ALL {
        let claims = replicate(replicates, |seed| {
            let rounds = rounds(&world, &Course::eight_weeks([0.0; 3 * TASKS]), seed);
            let mut any = [false; 4];
            for week in 2..=8 {
                let seen: Vec<_> = rounds.iter().filter(|round| round.day < 7 * week).copied().collect();
                any.iter_mut().zip(claims(&seen)).for_each(|(any, claimed)| *any |= claimed);
            }
            any
        });
        let shares: [String; 4] = std::array::from_fn(|kind| {
            let count = claims.iter().filter(|any| any[kind]).count();
            format!("{:.3}", count as f64 / replicates as f64)
        });
        println!("| {} | {} |", world.name, shares.join(" | "));
    }
}

/// Whether anything is claimed: in the headline with shared and with whole alpha, in the grid with e-BH and without.
fn claims(rounds: &[SimulatedRound<{ 3 * TASKS }>]) -> [bool; 4] {
    let open = |by_day: Vec<(i64, f64)>| DaySeries::of(&by_day).filter(|series| series.days() >= OPENING_DAY);
    let headline: Vec<DaySeries> = PAIRS
        .iter()
        .filter_map(|pair| open(medians_by_day(rounds.iter().filter_map(|r| overall(r, *pair)))))
        .collect();
    let grid: Vec<DaySeries> = PAIRS
        .iter()
        .flat_map(|(a, b)| (0..TASKS).map(move |task| (a * TASKS + task, b * TASKS + task)))
        .filter_map(|columns| open(day_medians(rounds, columns)))
        .collect();
    let excludes = |series: &DaySeries, alpha: f64| series.mean().abs() > series.half_width(alpha);
    let values: Vec<f64> = grid.iter().map(DaySeries::ln_e_value).collect();
    [
        headline.iter().any(|series| excludes(series, pairwise_alpha(ALPHA, 3))),
        headline.iter().any(|series| excludes(series, ALPHA)),
        e_bh(&values, ALPHA).contains(&true),
        grid.iter().any(|series| excludes(series, ALPHA)),
    ]
}

/// The mean log ratio over all tasks of a round; `None` unless each has one.
fn overall(round: &SimulatedRound<{ 3 * TASKS }>, (a, b): (usize, usize)) -> Option<(i64, f64)> {
    let ratio = |task: usize| {
        let (a, b) = (a * TASKS + task, b * TASKS + task);
        (!(round.hung[a] && round.hung[b])).then(|| (round.seconds[b] / round.seconds[a]).ln())
    };
    let ratios: Vec<f64> = (0..TASKS).map(ratio).collect::<Option<_>>()?;
    Some((round.day, ratios.iter().sum::<f64>() / TASKS as f64))
}

/// One target hangs in 0.4 % of its runs, the other more often; when they work they are equal.
fn hangs(replicates: u64) {
    header(
        "Hangs: A in 0.4 % of runs, typical world",
        &["B hangs", "day median", "time waited", "reliability verdict week 2 / 4 / 8"],
    );
    for hangs in [0.004, 0.008, 0.015, 0.03] {
        let course = Course { hangs: Some([0.004, hangs]), ..Course::eight_weeks([0.0; 2]) };
        let seen = replicate(replicates, |seed| {
            let rounds = rounds(&World::TYPICAL, &course, seed);
            let speed = DaySeries::of(&day_medians(&rounds, (0, 1))).map_or(f64::NAN, |series| series.mean());
            let sum = |target: usize| rounds.iter().map(|round| round.seconds[target]).sum::<f64>();
            (speed, sum(1) / sum(0), [14, 28, 56].map(|days| proven(&rounds, days)))
        });
        let median_of = |value: fn(&(f64, f64, [bool; 3])) -> f64| {
            median(&seen.iter().map(value).collect::<Vec<_>>())
                .map_or(f64::NAN, |ratio| (ratio - 1.0) * 100.0)
        };
        let verdicts = [0, 1, 2].map(|week| {
            let count = seen.iter().filter(|(_, _, proven)| proven[week]).count();
            format!("{:.2}", count as f64 / replicates as f64)
        });
        println!(
            "| {:.1} % | {:+.1} % | {:+.1} % | {} |",
            hangs * 100.0,
            median_of(|seen| seen.0.exp()),
            median_of(|seen| seen.1),
            verdicts.join(" / "),
        );
    }
}

/// Whether a look on any day so far proves that one of the two fails more often.
fn proven(rounds: &[SimulatedRound<2>], days: i64) -> bool {
    (1..=days).any(|day| {
        let seen = rounds.iter().take_while(|round| round.day < day);
        let failed: Vec<(bool, bool)> = seen.map(|round| (round.hung[0], round.hung[1])).collect();
        let Discordant { first_only, second_only } = Discordant::of(&failed);
        ln_e_discordant(first_only, second_only) >= 20f64.ln()
    })
}

/// The ratio changes on day 28.
fn changes(replicates: u64) {
    header(
        "A change of the ratio on day 28",
        &["world", "unknown time: equal / 10 % / 20 %", "recorded event: equal / 10 % / 20 %"],
    );
    for world in World::ALL {
        let course =
            |step: f64| Course { change: Some((28, [0.0, step.ln()])), ..Course::eight_weeks([0.0; 2]) };
        let found = |step: f64, split: fn(&[(i64, f64)]) -> bool| {
            format!("{:.3}", share(replicates, |seed| split(&by_day(&world, &course(step), seed))))
        };
        let unknown = [1.0, 1.1, 1.2]
            .map(|step| found(step, |days| best_split(days).is_some_and(|split| split.is_change())));
        let event = [1.0, 1.1, 1.2]
            .map(|step| found(step, |days| split_at_event(days, 27).is_some_and(|split| split.is_change())));
        println!("| {} | {} | {} |", world.name, unknown.join(" / "), event.join(" / "));
    }
}
