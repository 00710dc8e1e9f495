//! Tests the error rates and the power of the verdict statistics on simulated worlds.
//!
//! These tests are a small version of `cargo run --release --example simulate`. The seeds are fixed, so that each test
//! always uses the same weeks. The limits leave room for the results of other seeds.

use longhaul_analysis::simulation::{
    ErrorRates, IntervalAtDay, IntervalAtRound, Scenario, World, claims_a_difference, daily_intervals,
    day_medians, intervals_after_rounds, normal_days, simulate_rounds, simulated_history,
    verdict_with_interval, weekly_at_end_of_day,
};
use longhaul_analysis::stats::{
    AUTOCORRELATION_LIMIT, DaySeries, DiscordantEpisodes, RoundSeries, best_split,
};
use longhaul_analysis::summary::{Comparison, MIN_VERDICT_DAYS, Verdict};
use longhaul_model::{History, TASKS, median};

/// Number of replicates of tests with daily intervals only.
const REPLICATES: u64 = 600;
/// Number of replicates of tests with the weekly summary, which takes longer to compute.
const SUMMARIES: u64 = 20;

/// Returns the error rates of a world at a true ratio, if the interval is read on every day from day 14 on.
fn tally(world: &World, ratio: f64) -> ErrorRates {
    let mut tally = ErrorRates::default();
    for seed in 0..REPLICATES {
        let rounds = simulate_rounds(world, &Scenario::eight_weeks([0.0, ratio.ln()]), seed);
        tally.add(&daily_intervals(&day_medians(&rounds, 0, 1), MIN_VERDICT_DAYS, 0.05), ratio.ln());
    }
    tally
}

#[test]
#[ignore = "takes minutes without optimization: .ci/run runs it optimized"]
fn interval_on_independent_days_keeps_its_error_rate() {
    let missed = |seed: &u64| {
        let looks = daily_intervals(&normal_days(200, *seed), 2, 0.05);
        looks.iter().any(|look| look.excludes(0.0))
    };
    let count = (0..1000).filter(missed).count();
    assert!(
        (10..=50).contains(&count),
        "{count} of 1000 missed; the study had 30 (docs/methodology.md#the-study-of-designs), 50 are allowed"
    );
}

#[test]
#[ignore = "takes minutes without optimization: .ci/run runs it optimized"]
fn equal_targets_are_rarely_called_different() {
    for world in [World::WIRED, World::TYPICAL, World::ROUGH] {
        let tally = tally(&world, 1.0);
        assert!(tally.share(tally.declared) <= 0.05, "{}: {} of {REPLICATES}", world.name, tally.declared);
    }
}

/// Returns the statement about the rounds so far after every round of the first two of eight weeks.
fn looks_of_two_weeks(world: &World, ratio: f64, seed: u64) -> Vec<IntervalAtRound> {
    let rounds = simulate_rounds(world, &Scenario::eight_weeks([0.0, ratio.ln()]), seed);
    let first: Vec<_> = rounds.into_iter().filter(|round| round.day < 14).collect();
    intervals_after_rounds(&first, 0.05)
}

/// Reads the statement about the rounds made so far after every round of two weeks. The complete table, over eight weeks
/// and for other ratios, is in docs/methodology.md#so-far.
#[test]
#[ignore = "takes minutes without optimization: .ci/run runs it optimized"]
fn statement_about_rounds_so_far_is_rarely_wrong_about_them() {
    for world in World::ALL {
        let has_missed = |seed: &u64| looks_of_two_weeks(&world, 1.1, *seed).iter().any(|look| look.misses());
        let missed = (0..REPLICATES).filter(has_missed).count();
        assert!(missed as f64 <= 0.05 * REPLICATES as f64, "{}: {missed} of {REPLICATES}", world.name);
    }
}

#[test]
#[ignore = "takes minutes without optimization: .ci/run runs it optimized"]
fn first_statement_about_rounds_so_far_comes_within_days() {
    for (ratio, day) in [(1.10f64, 3.0), (1.15, 2.0), (1.25, 1.0)] {
        let first = |seed: u64| {
            let looks = looks_of_two_weeks(&World::TYPICAL, ratio, seed);
            looks.iter().find(|look| look.interval.0 > 0.0).map_or(f64::INFINITY, |look| look.days)
        };
        let found = median(&(0..REPLICATES).map(first).collect::<Vec<_>>()).unwrap();
        assert!(found <= day, "at {ratio}: day {found}");
    }
}

