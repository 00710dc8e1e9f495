//! Scenarios: what happened in some weeks, and what the summary has to say of it.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;

use super::*;
use crate::model::{Event, Outcome, Role, RoundStatus, Scale};
use crate::workloads::WORKLOADS;

/// Monday of 2026-W40.
const MONDAY: i64 = 20_724;
const DAY_US: i64 = 86_400_000_000;

/// What some weeks were like.
struct World {
    history: History,
    rounds_a_day: i64,
}

/// What a run is, given target, day and round of the day.
type Story<'s> = &'s dyn Fn(usize, i64, i64) -> (Outcome, f64);

impl World {
    fn new(targets: &[(&str, Role)]) -> Self {
        let targets: Vec<KeptTarget> = targets
            .iter()
            .map(|(name, role)| KeptTarget { name: name.parse().unwrap(), role: *role })
            .collect();
        let epochs = targets.iter().enumerate().map(|(place, target)| KeptEpoch {
            number: place as i64 + 1,
            target: target.name.clone(),
            opened_us: MONDAY * DAY_US,
            protocol: Some(if place == 0 { "SMB 3.1.1" } else { "NFS 4.2" }.to_owned()),
        });
        let epochs = epochs.collect();
        Self { history: History { targets, epochs, ..History::default() }, rounds_a_day: 8 }
    }

    /// Two shares.
    fn pair() -> Self {
        Self::new(&[("smb", Role::Share), ("nfs", Role::Share)])
    }

    /// Lives through some days.
    fn live(mut self, days: std::ops::Range<i64>, story: Story<'_>) -> Self {
        for day in days {
            for turn in 0..self.rounds_a_day {
                self.round((day, turn), RoundStatus::Ok, story);
            }
        }
        self
    }

    fn round(&mut self, (day, turn): (i64, i64), status: RoundStatus, story: Story<'_>) {
        let number = self.history.rounds.len() as i64 + 1;
        let started_us = (MONDAY + day) * DAY_US + turn * 3_600_000_000;
        self.history.rounds.push(KeptRound {
            number,
            started_us,
            utc_offset_seconds: 0,
            scale: Scale::Standard,
            status: Some(status),
            reason: None,
        });
        let cells = (0..WORKLOADS.len())
            .flat_map(|workload| (0..self.history.targets.len()).map(move |target| (workload, target)));
        for (workload, target) in cells.collect::<Vec<_>>() {
            let (outcome, seconds) = story(target, day, turn);
            self.history.runs.push(KeptRun {
                number: self.history.runs.len() as i64 + 1,
                round: number,
                epoch: target as i64 + 1,
                target,
                workload,
                scale: Scale::Standard,
                outcome,
                started_us,
                seconds,
                times: (0..WORKLOADS[workload].endpoints().len())
                    .filter(|_| outcome == Outcome::Ok)
                    .fold(crate::model::Times::NONE, |times, place| times.with(place, seconds)),
            });
        }
    }

    fn after_days(&self, days: i64) -> Weekly {
        let week = Week::of_day(MONDAY + days - 1);
        weekly(&self.history, &Question { week, scale: None, zone: TimeZone::UTC })
    }
}

/// A share that takes `seconds` and, deterministically, a little more or less from round to round and day to day.
fn around(seconds: f64, target: usize, day: i64, turn: i64) -> (Outcome, f64) {
    let wobble = ((day * 31 + turn * 17 + target as i64 * 13) % 23) as f64 / 23.0 - 0.5;
    (Outcome::Ok, seconds * (1.0 + 0.1 * wobble))
}

fn headline(weekly: &Weekly) -> &Comparison {
    weekly.pairs[0].headline.as_ref().unwrap()
}

#[test]
fn a_fifth_less_time_is_found_after_the_opening_day_and_not_before() {
    let story = |target, day, turn| around(if target == 0 { 8.0 } else { 10.0 }, target, day, turn);
    let world = World::pair().live(0..28, &story);
    let early = world.after_days(14);
    assert_eq!(headline(&early).verdict, Verdict::NotEnoughData, "12 settled days");
    assert!(headline(&early).text.contains("About 2 days more."), "{}", headline(&early).text);
    let later = world.after_days(21);
    assert_eq!(headline(&later).verdict, Verdict::ClearlyFaster);
    assert_eq!(
        (headline(&early).is_steady, headline(&world.after_days(7)).is_steady),
        (Some(true), Some(true))
    );
    assert_eq!(headline(&later).winner().map(|name| name.as_str()), Some("smb"));
    let text = &headline(&later).text;
    assert!(text.starts_with("smb is clearly faster than nfs for all tasks together: 2"), "{text}");
    assert!(text.contains("less time (") && text.contains("of 152 rounds"), "{text}");
    assert_eq!(later.scores.iter().map(|scores| scores.rank).collect::<Vec<_>>(), [(1, 1), (2, 2)]);
}

