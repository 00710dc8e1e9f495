//! One function for each table. Everything in them but the first was said by the weekly summary itself.

use longhaul_measure::simulation::{
    Course, Look, Tally, World, claims_a_difference, daily_looks, evening, history, normal_days, record,
    rounds, shown,
};
use longhaul_measure::stats::median;
use longhaul_measure::summary::{ALPHA, Comparison, OPENING_DAYS, ReliabilityVerdict, Verdict, Weekly};
use longhaul_measure::workloads::WORKLOADS;

use crate::replicate::{replicate, share};

/// All tables, in order.
pub const ALL: [fn(u64); 7] = [formula, verdicts, words, already_clear, many, hangs, changes];

/// A task with one endpoint, for tables about a single comparison.
const ONE_TASK: [&str; 1] = ["incremental-backup"];
/// The tasks for the table about many comparisons.
const FOUR_TASKS: [&str; 4] = ["folder-index", "photo-batch", "incremental-backup", "time-machine"];
/// The last day of eight weeks.
const LAST_DAY: i64 = 55;

fn header(title: &str, columns: &[&str]) {
    println!("\n### {title}\n\n| {} |\n|{}", columns.join(" | "), "---|".repeat(columns.len()));
}

fn places(names: &[&str]) -> Vec<usize> {
    names.iter().filter_map(|name| WORKLOADS.iter().position(|known| known.name() == *name)).collect()
}

/// What is said of two targets with one task, in the evening of a day.
fn said(weekly: &Weekly) -> Option<&Comparison> {
    weekly.pairs.first()?.tasks.first()
}

/// What is shown of two targets with one task, evening by evening.
fn evenings(world: &World, ratio: f64, seed: u64, days: impl Iterator<Item = i64>) -> Vec<(Look, Verdict)> {
    let course = Course::eight_weeks([0.0, ratio.ln()]);
    let history = history(&rounds(world, &course, seed), &places(&ONE_TASK));
    days.filter_map(|day| shown(said(&evening(&history, day))?)).collect()
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
        "false verdict",
        "FALSE",
        "MISS at 10 %",
        "POWER 5 / 10 / 25 %",
        "wrong sign",
        "± at week 8",
        "median first day 5 / 10 / 25 %",
    ];
    header("Two targets, looked at every evening for eight weeks", &columns);
    for world in World::ALL {
        let [(none, false_verdict), (five, _), (ten, _), (more, _)] =
            [1.0, 1.05, 1.10, 1.25].map(|ratio| tally(&world, ratio, replicates));
        let power = [&five, &ten, &more].map(|tally| format!("{:.2}", tally.share(tally.right)));
        let wrong: usize = [&five, &ten, &more].map(|tally| tally.declared - tally.right).iter().sum();
        let first = [&five, &ten, &more].map(|tally| match median(&tally.first_days) {
            Some(day) if day.is_finite() => format!("{day}"),
            Some(_) | None => "–".to_owned(),
        });
        println!(
            "| {} | {false_verdict:.3} | {:.3} | {:.3} | {} | {:.4} | {:.1} % | {} |",
            world.name,
            none.share(none.declared),
            ten.share(ten.missed),
            power.join(" / "),
            wrong as f64 / (3 * replicates) as f64,
            median(&ten.half_widths).map_or(f64::NAN, |half| (half.exp() - 1.0) * 100.0),
            first.join(" / "),
        );
    }
}

/// What open intervals did, and in what share of the replicates a verdict ever claimed a difference.
fn tally(world: &World, ratio: f64, replicates: u64) -> (Tally, f64) {
    // Other weeks for every ratio, so that the shares of one row are independent.
    let first = (ratio * 100.0) as u64 * replicates;
    let mut tally = Tally::default();
    let mut claimed = 0;
    for shown in replicate(replicates, |seed| evenings(world, ratio, first + seed, 0..=LAST_DAY)) {
        claimed += usize::from(shown.iter().any(|(_, verdict)| claims_a_difference(*verdict)));
        let open = shown.iter().map(|(look, _)| *look).filter(|look| look.days >= OPENING_DAYS);
        tally.add(&open.collect::<Vec<_>>(), ratio.ln());
    }
    let claimed = tally.share(claimed);
    (tally, claimed)
}

