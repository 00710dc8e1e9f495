//! Prints the tables about verdicts at a round trip time.

use std::time::Duration;

use longhaul_analysis::simulation::{
    IntervalAtDay, RoundTripWander, Scenario, World, claims_a_difference, pairs_at_end_of_day,
    simulate_rounds, simulated_history,
};
use longhaul_analysis::summary::{Comparison, MIN_VERDICT_DAYS, PairSummary, RatioEstimate, Verdict};
use longhaul_model::{History, median};

use crate::replicate::replicate;
use crate::report::{LAST_DAY, ONE_TASK, first_comparison, header, is_asked_for, places};

/// Last day of the fourth simulated week.
const FOUR_WEEKS: i64 = 27;

/// One reading of the report: an interval and its verdict.
#[derive(Clone, Copy)]
struct EveningVerdict {
    day: i64,
    interval: IntervalAtDay,
    verdict: Verdict,
}

impl EveningVerdict {
    fn new(day: i64, ratio: Option<RatioEstimate>, verdict: Verdict) -> Option<Self> {
        let ratio = ratio?;
        let interval = IntervalAtDay { days: ratio.days, interval: (ratio.low.ln(), ratio.high.ln()) };
        Some(Self { day, interval, verdict })
    }

    /// Returns true if the verdict claims a difference, and the interval lies above zero.
    fn claims_slower(&self) -> bool {
        claims_a_difference(self.verdict) && self.interval.interval.0 > 0.0
    }
}

/// EveningVerdicts of one replicate: without the adjustment, and with it.
struct EveningVerdicts {
    unadjusted: Vec<EveningVerdict>,
    adjusted: Vec<EveningVerdict>,
}

/// Returns the result of a comparison without the adjustment for the round trip time.
fn unadjusted(comparison: &Comparison) -> (Option<RatioEstimate>, Verdict) {
    comparison
        .at_round_trip
        .as_ref()
        .map_or((comparison.ratio, comparison.verdict), |at| (at.unadjusted.ratio, at.unadjusted.verdict))
}

fn history(world: &World, ratio: f64, seed: u64) -> History {
    let scenario = Scenario::eight_weeks([0.0, ratio.ln()]);
    simulated_history(&simulate_rounds(world, &scenario, seed), &places(&ONE_TASK))
}

/// Reads the report every evening, at the median round trip time of the world.
fn looks(world: &World, wander: RoundTripWander, ratio: f64, seed: u64) -> EveningVerdicts {
    let history = history(world, ratio, seed);
    let stated = Duration::from_secs_f64(wander.median_ms / 1000.0);
    let mut looks = EveningVerdicts { unadjusted: vec![], adjusted: vec![] };
    for day in 0..=LAST_DAY {
        let pairs = pairs_at_end_of_day(&history, day, Some(stated));
        if let Some(comparison) = first_comparison(&pairs) {
            let (ratio, verdict) = unadjusted(comparison);
            looks.unadjusted.extend(EveningVerdict::new(day, ratio, verdict));
            looks.adjusted.extend(EveningVerdict::new(day, comparison.ratio, comparison.verdict));
        }
    }
    looks
}

/// Shares of replicates, for one row of the table.
struct Row {
    false_verdict: f64,
    excludes_one: f64,
    misses: f64,
    power_week_4: f64,
    power_week_8: f64,
    half_width_week_2: f64,
}

impl Row {
    /// Counts the looks of equal targets and of targets that differ by 10 %.
    fn new(equal: &[&[EveningVerdict]], ten: &[&[EveningVerdict]]) -> Self {
        let share = |of: &[&[EveningVerdict]], happened: &dyn Fn(&EveningVerdict) -> bool| {
            let count = of.iter().filter(|looks| looks.iter().any(happened)).count();
            count as f64 / of.len() as f64
        };
        let is_open = |look: &EveningVerdict| look.interval.days >= MIN_VERDICT_DAYS;
        let widths = ten.iter().filter_map(|looks| {
            let look = looks.iter().find(|look| is_open(look))?;
            Some((look.interval.interval.1 - look.interval.interval.0) / 2.0)
        });
        Self {
            false_verdict: share(equal, &|look| claims_a_difference(look.verdict)),
            excludes_one: share(equal, &|look| is_open(look) && look.interval.excludes(0.0)),
            misses: share(ten, &|look| is_open(look) && look.interval.excludes(1.1f64.ln())),
            power_week_4: share(ten, &|look| look.day <= FOUR_WEEKS && look.claims_slower()),
            power_week_8: share(ten, &EveningVerdict::claims_slower),
            half_width_week_2: median(&widths.collect::<Vec<_>>()).map_or(f64::NAN, |half| half.exp() - 1.0),
        }
    }

