//! Scenario tests: simulated weeks of measurements and the weekly summary that they must produce.

mod advice;
mod changing_targets;
mod planned_rounds;

use std::collections::BTreeMap;

use jiff::tz::TimeZone;

use super::*;
use longhaul_model::STANDARD_TASKS as TASKS;
use longhaul_model::time::{DAY, HOUR, Timestamp};
use longhaul_model::{EpochRecord, History, RoundRecord, RunRecord, TargetRecord};
use longhaul_model::{Event, Outcome, Role, RoundStatus, Scale};

/// Monday of 2026-W40.
const MONDAY: i64 = 20_724;

/// Simulated measurements of several weeks.
struct World {
    history: History,
    rounds_a_day: i64,
}

/// Function that gives the outcome and seconds of a run, from target index, day and round of the day.
type Scenario<'s> = &'s dyn Fn(usize, i64, i64) -> (Outcome, f64);

/// Returns the start of a day, counted from the first Monday.
fn midnight(day: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + (MONDAY + day) as u32 * DAY
}

impl World {
    fn new(targets: &[(&str, Role)]) -> Self {
        let targets: Vec<TargetRecord> = targets
            .iter()
            .map(|(name, role)| TargetRecord { name: name.parse().unwrap(), role: *role })
            .collect();
        let epochs = targets.iter().enumerate().map(|(place, target)| EpochRecord {
            number: place as i64 + 1,
            target: target.name.clone(),
            opened_us: midnight(0),
            protocol: Some(if place == 0 { "SMB 3.1.1" } else { "NFS 4.2" }.to_owned()),
        });
        let epochs = epochs.collect();
        Self { history: History { targets, epochs, ..History::default() }, rounds_a_day: 8 }
    }

    /// Creates a world with two shares, `smb` and `nfs`.
    fn pair() -> Self {
        Self::new(&[("smb", Role::Share), ("nfs", Role::Share)])
    }

    /// Simulates all rounds of the given days.
    fn simulate(mut self, days: std::ops::Range<i64>, scenario: Scenario<'_>) -> Self {
        for day in days {
            for turn in 0..self.rounds_a_day {
                self.round(day, turn, RoundStatus::Ok, scenario);
            }
        }
        self
    }

    fn round(&mut self, day: i64, turn: i64, status: RoundStatus, scenario: Scenario<'_>) {
        let number = self.history.rounds.len() as i64 + 1;
        let started = midnight(day) + turn as u32 * HOUR;
        self.history.rounds.push(RoundRecord {
            number,
            started_us: started,
            utc_offset_seconds: 0,
            scale: Scale::Standard,
            status: Some(status),
            reason: None,
        });
        let cells = (0..TASKS.len())
            .flat_map(|workload| (0..self.history.targets.len()).map(move |target| (workload, target)));
        for (workload, target) in cells.collect::<Vec<_>>() {
            let (outcome, seconds) = scenario(target, day, turn);
            self.history.runs.push(RunRecord {
                number: self.history.runs.len() as i64 + 1,
                round: number,
                epoch: target as i64 + 1,
                target,
                workload,
                scale: Scale::Standard,
                outcome,
                started,
                seconds,
                times: (0..TASKS[workload].metrics().len())
                    .filter(|_| outcome == Outcome::Ok)
                    .fold(longhaul_model::MetricTimes::NONE, |times, place| times.with(place, seconds)),
                rtt: None,
            });
        }
    }

    fn after_days(&self, days: i64) -> WeeklySummary {
        let week = Week::of_day(MONDAY + days - 1);
        summarize_week(&self.history, &WeeklyQuery { week, scale: None, since: None, zone: TimeZone::UTC })
    }
}

/// Returns a successful run of about `seconds`, with deterministic noise of ±5 % that varies by target, day and
/// round.
fn noisy_time(seconds: f64, target: usize, day: i64, turn: i64) -> (Outcome, f64) {
    let wobble = ((day * 31 + turn * 17 + target as i64 * 13) % 23) as f64 / 23.0 - 0.5;
    (Outcome::Ok, seconds * (1.0 + 0.1 * wobble))
}

fn headline(weekly: &WeeklySummary) -> &Comparison {
    weekly.pairs[0].headline.as_ref().unwrap()
}