#[test]
fn two_equal_shares_have_no_real_difference() {
    let world = World::pair().live(0..28, &|target, day, turn| around(5.0, target, day, turn));
    let weekly = world.after_days(28);
    assert_eq!(headline(&weekly).verdict, Verdict::NoRealDifference, "{}", headline(&weekly).text);
    assert!(weekly.pairs[0].tasks.iter().all(|task| !task.verdict.names_a_winner()));
}

#[test]
fn a_share_that_always_hangs_is_slower_by_its_cap_and_proven_less_reliable_only_once_it_recovers_often() {
    let story = |target: usize, day: i64, turn: i64| match target {
        1 if day >= 2 => (Outcome::Hung, 900.0),
        _ => around(5.0, target, day, turn),
    };
    let weekly = World::pair().live(0..21, &story).after_days(21);
    let headline = headline(&weekly);
    assert_eq!(headline.verdict, Verdict::ClearlyFaster);
    // 20 times 5 seconds.
    assert!((headline.ratio.unwrap().value - 20.0).abs() < 0.5, "{:?}", headline.ratio);
    assert_eq!(weekly.failures[1].episodes, 1);
    assert_eq!(weekly.failures[1].hung_runs, 19 * 8 * WORKLOADS.len());
    assert_eq!(weekly.pairs[0].reliability.verdict, ReliabilityVerdict::NotProven);
    // A run of four endpoints of five seconds that hangs is waited for once, until its cap.
    let endpoints: usize = WORKLOADS.iter().map(|workload| workload.endpoints().len()).sum();
    let expected = 100.0 * WORKLOADS.len() as f64 / (5.0 * endpoints as f64);
    assert!((headline.waited.unwrap().value - expected).abs() < 0.5, "{:?} {expected}", headline.waited);
}

#[test]
fn the_faster_one_is_not_called_better_if_it_fails_more() {
    let story = |target: usize, day: i64, turn: i64| match (target, turn) {
        (0, 3) if day % 2 == 0 => (Outcome::Error, 0.01),
        (0, _) => around(5.0, target, day, turn),
        _ => around(8.0, target, day, turn),
    };
    let weekly = World::pair().live(0..28, &story).after_days(28);
    assert!(
        headline(&weekly).text.starts_with("Faster but less reliable: smb"),
        "{}",
        headline(&weekly).text
    );
    assert_eq!(weekly.scores[0].rank, (1, 2), "no place is won by failing more");
}

#[test]
fn a_week_alone_gets_no_verdict_and_a_week_without_data_says_so() {
    let story = |target, day, turn| around(if target == 0 { 8.0 } else { 10.0 }, target, day, turn);
    let world = World::pair().live(0..28, &story);
    let first = world.after_days(7);
    assert!(first.pairs.iter().flat_map(|pair| &pair.tasks).all(|task| !task.verdict.is_decided()));
    let before = weekly(
        &world.history,
        &Question { week: Week::of_day(MONDAY - 7), scale: None, zone: TimeZone::UTC },
    );
    assert_eq!((before.rounds.planned, before.pairs.len(), before.scale), (0, 0, None));
    let empty =
        weekly(&History::default(), &Question { week: Week::of_day(0), scale: None, zone: TimeZone::UTC });
    assert!(empty.table.is_empty() && empty.targets.is_empty());
}

#[test]
fn a_baseline_is_shown_and_never_compared() {
    let world = World::new(&[("smb", Role::Share), ("local", Role::Baseline)]);
    let weekly = world.live(0..20, &|target, day, turn| around(5.0, target, day, turn)).after_days(20);
    assert_eq!((weekly.pairs.len(), weekly.targets.len(), weekly.scores.len()), (0, 2, 1));
    assert_eq!(weekly.table[0].targets.len(), 2);
}