    fn print(&self, name: &str) {
        println!(
            "| {name} | {:.3} | {:.3} | {:.3} | {:.2} / {:.2} | {:.1} % |",
            self.false_verdict,
            self.excludes_one,
            self.misses,
            self.power_week_4,
            self.power_week_8,
            self.half_width_week_2 * 100.0
        );
    }
}

/// Prints the error rates of verdicts that are stated at the median round trip time of the world, where the true ratio is
/// known and constant.
pub fn at_the_median_of_the_world(replicates: u64) {
    header(
        "Two targets at the median round trip time of the world, read every evening for eight weeks",
        &[
            "world",
            "false verdict",
            "excludes 1",
            "misses at 10 %",
            "power at 10 % by week 4 / 8",
            "half width at week 2",
        ],
    );
    for (world, wander) in with_round_trips() {
        let [equal, ten] = [1.0, 1.1].map(|ratio| {
            let first = (ratio * 100.0) as u64 * replicates;
            replicate(replicates, |seed| looks(&world, wander, ratio, first + seed))
        });
        for (name, of) in [
            ("unadjusted", (|looks| &looks.unadjusted) as fn(&EveningVerdicts) -> &Vec<EveningVerdict>),
            ("adjusted", |looks| &looks.adjusted),
        ] {
            let [equal, ten] =
                [&equal, &ten].map(|all| all.iter().map(|looks| &of(looks)[..]).collect::<Vec<_>>());
            Row::new(&equal, &ten).print(&format!("{}: {name}", world.name));
        }
    }
}

fn with_round_trips() -> impl Iterator<Item = (World, RoundTripWander)> {
    World::WITH_ROUND_TRIP
        .into_iter()
        .filter(is_asked_for)
        .filter_map(|world| Some((world, world.round_trip?)))
}

/// Errors of one replicate if the report is read every evening.
#[derive(Default)]
struct Errors {
    has_missed: bool,
    has_named_wrong: bool,
    has_missed_break_even: bool,
    has_break_even: bool,
}

impl Errors {
    /// Adds one reading of targets that differ by a ratio at the median of the world.
    fn add(&mut self, pairs: &[PairSummary], wander: RoundTripWander, ratio: f64) {
        let Some(comparison) = first_comparison(pairs) else { return };
        let Some((at, found)) = comparison.at_round_trip.as_ref().zip(comparison.ratio) else { return };
        if found.days < MIN_VERDICT_DAYS {
            return;
        }
        let truth = ratio * wander.ln_ratio(at.at_rtt_ms).exp();
        self.has_missed |= !(found.low..=found.high).contains(&truth);
        self.has_named_wrong |=
            claims_a_difference(comparison.verdict) && (found.value > 1.0) != (truth > 1.0);
        let (low, high) = (at.break_even_low_rtt_ms, at.break_even_high_rtt_ms);
        let crossing = wander.break_even_ms(ratio).filter(|_| at.break_even_rtt_ms.is_some());
        self.has_missed_break_even |= crossing.is_some_and(|true_ms| {
            low.is_some_and(|low| true_ms < low) || high.is_some_and(|high| high < true_ms)
        });
        self.has_break_even = at.break_even_rtt_ms.is_some() && low.is_some() && high.is_some();
    }
}

/// Prints the error rates of verdicts at the median round trip time of the weeks, as a user reads them. The true ratio at
/// that time is known, and moves with it.
pub fn at_the_median_of_the_weeks(replicates: u64) {
    header(
        "Two targets at the median round trip time of the weeks, read every evening for eight weeks",
        &[
            "world, true ratio",
            "misses the ratio at the stated time",
            "names the wrong target",
            "misses the break-even",
            "break-even with both ends at week 8",
        ],
    );
    for (world, wander) in with_round_trips() {
        for ratio in [1.0, 1.1] {
            let errors = replicate(replicates, |seed| {
                let history = history(&world, ratio, (ratio * 100.0) as u64 * replicates + seed);
                let mut errors = Errors::default();
                (15..=LAST_DAY)
                    .for_each(|day| errors.add(&pairs_at_end_of_day(&history, day, None), wander, ratio));
                errors
            });
            let share = |of: fn(&Errors) -> bool| {
                errors.iter().filter(|errors| of(errors)).count() as f64 / replicates as f64
            };
            println!(
                "| {}, {ratio} | {:.3} | {:.3} | {:.3} | {:.2} |",
                world.name,
                share(|errors| errors.has_missed),
                share(|errors| errors.has_named_wrong),
                share(|errors| errors.has_missed_break_even),
                share(|errors| errors.has_break_even),
            );
        }
    }
}