#[test]
fn twenty_percent_is_found_only_after_fourteen_days() {
    let scenario = |target, day, turn| noisy_time(if target == 0 { 8.0 } else { 10.0 }, target, day, turn);
    let world = World::pair().simulate(0..28, &scenario);
    let early = world.after_days(14);
    assert_eq!(headline(&early).verdict, Verdict::NotEnoughData, "only 12 days remain after the warm-up");
    assert_eq!(headline(&early).days_needed, Some(2));
    let later = world.after_days(21);
    assert_eq!(headline(&later).verdict, Verdict::ClearlyFaster);
    assert_eq!(
        (headline(&early).is_steady, headline(&world.after_days(7)).is_steady),
        (Some(true), Some(true))
    );
    assert_eq!(headline(&later).winner().map(|name| name.as_str()), Some("smb"));
    assert_eq!(headline(&later).rounds.complete, 152);
    assert_eq!(later.scores.iter().map(|scores| scores.rank).collect::<Vec<_>>(), [(1, 1), (2, 2)]);
}

#[test]
fn a_report_from_a_day_on_does_not_warm_up_again() {
    let scenario = |target, day, turn| noisy_time(if target == 0 { 8.0 } else { 10.0 }, target, day, turn);
    let world = World::pair().simulate(0..28, &scenario);
    let week = Week::of_day(MONDAY + 27);
    let since = |day: i64| {
        let query = WeeklyQuery { week, scale: None, since: Some(MONDAY + day), zone: TimeZone::UTC };
        summarize_week(&world.history, &query)
    };
    let days = |weekly: &WeeklySummary| headline(weekly).days.len();
    assert_eq!((days(&since(0)), days(&since(2))), (26, 26), "the first two days are warm-up");
    assert_eq!(days(&since(10)), 18, "all 18 days from day 10 on count");
    assert_eq!(headline(&since(10)).so_far.rounds, 18 * 8);
    assert_eq!(headline(&since(10)).rounds.planned, 18 * 8);
}

#[test]
fn two_equal_shares_have_no_real_difference() {
    let world = World::pair().simulate(0..28, &|target, day, turn| noisy_time(5.0, target, day, turn));
    let weekly = world.after_days(28);
    assert_eq!(headline(&weekly).verdict, Verdict::NoRealDifference, "{:?}", headline(&weekly));
    assert!(weekly.pairs[0].tasks.iter().all(|task| !task.verdict.has_winner()));
}

#[test]
fn permanent_hang_counts_as_cap_and_as_one_episode() {
    let scenario = |target: usize, day: i64, turn: i64| match target {
        1 if day >= 2 => (Outcome::Hung, 900.0),
        _ => noisy_time(5.0, target, day, turn),
    };
    let weekly = World::pair().simulate(0..21, &scenario).after_days(21);
    let headline = headline(&weekly);
    assert_eq!(headline.verdict, Verdict::ClearlyFaster);
    // A failure counts as 20 times the usual 5 seconds.
    assert!((headline.ratio.unwrap().value - 20.0).abs() < 0.5, "{:?}", headline.ratio);
    assert_eq!(weekly.failures[1].episodes, 1);
    assert_eq!(weekly.failures[1].hung_runs, 19 * 8 * TASKS.len());
    assert_eq!(weekly.pairs[0].reliability.verdict, ReliabilityVerdict::NotProven);
    // Each hung run counts once with its cap of 100 s, although it has several metrics of 5 s.
    let metrics: usize = TASKS.iter().map(|workload| workload.metrics().len()).sum();
    let expected = 100.0 * TASKS.len() as f64 / (5.0 * metrics as f64);
    assert!(
        (headline.wait_ratio.unwrap().value - expected).abs() < 0.5,
        "{:?} {expected}",
        headline.wait_ratio
    );
}

#[test]
fn faster_target_that_fails_more_is_not_ranked_first() {
    let scenario = |target: usize, day: i64, turn: i64| match (target, turn) {
        (0, 3) if day % 2 == 0 => (Outcome::Error, 0.01),
        (0, _) => noisy_time(5.0, target, day, turn),
        _ => noisy_time(8.0, target, day, turn),
    };
    let weekly = World::pair().simulate(0..28, &scenario).after_days(28);
    assert_eq!(headline(&weekly).winner().map(|name| name.as_str()), Some("smb"));
    assert_eq!(weekly.pairs[0].reliability.verdict, ReliabilityVerdict::WorseA);
    assert_eq!(weekly.scores[0].rank, (1, 2), "a less reliable target must not win a rank");
}