/// Targets that drift against each other for days break the guarantee (docs/methodology.md#known-limits).
#[test]
#[ignore = "takes minutes without optimization: .ci/run runs it optimized"]
fn drifting_ratio_raises_false_verdicts_and_is_detected() {
    let tally = tally(&World::OWN_DRIFT, 1.0);
    assert!((0.03..=0.15).contains(&tally.share(tally.declared)), "{}", tally.declared);
    let count_autocorrelated = |world: &World| {
        let by_day =
            |seed| day_medians(&simulate_rounds(world, &Scenario::eight_weeks([0.0, 0.0]), seed), 0, 1);
        let correlation = |seed| DaySeries::from_days(&by_day(seed)).unwrap().corrected_autocorrelation();
        (0..100).filter(|seed| correlation(*seed) > AUTOCORRELATION_LIMIT).count()
    };
    let (drifting, typical) =
        (count_autocorrelated(&World::OWN_DRIFT), count_autocorrelated(&World::TYPICAL));
    assert!(drifting > 70 && typical < 35, "{drifting} and {typical} of 100 are autocorrelated");
}

/// Checks power and half width against docs/methodology.md#the-study-of-designs. Columns: power at a true 5 %, power at
/// a true 10 %, half width in percent.
#[test]
#[ignore = "takes minutes without optimization: .ci/run runs it optimized"]
fn power_and_half_width_match_documentation() {
    let worlds =
        [(World::WIRED, 0.99, 1.00, 2.4), (World::TYPICAL, 0.74, 1.00, 4.4), (World::ROUGH, 0.20, 0.67, 9.4)];
    for (world, at_five, at_ten, half_percent) in worlds {
        let (five, ten) = (tally(&world, 1.05), tally(&world, 1.10));
        assert!((five.share(five.correct) - at_five).abs() < 0.10, "{} at 5 %: {}", world.name, five.correct);
        assert!((ten.share(ten.correct) - at_ten).abs() < 0.10, "{} at 10 %: {}", world.name, ten.correct);
        assert_eq!(ten.correct, ten.declared, "{}: wrong sign", world.name);
        assert!(ten.share(ten.missed) <= 0.05, "{}: the interval excludes the truth too often", world.name);
        let half = (median(&ten.half_widths).unwrap().exp() - 1.0) * 100.0;
        assert!((half - half_percent).abs() < 0.1 * half_percent, "{}: ± {half} %", world.name);
    }
}

#[test]
#[ignore = "takes minutes without optimization: .ci/run runs it optimized"]
fn change_is_flagged_and_false_flags_are_rare() {
    let flags = |world: &World, step: f64| {
        let scenario = Scenario { change: Some((28, [0.0, step.ln()])), ..Scenario::eight_weeks([0.0, 0.0]) };
        let by_day = |seed| day_medians(&simulate_rounds(world, &scenario, seed), 0, 1);
        (0..REPLICATES).filter(|seed| best_split(&by_day(*seed)).unwrap().is_change()).count()
    };
    for world in [World::WIRED, World::TYPICAL, World::ROUGH] {
        assert!(flags(&world, 1.0) <= 5, "{}", world.name);
    }
    assert!(flags(&World::WIRED, 1.10) >= 510);
    assert!(flags(&World::TYPICAL, 1.20) >= 540);
}

/// A firmware step that affects both targets cancels out, because targets are paired by round.
#[test]
#[ignore = "takes minutes without optimization: .ci/run runs it optimized"]
fn common_firmware_step_is_no_change_of_the_ratio() {
    let world = World { firmware_step: 0.5, ..World::WIRED };
    let by_day = |seed| day_medians(&simulate_rounds(&world, &Scenario::eight_weeks([0.0, 0.0]), seed), 0, 1);
    assert!((0..REPLICATES).filter(|seed| best_split(&by_day(*seed)).unwrap().is_change()).count() <= 5);
}