#[test]
fn a_new_epoch_starts_anew_and_says_what_it_left_out() {
    let story = |target, day, turn| around(if target == 0 { 8.0 } else { 10.0 }, target, day, turn);
    let mut world = World::pair().live(0..28, &story);
    let switched = world.history.rounds.iter().find(|round| round.day() == MONDAY + 20).unwrap().number;
    world.history.epochs.push(KeptEpoch { number: 9, ..world.history.epochs[1].clone() });
    for run in world.history.runs.iter_mut().filter(|run| run.target == 1 && run.round >= switched) {
        run.epoch = 9;
    }
    let weekly = world.after_days(28);
    assert_eq!(headline(&weekly).ratio.map(|ratio| ratio.days), Some(6), "of eight days two settle in");
    assert!(
        weekly
            .left_out
            .iter()
            .any(|left| left.reason.contains("protocol") && left.runs == 20 * 8 * WORKLOADS.len())
    );
    assert_eq!(weekly.targets[1].epochs, 2);
}

#[test]
fn a_change_at_an_event_splits_the_verdict() {
    let story = |target: usize, day: i64, turn: i64| match target {
        1 if day >= 28 => around(5.0, target, day, turn),
        1 => around(10.0, target, day, turn),
        _ => around(5.0, target, day, turn),
    };
    let mut world = World::pair().live(0..56, &story);
    world.history.events.push(Event {
        target: None,
        kind: "os-update".to_owned(),
        detail: serde_json::json!({"before": "26.0", "after": "26.1"}),
        at_us: (MONDAY + 28) * DAY_US,
    });
    let weekly = world.after_days(56);
    let headline = headline(&weekly);
    assert_eq!(headline.verdict, Verdict::NoRealDifference);
    assert!(headline.text.starts_with("It changed on 2026-1"), "{}", headline.text);
    assert!(headline.text.contains("os-update"), "{}", headline.text);
    let change = headline.change.as_ref().unwrap();
    world.history.premises.mix = BTreeMap::from([("incremental-backup/backup".to_owned(), 7.0)]);
    let minutes = world.after_days(56).pairs[0].minutes_a_week.unwrap();
    assert_eq!(minutes.days, headline.days.len(), "minutes are about the same days: {minutes:?}");
    assert!((change.ratio_before - 2.0).abs() < 0.1 && (change.ratio_after - 1.0).abs() < 0.05);
}

#[test]
fn void_and_skipped_rounds_are_counted_and_give_nothing() {
    let story = |target, day, turn| around(5.0, target, day, turn);
    let mut world = World::pair().live(0..3, &story);
    world.round((2, 9), RoundStatus::Void, &|_, _, _| (Outcome::Ok, 0.001));
    world.round((2, 10), RoundStatus::Skipped, &|_, _, _| (Outcome::Void, 0.0));
    let weekly = world.after_days(3);
    assert_eq!(weekly.rounds.planned, 26);
    assert_eq!(weekly.rounds.by_status, BTreeMap::from([("ok", 24), ("skipped", 1), ("void", 1)]));
    assert_eq!(headline(&weekly).rounds.complete, 8);
    assert_eq!(headline(&weekly).rounds.planned, 10);
}

#[test]
fn minutes_a_week_follow_from_the_persons_own_mix() {
    let story = |target: usize, day, turn| around(if target == 0 { 60.0 } else { 120.0 }, target, day, turn);
    let mut world = World::pair().live(0..28, &story);
    assert_eq!(world.after_days(28).pairs[0].minutes_a_week, None);
    world.history.premises.mix = BTreeMap::from([("incremental-backup/backup".to_owned(), 7.0)]);
    let minutes = world.after_days(28).pairs[0].minutes_a_week.unwrap();
    assert!((minutes.value - 7.0).abs() < 0.3 && minutes.low < 7.0 && minutes.high > 7.0, "{minutes:?}");
    assert!((minutes.covered - 1.0).abs() < 1e-12);
}

#[test]
fn the_same_history_gives_the_same_bytes() {
    let story = |target, day, turn| around(if target == 0 { 8.0 } else { 10.0 }, target, day, turn);
    let world = World::pair().live(0..28, &story);
    let bytes = || serde_json::to_string(&world.after_days(28)).unwrap();
    assert_eq!(bytes(), bytes());
}