#[test]
fn single_week_and_empty_week_have_no_verdict() {
    let scenario = |target, day, turn| noisy_time(if target == 0 { 8.0 } else { 10.0 }, target, day, turn);
    let world = World::pair().simulate(0..28, &scenario);
    let first = world.after_days(7);
    assert!(first.pairs.iter().flat_map(|pair| &pair.tasks).all(|task| !task.verdict.is_decided()));
    let before = summarize_week(
        &world.history,
        &WeeklyQuery { week: Week::of_day(MONDAY - 7), scale: None, since: None, zone: TimeZone::UTC },
    );
    assert_eq!((before.rounds.planned, before.pairs.len(), before.scale), (0, 0, None));
    let empty = summarize_week(
        &History::default(),
        &WeeklyQuery { week: Week::of_day(0), scale: None, since: None, zone: TimeZone::UTC },
    );
    assert!(empty.table.is_empty() && empty.targets.is_empty());
}

#[test]
fn baseline_is_listed_but_not_compared() {
    let world = World::new(&[("smb", Role::Share), ("local", Role::Baseline)]);
    let weekly =
        world.simulate(0..20, &|target, day, turn| noisy_time(5.0, target, day, turn)).after_days(20);
    assert_eq!((weekly.pairs.len(), weekly.targets.len(), weekly.scores.len()), (0, 2, 1));
    assert_eq!(weekly.table[0].targets.len(), 2);
}

#[test]
fn new_epoch_excludes_older_runs_with_a_reason() {
    let scenario = |target, day, turn| noisy_time(if target == 0 { 8.0 } else { 10.0 }, target, day, turn);
    let mut world = World::pair().simulate(0..28, &scenario);
    let switched = world.history.rounds.iter().find(|round| round.day() == MONDAY + 20).unwrap().number;
    world.history.epochs.push(EpochRecord { number: 9, ..world.history.epochs[1].clone() });
    for run in world.history.runs.iter_mut().filter(|run| run.target == 1 && run.round >= switched) {
        run.epoch = 9;
    }
    let weekly = world.after_days(28);
    assert_eq!(headline(&weekly).ratio.map(|ratio| ratio.days), Some(6), "two of the eight days are warm-up");
    assert!(
        weekly
            .excluded
            .iter()
            .any(|excluded| excluded.reason.contains("protocol") && excluded.runs == 20 * 8 * TASKS.len())
    );
    assert_eq!(weekly.targets[1].epochs, 2);
}

#[test]
fn change_at_an_event_splits_the_comparison() {
    let scenario = |target: usize, day: i64, turn: i64| match target {
        1 if day >= 28 => noisy_time(5.0, target, day, turn),
        1 => noisy_time(10.0, target, day, turn),
        _ => noisy_time(5.0, target, day, turn),
    };
    let mut world = World::pair().simulate(0..56, &scenario);
    world.history.events.push(Event {
        target: None,
        kind: "os-update".to_owned(),
        detail: serde_json::json!({"before": "26.0", "after": "26.1"}),
        at_us: midnight(28),
    });
    let weekly = world.after_days(56);
    let headline = headline(&weekly);
    assert_eq!(headline.verdict, Verdict::NoRealDifference);
    let change = headline.change.as_ref().unwrap();
    assert_eq!(change.event.as_deref(), Some("os-update"));
    world.history.settings.usage_profile = BTreeMap::from([("incremental-backup/backup".to_owned(), 7.0)]);
    let minutes = world.after_days(56).pairs[0].weekly_minutes.unwrap();
    assert_eq!(
        minutes.days,
        headline.days.len(),
        "minutes must use the same days as the headline: {minutes:?}"
    );
    assert!((change.ratio_before - 2.0).abs() < 0.1 && (change.ratio_after - 1.0).abs() < 0.05);
}