#[test]
#[ignore = "takes minutes without optimization: .ci/run runs it optimized"]
fn hangs_change_time_waited_but_hardly_the_speed() {
    let scenario = Scenario { hang_shares: Some([0.004, 0.03]), ..Scenario::eight_weeks([0.0, 0.0]) };
    let (mut speed, mut waited, mut proven) = (0.0, (0.0, 0.0), 0);
    for seed in 0..REPLICATES {
        let rounds = simulate_rounds(&World::TYPICAL, &scenario, seed);
        speed += DaySeries::from_days(&day_medians(&rounds, 0, 1)).unwrap().mean() / REPLICATES as f64;
        for round in &rounds {
            waited = (waited.0 + round.seconds[0], waited.1 + round.seconds[1]);
        }
        let failed: Vec<(bool, bool)> = rounds.iter().map(|round| (round.hung[0], round.hung[1])).collect();
        proven += u32::from(DiscordantEpisodes::from_rounds(&failed).ln_e_value() >= 20f64.ln());
    }
    assert!(speed.abs() < 0.02, "{speed}");
    assert!(waited.1 / waited.0 > 1.2, "{}", waited.1 / waited.0);
    assert!((0.5..=0.95).contains(&(f64::from(proven) / REPLICATES as f64)), "{proven}");
}

/// Returns the index of a workload with one metric.
fn backup() -> usize {
    let place = TASKS.iter().position(|workload| workload.name() == "incremental-backup");
    place.expect("TASKS has a backup")
}

/// Returns the history of two targets with a true ratio and one task.
fn pair(world: &World, ratio: f64, seed: u64) -> History {
    simulated_history(&simulate_rounds(world, &Scenario::eight_weeks([0.0, ratio.ln()]), seed), &[backup()])
}

/// Returns the interval and the verdict at the end of a day; `None` while the interval is infinite.
fn verdict_on_day(history: &History, day: i64) -> Option<(IntervalAtDay, Verdict)> {
    verdict_with_interval(weekly_at_end_of_day(history, day).pairs.first()?.tasks.first()?)
}

#[test]
#[ignore = "takes minutes without optimization: .ci/run runs it optimized"]
fn summary_rarely_claims_a_difference_of_equal_targets() {
    let claims = |world: &World| {
        let claims = |history: &History, day| {
            verdict_on_day(history, day).is_some_and(|(_, verdict)| claims_a_difference(verdict))
        };
        let ever = |seed: &u64| {
            let history = pair(world, 1.0, *seed);
            (0..56).any(|day| claims(&history, day))
        };
        (0..SUMMARIES).filter(ever).count()
    };
    let counts = [World::WIRED, World::TYPICAL, World::ROUGH].map(|world| claims(&world));
    let share = counts.iter().sum::<usize>() as f64 / (3 * SUMMARIES) as f64;
    assert!(share <= 0.05, "{counts:?} of {SUMMARIES}");
}

#[test]
#[ignore = "takes minutes without optimization: .ci/run runs it optimized"]
fn summary_never_names_the_slower_target() {
    for world in World::ALL {
        for seed in 0..SUMMARIES {
            let named =
                verdict_on_day(&pair(&world, 1.15, seed), 55).filter(|(_, verdict)| verdict.has_winner());
            assert!(named.is_none_or(|(look, _)| look.interval.0 > 0.0), "{}, seed {seed}", world.name);
        }
    }
}

/// The summary counts every round since the first one, with the warm-up that verdicts leave out.
#[test]
#[ignore = "takes minutes without optimization: .ci/run runs it optimized"]
fn summary_speaks_of_the_rounds_so_far_from_the_first_day() {
    let scenario = Scenario { hang_shares: Some([0.0; 2]), ..Scenario::eight_weeks([0.0, 0.3]) };
    let rounds = simulate_rounds(&World::WIRED, &scenario, 5);
    let weekly = weekly_at_end_of_day(&simulated_history(&rounds, &[backup()]), 1);
    let made: Vec<f64> = rounds
        .iter()
        .filter(|round| round.day <= 1)
        .map(|round| (round.seconds[1] / round.seconds[0]).ln())
        .collect();
    let (low, high) = RoundSeries::from_rounds(&made).unwrap().interval(0.05);
    for comparison in [&weekly.pairs[0].tasks[0], weekly.pairs[0].headline.as_ref().unwrap()] {
        let (so_far, ratio) = (comparison.so_far, comparison.so_far.ratio.unwrap());
        assert_eq!((so_far.rounds, ratio.days), (made.len(), 2));
        assert!((ratio.low.ln() - low).abs() < 1e-12 && (ratio.high.ln() - high).abs() < 1e-12, "{ratio:?}");
        assert_eq!((comparison.verdict, comparison.ratio), (Verdict::NotEnoughData, None));
    }
}