/// What somebody reads at the end of a week, in percent of the replicates.
fn words(replicates: u64) {
    header(
        "What is read: right / wrong winner / no real difference / too small / not enough data, in %",
        &["world, true ratio", "week 2", "week 3", "week 4", "week 8"],
    );
    for (world, ratio) in [World::WIRED, World::TYPICAL, World::ROUGH]
        .into_iter()
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

/// The column of what was shown, where the truth is that the second takes longer.
fn kind(shown: Option<(Look, Verdict)>) -> usize {
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

/// The early rule.
fn already_clear(replicates: u64) {
    header("Already clear before the opening day", &["world", "equal", "1.25×", "1.5×", "2×"]);
    for world in World::ALL {
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

/// Three equal targets, four tasks: the chance of any false claim.
fn many(replicates: u64) {
    header(
        "Three equal targets, four tasks, looked at every week: any false claim",
        &["world", "in a headline", "in the grid of tasks"],
    );
    for world in World::ALL {
        let claimed = replicate(replicates, |seed| {
            let rounds = rounds(&world, &Course::eight_weeks([0.0; 12]), seed);
            let history = history(&rounds, &places(&FOUR_TASKS));
            let (mut headline, mut task) = (false, false);
            for week in 2..=8 {
                let weekly = evening(&history, 7 * week - 1);
                headline |= weekly
                    .pairs
                    .iter()
                    .filter_map(|pair| pair.headline.as_ref())
                    .any(|c| claims_a_difference(c.verdict));
                task |=
                    weekly.pairs.iter().flat_map(|pair| &pair.tasks).any(|c| claims_a_difference(c.verdict));
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

/// One target hangs in 0.4 % of its runs, the other more often; when they work they are equal.
fn hangs(replicates: u64) {
    header(
        "Hangs: A in 0.4 % of its runs, typical world",
        &["B hangs", "day median", "time waited", "reliability verdict week 2 / 4 / 8"],
    );
    for hangs in [0.004, 0.008, 0.015, 0.03] {
        let course = Course { hangs: Some([0.004, hangs]), ..Course::eight_weeks([0.0; 2]) };
        let seen = replicate(replicates, |seed| {
            let history = history(&rounds(&World::TYPICAL, &course, seed), &places(&ONE_TASK));
            let weeks = [13, 27, LAST_DAY].map(|day| evening(&history, day));
            let last = said(&weeks[2]);
            let percent = |estimate: Option<f64>| (estimate.unwrap_or(f64::NAN) - 1.0) * 100.0;
            let speed = percent(last.and_then(|said| said.ratio).map(|ratio| ratio.value));
            let waited = percent(last.and_then(|said| said.waited).map(|ratio| ratio.value));
            (speed, waited, weeks.map(|weekly| weekly.pairs[0].reliability.verdict))
        });
        let middle = |value: fn(&(f64, f64, [ReliabilityVerdict; 3])) -> f64| {
            median(&seen.iter().map(value).collect::<Vec<_>>()).unwrap_or(f64::NAN)
        };
        let proven = [0, 1, 2].map(|week| {
            let worse = seen.iter().filter(|(_, _, verdicts)| match verdicts[week] {
                ReliabilityVerdict::WorseA | ReliabilityVerdict::WorseB => true,
                ReliabilityVerdict::NoFailures | ReliabilityVerdict::NotProven => false,
            });
            format!("{:.2}", worse.count() as f64 / replicates as f64)
        });
        let (speed, waited) = (middle(|seen| seen.0), middle(|seen| seen.1));
        println!("| {:.1} % | {speed:+.1} % | {waited:+.1} % | {} |", hangs * 100.0, proven.join(" / "));
    }
}

/// The ratio changes on day 28; with and without a recorded event on the day before.
fn changes(replicates: u64) {
    header(
        "A change of the ratio on day 28, asked at week 8",
        &["world", "unknown time: equal / 10 % / 20 %", "recorded event: equal / 10 % / 20 %"],
    );
    for world in World::ALL {
        let flagged = |step: f64, recorded: &[i64]| {
            let course = Course { change: Some((28, [0.0, step.ln()])), ..Course::eight_weeks([0.0; 2]) };
            let share = share(replicates, |seed| {
                let mut history = history(&rounds(&world, &course, seed), &places(&ONE_TASK));
                recorded.iter().for_each(|day| record(&mut history, *day, "os-update"));
                said(&evening(&history, LAST_DAY)).is_some_and(|said| said.change.is_some())
            });
            format!("{share:.3}")
        };
        let unknown = [1.0, 1.1, 1.2].map(|step| flagged(step, &[]));
        let event = [1.0, 1.1, 1.2].map(|step| flagged(step, &[27]));
        println!("| {} | {} | {} |", world.name, unknown.join(" / "), event.join(" / "));
    }
}