#[test]
fn void_and_skipped_rounds_are_counted_without_values() {
    let scenario = |target, day, turn| noisy_time(5.0, target, day, turn);
    let mut world = World::pair().simulate(0..3, &scenario);
    world.round(2, 9, RoundStatus::Void, &|_, _, _| (Outcome::Ok, 0.001));
    world.round(2, 10, RoundStatus::Skipped, &|_, _, _| (Outcome::Void, 0.0));
    let weekly = world.after_days(3);
    assert_eq!(weekly.rounds.planned, 26);
    assert_eq!(weekly.rounds.by_status, BTreeMap::from([("ok", 24), ("skipped", 1), ("void", 1)]));
    assert_eq!(headline(&weekly).rounds.complete, 8);
    assert_eq!(headline(&weekly).rounds.planned, 10);
}

#[test]
fn run_at_another_scale_hides_no_results() {
    let scenario = |target, day, turn| noisy_time(5.0, target, day, turn);
    let mut world = World::pair().simulate(0..3, &scenario);
    world.round(2, 9, RoundStatus::Ok, &|_, _, _| (Outcome::Ok, 0.001));
    let last = world.history.rounds.last().unwrap().number;
    world
        .history
        .rounds
        .iter_mut()
        .filter(|round| round.number == last)
        .for_each(|round| round.scale = Scale::Quick);
    world.history.runs.iter_mut().filter(|run| run.round == last).for_each(|run| run.scale = Scale::Quick);
    assert_eq!(world.after_days(3).scale, Some(Scale::Standard), "that of most runs");
    world.history.settings.scale = Some(Scale::Quick);
    assert_eq!(world.after_days(3).scale, Some(Scale::Quick));
    world.history.settings.scale = Some(Scale::Large);
    assert_eq!(
        world.after_days(3).scale,
        Some(Scale::Standard),
        "nothing was measured at the configured scale"
    );
}

#[test]
fn weekly_minutes_follow_the_usage_profile() {
    let scenario =
        |target: usize, day, turn| noisy_time(if target == 0 { 60.0 } else { 120.0 }, target, day, turn);
    let mut world = World::pair().simulate(0..28, &scenario);
    assert_eq!(world.after_days(28).pairs[0].weekly_minutes, None);
    world.history.settings.usage_profile = BTreeMap::from([("incremental-backup/backup".to_owned(), 7.0)]);
    let minutes = world.after_days(28).pairs[0].weekly_minutes.unwrap();
    assert!((minutes.value - 7.0).abs() < 0.3 && minutes.low < 7.0 && minutes.high > 7.0, "{minutes:?}");
    assert!((minutes.measured_share - 1.0).abs() < 1e-12);
    world.history.settings.usage_profile = BTreeMap::from([("incremental-backup/backup".to_owned(), 0.0)]);
    let never = &world.after_days(28).pairs[0];
    assert_eq!((never.weekly_minutes, never.ordinary_minutes), (None, None));
}

#[test]
fn recommendation_says_that_the_profile_was_counted() {
    let scenario = |target, day, turn| noisy_time(if target == 0 { 8.0 } else { 10.0 }, target, day, turn);
    let mut world = World::pair().simulate(0..28, &scenario);
    world.history.settings.usage_profile = BTreeMap::from([("folder-index/folder-cold".to_owned(), 30.0)]);
    world.history.settings.usage_counted_days = Some(21.0);
    let saved = world.after_days(28).recommendation.minutes_a_week.unwrap();
    assert_eq!((saved.profile, saved.counted_days), (ProfileSource::Counted, Some(21.0)));
    assert!((saved.value - 1.0).abs() < 0.1, "30 waits, each 2 s longer: {saved:?}");
}

#[test]
fn same_history_gives_identical_json() {
    let scenario = |target, day, turn| noisy_time(if target == 0 { 8.0 } else { 10.0 }, target, day, turn);
    let world = World::pair().simulate(0..28, &scenario);
    let bytes = || serde_json::to_string(&world.after_days(28)).unwrap();
    assert_eq!(bytes(), bytes());
}

#[test]
fn recent_rounds_are_ok_slow_failed_missed_or_without_the_target() {
    let scenario = |target: usize, _, turn| match (target, turn) {
        (1, 2) => (Outcome::Ok, 8.0),
        (1, 3) => (Outcome::Hung, 900.0),
        (1, 4) => (Outcome::Unavailable, 0.0),
        _ => (Outcome::Ok, 5.0),
    };
    let mut world = World::pair().simulate(0..1, &scenario);
    world.history.rounds[5].status = Some(RoundStatus::Void);
    let last = world.history.rounds[7].number;
    world.history.runs.retain(|run| run.target == 0 || run.round != last);
    let states = |target: usize| -> Vec<RoundState> {
        recent_rounds(&world.history, 7)[target].rounds.iter().map(|(_, state)| *state).collect()
    };
    use RoundState::{Absent, Failed, Missed, Ok, Slow};
    assert_eq!(states(0), [Ok, Ok, Ok, Ok, Missed, Ok, Ok], "the oldest of eight rounds is not shown");
    assert_eq!(states(1), [Ok, Slow, Failed, Missed, Missed, Ok, Absent]);
}