/// The weekly summary computes the interval from runs. The result must equal the interval computed directly from days.
#[test]
#[ignore = "takes minutes without optimization: .ci/run runs it optimized"]
fn summary_interval_equals_interval_of_its_days() {
    // The day of the first run and the next day are warm-up.
    let first_counted_day = 2;
    let scenario = Scenario { hang_shares: Some([0.0; 2]), ..Scenario::eight_weeks([0.0, 0.3]) };
    let rounds = simulate_rounds(&World::WIRED, &scenario, 5);
    let days: Vec<(i64, f64)> =
        day_medians(&rounds, 0, 1).into_iter().filter(|(day, _)| *day >= first_counted_day).collect();
    let weekly = weekly_at_end_of_day(&simulated_history(&rounds, &[backup()]), 55);
    let (look, verdict) = verdict_with_interval(&weekly.pairs[0].tasks[0]).unwrap();
    let (low, high) = DaySeries::from_days(&days).unwrap().interval(0.05);
    assert_eq!((look.days, verdict), (days.len(), Verdict::ClearlyFaster));
    assert!((look.interval.0 - low).abs() < 1e-12 && (look.interval.1 - high).abs() < 1e-12, "{look:?}");
    assert_eq!(weekly.pairs[0].headline.as_ref().map(|headline| headline.verdict), Some(verdict));
}

/// Returns the first comparison of a week at the end of a day, in a world with known round trip times.
fn comparison_at_round_trip(world: &World, ratio: f64, seed: u64) -> Comparison {
    let history = pair(world, ratio, seed);
    weekly_at_end_of_day(&history, 55).pairs[0].tasks[0].clone()
}

#[test]
#[ignore = "takes minutes without optimization: .ci/run runs it optimized"]
fn summary_is_true_at_its_round_trip_time() {
    let world = World::WITH_ROUND_TRIP[0];
    let wander = world.round_trip.unwrap();
    let (mut missed, mut narrower) = (0, 0);
    for seed in 0..SUMMARIES {
        let found = comparison_at_round_trip(&world, 1.1, seed);
        let (at, ratio) = (found.at_round_trip.unwrap(), found.ratio.unwrap());
        let truth = 1.1 * wander.ln_ratio(at.at_rtt_ms).exp();
        missed += u32::from(!(ratio.low..=ratio.high).contains(&truth));
        let unadjusted = at.unadjusted.ratio.unwrap();
        narrower += u64::from(ratio.high / ratio.low < unadjusted.high / unadjusted.low);
    }
    assert!(missed <= 1, "{missed} of {SUMMARIES}");
    assert_eq!(narrower, SUMMARIES);
}

#[test]
#[ignore = "takes minutes without optimization: .ci/run runs it optimized"]
fn summary_without_round_trip_times_is_not_adjusted() {
    let found = comparison_at_round_trip(&World::TYPICAL, 1.1, 1);
    assert_eq!((found.at_round_trip, found.rtt_unused), (None, None));
}

/// Targets that drift against each other are called different in at most one in twenty eight-week histories.
#[test]
#[ignore = "takes minutes without optimization: .ci/run runs it optimized"]
fn drifting_ratio_is_rarely_claimed_as_a_difference() {
    let claims = |seed: &u64| {
        let days = day_medians(
            &simulate_rounds(&World::OWN_DRIFT, &Scenario::eight_weeks([0.0; 2]), 9_000 + *seed),
            0,
            1,
        );
        (MIN_VERDICT_DAYS..=days.len()).any(|count| {
            let series = DaySeries::from_days(&days[..count]).unwrap();
            series.mean().abs() > series.claim_distance(0.05)
        })
    };
    let count = (0..REPLICATES).filter(claims).count();
    assert!(count as f64 <= 0.06 * REPLICATES as f64, "{count} of {REPLICATES}");
}