#[test]
fn round_at_another_scale_is_not_slow() {
    let scenario = |_, _, turn| (Outcome::Ok, if turn == 5 { 50.0 } else { 5.0 });
    let mut world = World::pair().simulate(0..1, &scenario);
    let slow = |world: &World| {
        let shown = recent_rounds(&world.history, 7);
        shown[0].rounds.iter().filter(|(_, state)| *state == RoundState::Slow).count()
    };
    assert_eq!(slow(&world), 1);
    let large = world.history.rounds[5].number;
    for run in world.history.runs.iter_mut().filter(|run| run.round == large) {
        run.scale = Scale::Large;
    }
    assert_eq!(slow(&world), 0);
}

#[test]
fn target_has_no_part_in_rounds_that_were_not_for_it() {
    let mut world = World::pair().simulate(0..1, &|_, _, _| (Outcome::Ok, 5.0));
    let rounds = &mut world.history.rounds;
    for (index, status) in [
        (1, RoundStatus::Skipped),
        (2, RoundStatus::Void),
        (4, RoundStatus::CutShort),
        (6, RoundStatus::Skipped),
    ] {
        rounds[index].status = Some(status);
    }
    let of = |index: usize| rounds[index].number;
    let (without, added, cut, removed) = ([of(1), of(2), of(6)], of(3), of(4), of(5));
    world.history.runs.retain(|run| {
        let has_part = run.target == 0 || (run.round >= added && run.round != cut);
        has_part && !without.contains(&run.round)
    });
    let states = |target: usize, history: &History| -> Vec<RoundState> {
        recent_rounds(history, 7)[target].rounds.iter().map(|(_, state)| *state).collect()
    };
    use RoundState::{Absent, Missed, Ok};
    assert_eq!(states(0, &world.history), [Missed, Missed, Ok, Ok, Ok, Missed, Ok]);
    assert_eq!(states(1, &world.history), [Absent, Absent, Ok, Absent, Ok, Missed, Ok]);
    world.history.targets[1].role = Role::Baseline;
    assert_eq!(states(1, &world.history), [Absent, Absent, Ok, Absent, Ok, Absent, Ok]);
    world.history.targets[1].role = Role::Share;
    world.history.runs.retain(|run| run.target == 0 || run.round < removed);
    assert_eq!(states(1, &world.history), [Absent, Absent, Ok, Absent, Absent, Absent, Absent]);
}

#[test]
fn share_with_a_mismatch_is_not_called_better() {
    let scenario = |target, day, turn| noisy_time(if target == 0 { 8.0 } else { 10.0 }, target, day, turn);
    let world = World::pair().simulate(0..28, &scenario);
    let with_mismatch = |target: &str, at: Timestamp| {
        let (target, kind) = (Some(target.parse().unwrap()), longhaul_model::Mismatch::EVENT.to_owned());
        let event = Event { target, kind, detail: serde_json::Value::Null, at_us: at };
        let history = History { events: vec![event], ..world.history.clone() };
        World { history, rounds_a_day: 8 }.after_days(28)
    };
    let names = |weekly: &WeeklySummary| {
        let winner = weekly.pairs[0].winner().map(ToString::to_string);
        (winner, weekly.recommendation.target.as_ref().map(ToString::to_string))
    };
    let smb = Some("smb".to_owned());
    assert_eq!(names(&with_mismatch("smb", midnight(20))), (None, None));
    assert_eq!(names(&with_mismatch("nfs", midnight(20))), (smb.clone(), smb.clone()), "the slower one");
    assert_eq!(names(&with_mismatch("smb", midnight(-3))), (smb.clone(), smb.clone()), "an earlier epoch");
    assert_eq!(names(&with_mismatch("smb", midnight(40))), (smb.clone(), smb), "after the week");
}
