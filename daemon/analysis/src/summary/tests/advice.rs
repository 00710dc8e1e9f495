//! Scenarios of what is recommended, and of shares that take less time and are not.

use super::*;

/// Returns a successful run on smb of 10 s, and on nfs of `factor` times as much.
fn times(factor: f64, (target, day, turn): (usize, i64, i64)) -> (Outcome, f64) {
    noisy_time(if target == 0 { 10.0 } else { 10.0 * factor }, target, day, turn)
}

/// Returns the summary of four weeks in which nfs takes a number of times as long as smb that depends on day and round.
fn four_weeks(factor: &dyn Fn(i64, i64) -> f64) -> WeeklySummary {
    World::pair()
        .simulate(0..28, &|target, day, turn| times(factor(day, turn), (target, day, turn)))
        .after_days(28)
}

fn objection(weekly: &WeeklySummary) -> &Objection {
    assert_eq!((&weekly.recommendation.target, weekly.recommendation.confidence), (&None, None));
    &weekly.recommendation.withheld.as_ref().expect("a share that took less time").objection
}

/// Changes the times of some tasks on nfs.
fn scale_on_nfs(world: &mut World, factor: impl Fn(usize) -> f64) {
    for run in world.history.runs.iter_mut().filter(|run| run.target == 1) {
        let seconds = run.seconds * factor(run.workload);
        for place in 0..TASKS[run.workload].metrics().len() {
            run.times = run.times.with(place, seconds);
        }
    }
}

#[test]
fn recommendation_follows_verdict_and_rounds_so_far() {
    let scenario = |target, day, turn| noisy_time(if target == 0 { 8.0 } else { 10.0 }, target, day, turn);
    let recommended = |days| World::pair().simulate(0..days, &scenario).after_days(days).recommendation;
    let name = |recommendation: &Recommendation| recommendation.target.as_ref().map(ToString::to_string);
    let (first_hours, early, late) = (recommended(1), recommended(4), recommended(28));
    assert_eq!((name(&first_hours), first_hours.confidence), (None, None), "8 rounds are too few");
    assert_eq!((name(&early), early.confidence), (Some("smb".to_owned()), Some(Confidence::SoFar)));
    assert_eq!(early.minutes_a_week, None);
    assert_eq!((name(&late), late.confidence), (Some("smb".to_owned()), Some(Confidence::Decided)));
    // 163 waits of an ordinary week, each 2 s longer on nfs.
    let saved = late.minutes_a_week.unwrap();
    assert!((saved.value - 163.0 * 2.0 / 60.0).abs() < 0.3 && saved.low > 4.0, "{saved:?}");
    assert_eq!((saved.instead_of.as_str(), saved.profile), ("nfs", ProfileSource::OrdinaryWeek));
}

/// Its total includes pauses, which are the same on both.
#[test]
fn time_waiting_of_a_recording_decides_if_nothing_else_is_measured() {
    let mut world = World::pair().simulate(0..28, &|target, day, turn| times(2.0, (target, day, turn)));
    let own = longhaul_model::TASKS.iter().position(|task| task.name() == "your-day").unwrap();
    world.history.runs.retain(|run| run.workload == 0);
    // One round of another task, made by hand, on which nfs took less time.
    let last = world.history.runs.last().unwrap().round;
    let mut by_hand: Vec<_> = world.history.runs.iter().filter(|run| run.round == last).cloned().collect();
    by_hand.iter_mut().for_each(|run| run.times = run.times.with(0, 10.0 / run.seconds));
    for run in &mut world.history.runs {
        run.workload = own;
        run.times = longhaul_model::MetricTimes::NONE.with(0, 60.0).with(1, run.seconds);
    }
    world.history.runs.extend(by_hand);
    let weekly = world.after_days(28);
    let ratio = headline(&weekly).ratio.unwrap();
    assert!((ratio.value - 2.0).abs() < 0.02, "{ratio:?}");
    let waited = headline(&weekly).wait_ratio.unwrap();
    assert!((waited.value - 2.0).abs() < 0.02, "without the pauses: {waited:?}");
    assert_eq!(weekly.recommendation.target.map(|name| name.to_string()), Some("smb".to_owned()));
}

#[test]
fn equal_shares_get_no_recommendation_but_an_answer() {
    let scenario = |target, day, turn| noisy_time(8.0, target, day, turn);
    let recommendation = World::pair().simulate(0..28, &scenario).after_days(28).recommendation;
    assert_eq!((recommendation.target, recommendation.confidence), (None, Some(Confidence::NoDifference)));
}

#[test]
fn faster_share_that_fails_more_often_is_not_recommended() {
    let scenario = |target, day, turn| match (target, turn) {
        (0, 3) => (Outcome::Error, 0.0),
        (target, turn) => noisy_time(if target == 0 { 8.0 } else { 16.0 }, target, day, turn),
    };
    let weekly = World::pair().simulate(0..28, &scenario).after_days(28);
    assert_eq!(headline(&weekly).winner().map(ToString::to_string), Some("smb".to_owned()));
    assert_eq!(*objection(&weekly), Objection::LessReliable);
}

#[test]
fn of_equal_shares_the_one_that_does_not_fail_is_recommended() {
    let scenario = |target, day, turn| match (target, turn) {
        (1, 3) => (Outcome::Error, 0.0),
        (target, turn) => noisy_time(8.0, target, day, turn),
    };
    let weekly = World::pair().simulate(0..28, &scenario).after_days(28);
    assert_eq!(headline(&weekly).winner(), None, "a failure in eight rounds does not make it slower");
    let Recommendation { target, confidence, withheld, .. } = weekly.recommendation;
    assert_eq!(
        (target.map(|name| name.to_string()), confidence),
        (Some("smb".to_owned()), Some(Confidence::Decided))
    );
    let withheld = withheld.unwrap();
    assert_eq!((withheld.target.as_str(), withheld.objection), ("nfs", Objection::LessReliable));
}

#[test]
fn of_three_equal_shares_the_one_that_fails_is_named() {
    let mut world = World::new(&[("smb", Role::Share), ("nfs", Role::Share), ("afp", Role::Share)]);
    world = world.simulate(0..56, &|target, day, turn| match (target, turn) {
        (2, 3) => (Outcome::Error, 0.0),
        (target, turn) => noisy_time(8.0, target, day, turn),
    });
    let Recommendation { target, confidence, withheld, .. } = world.after_days(56).recommendation;
    assert_eq!((target, confidence), (None, Some(Confidence::NoDifference)));
    let withheld = withheld.unwrap();
    assert_eq!((withheld.target.as_str(), withheld.objection), ("afp", Objection::LessReliable));
}

#[test]
fn rounds_in_which_only_one_share_is_away_are_counted_up_to_its_return() {
    let scenario = |target, day, turn| match (target, day, turn) {
        (1, 10, _) | (1, 27, 3..) | (0, 27, 7) => (Outcome::Unavailable, 0.0),
        _ => times(0.8, (target, day, turn)),
    };
    let away = |days| {
        let weekly = World::pair().simulate(0..days, &scenario).after_days(days);
        let of = |failures: &Failures| (failures.unavailable_rounds, failures.unavailable_since_last);
        weekly.failures.iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(away(27), [(0, 0), (8, 0)]);
    assert_eq!(away(28), [(1, 0), (13, 4)], "in the last round both were away");
}

/// The reason is about the other share of one pair, and the recommended one is faster than the third.
#[test]
fn reason_about_one_of_two_others_does_not_hide_the_saving() {
    let mut world = World::new(&[("nfs", Role::Share), ("afp", Role::Share), ("smb", Role::Share)]);
    world = world.simulate(0..56, &|target, day, turn| match (target, turn) {
        (1, 3) => (Outcome::Error, 0.0),
        (target, turn) => noisy_time([8.0, 8.0, 12.0][target], target, day, turn),
    });
    let Recommendation { target, minutes_a_week, withheld, .. } = world.after_days(56).recommendation;
    assert_eq!(target.map(|name| name.to_string()), Some("nfs".to_owned()));
    assert!(minutes_a_week.is_some() && withheld.is_none());
}

/// Three rounds of eight each evening are no outliers.
#[test]
fn share_that_is_slow_every_evening_is_not_recommended() {
    let weekly = four_weeks(&|_, turn| if turn < 5 { 0.8 } else { 5.0 });
    let headline = headline(&weekly);
    assert_eq!(headline.so_far.ratio, None);
    let mean = (5.0 * 0.8f64.ln() + 3.0 * 5f64.ln()) / 8.0;
    assert!(
        (headline.so_far.ratio_with_outliers.unwrap() - mean.exp()).abs() < 0.05,
        "{:?}",
        headline.so_far
    );
    assert!(
        matches!(objection(&weekly), Objection::Outliers { ratio, rounds: 208 } if (ratio - mean.exp()).abs() < 0.05)
    );
}

#[test]
fn share_that_is_slow_at_weekends_has_no_verdict() {
    let weekly = four_weeks(&|day, _| if day % 7 < 5 { 0.8 } else { 3.0 });
    assert_eq!((headline(&weekly).verdict, headline(&weekly).ratio), (Verdict::NotEnoughData, None));
    assert_eq!(weekly.recommendation.target, None);
}

#[test]
fn share_that_has_stopped_working_is_not_recommended() {
    let scenario = |target, day, turn| match (target, day) {
        (1, 27) => (Outcome::Hung, 900.0),
        _ => times(0.8, (target, day, turn)),
    };
    let weekly = World::pair().simulate(0..28, &scenario).after_days(28);
    assert_eq!(headline(&weekly).winner().map(ToString::to_string), Some("nfs".to_owned()));
    assert_eq!(*objection(&weekly), Objection::Failing);
}

#[test]
fn outage_of_both_shares_speaks_against_none() {
    let scenario = |target, day, turn| match (target, day, turn) {
        (_, 27, 6..) | (1, 27, 5) => (Outcome::Hung, 900.0),
        _ => times(0.8, (target, day, turn)),
    };
    let weekly = World::pair().simulate(0..28, &scenario).after_days(28);
    assert_eq!(weekly.recommendation.target.map(|name| name.to_string()), Some("nfs".to_owned()));
}

#[test]
fn change_that_leaves_a_share_faster_takes_no_advice_away() {
    let weekly = four_weeks(&|day, _| if day < 19 { 0.6 } else { 0.4 });
    assert!(headline(&weekly).change.is_some());
    assert_eq!(weekly.recommendation.target.map(|name| name.to_string()), Some("nfs".to_owned()));
}

#[test]
fn task_that_always_fails_on_the_other_share_is_no_saving() {
    let mut world = World::pair().simulate(0..28, &|target, day, turn| times(0.8, (target, day, turn)));
    for run in world.history.runs.iter_mut().filter(|run| run.target == 1 && run.workload == 3) {
        (run.outcome, run.times) = (Outcome::Error, longhaul_model::MetricTimes::NONE);
    }
    let weekly = world.after_days(28);
    assert_eq!(weekly.pairs[0].failing.len(), 1);
    assert!(weekly.recommendation.withheld.is_none_or(|withheld| withheld.target.as_str() == "nfs"));
}

#[test]
fn minutes_do_not_depend_on_how_often_a_task_is_done() {
    let factor = |day: i64| if day % 7 < 6 { 1.5 } else { 3.0 };
    let world = World::pair().simulate(0..28, &|target, day, turn| times(factor(day), (target, day, turn)));
    let minutes = |a_week: f64| {
        let mut history = world.history.clone();
        history.settings.usage_profile = BTreeMap::from([("incremental-backup/backup".to_owned(), a_week)]);
        let world = World { history, rounds_a_day: 8 };
        world.after_days(28).pairs[0].weekly_minutes.unwrap().value / a_week
    };
    let (few, many) = (minutes(1.0), minutes(1000.0));
    assert!((few - many).abs() < 1e-9, "{few} {many}");
}

#[test]
fn verdict_from_before_a_change_is_not_recommended() {
    let weekly = four_weeks(&|day, _| if day < 19 { 2.0 } else { 0.5 });
    let change = headline(&weekly).change.as_ref().unwrap();
    assert_eq!((change.described, change.days_after), (ChangePart::Before, 9));
    assert!(headline(&weekly).verdict.has_winner());
    assert!(matches!(objection(&weekly), Objection::Changed { days: 9, .. }));
}

/// Returns four weeks in which the ratio changes on day 19.
fn changed_world() -> World {
    let factor = |day| if day < 19 { 2.0 } else { 0.5 };
    World::pair().simulate(0..28, &|target, day, turn| times(factor(day), (target, day, turn)))
}

/// Returns the kind of the event that the change names if an update of the system was recorded at this time.
fn event_of_change(mut world: World, at_us: Timestamp) -> Option<String> {
    let detail = serde_json::json!({});
    world.history.events.push(Event { target: None, kind: "os-update".to_owned(), detail, at_us });
    world.history.events.sort_by_key(|event| event.at_us);
    headline(&world.after_days(28)).change.as_ref().unwrap().event.clone()
}

/// An event needs 14 days on both sides to explain a change, but it was recorded.
#[test]
fn change_on_the_day_of_an_event_names_it() {
    assert_eq!(event_of_change(changed_world(), midnight(19)).as_deref(), Some("os-update"));
}

#[test]
fn nights_asleep_do_not_explain_a_change() {
    let mut world = changed_world();
    let missed = |day| Event {
        target: None,
        kind: "missed-rounds".to_owned(),
        detail: serde_json::Value::Null,
        at_us: midnight(day) + HOUR,
    };
    world.history.events.extend((0..28).map(missed));
    assert_eq!(event_of_change(world, midnight(19) + 2 * HOUR).as_deref(), Some("os-update"));
}

#[test]
fn event_before_a_change_of_the_clocks_keeps_its_day() {
    let mut world = changed_world();
    for round in &mut world.history.rounds {
        round.utc_offset_seconds = if round.started_us < midnight(25) { 7_200 } else { 3_600 };
    }
    // 00:30 of day 19 in the summer, 23:30 of day 18 by the offset of the last round.
    let event = event_of_change(world, midnight(19) - HOUR * 3 / 2);
    assert_eq!(event.as_deref(), Some("os-update"));
}

#[test]
fn shares_that_are_better_at_different_tasks_are_not_called_equal() {
    let mut world = World::pair().simulate(0..28, &|target, day, turn| times(1.0, (target, day, turn)));
    scale_on_nfs(&mut world, |workload| if workload < 2 { 2.0 } else { 0.5 });
    let weekly = world.after_days(28);
    assert_eq!(headline(&weekly).verdict, Verdict::NoRealDifference);
    assert_eq!(weekly.recommendation.confidence, Some(Confidence::DependsOnTask));
}

#[test]
fn share_that_costs_minutes_in_the_own_week_is_not_recommended() {
    let mut world = World::pair().simulate(0..28, &|target, day, turn| times(0.5, (target, day, turn)));
    scale_on_nfs(
        &mut world,
        |workload| if TASKS[workload].name() == "incremental-backup" { 4.0 } else { 1.0 },
    );
    world.history.settings.usage_profile = BTreeMap::from([("incremental-backup/backup".to_owned(), 60.0)]);
    let weekly = world.after_days(28);
    assert_eq!(headline(&weekly).winner().map(ToString::to_string), Some("nfs".to_owned()));
    assert!(matches!(objection(&weekly), Objection::MoreMinutes(saved) if (saved.value + 10.0).abs() < 0.5));
}

/// No number is right for all days, but each kind of day costs time.
#[test]
fn share_that_costs_unknown_minutes_is_not_recommended() {
    let mut world = World::pair().simulate(0..28, &|target, day, turn| times(0.5, (target, day, turn)));
    let backup = TASKS.iter().position(|task| task.name() == "incremental-backup").unwrap();
    for run in world.history.runs.iter_mut().filter(|run| (run.target, run.workload) == (1, backup)) {
        let is_seventh = (run.started.local_day(0) - MONDAY) % 7 == 6;
        run.times = run.times.with(0, run.seconds * if is_seventh { 12.0 } else { 4.0 });
    }
    world.history.settings.usage_profile = BTreeMap::from([("incremental-backup/backup".to_owned(), 60.0)]);
    let weekly = world.after_days(28);
    assert_eq!(headline(&weekly).winner().map(ToString::to_string), Some("nfs".to_owned()));
    assert_eq!(weekly.pairs[0].weekly_minutes, None);
    assert!(matches!(objection(&weekly), Objection::MoreTime));
    assert_eq!(weekly.recommendation.minutes_a_week, None);
}

#[test]
fn minutes_are_left_out_if_one_day_in_seven_makes_most_of_them() {
    let with_last_day = |factor: f64| {
        let time = |target, day, turn| times(if day % 7 == 6 { factor } else { 1.3 }, (target, day, turn));
        let mut world = World::pair().simulate(0..28, &time);
        world.history.settings.usage_profile =
            BTreeMap::from([("incremental-backup/backup".to_owned(), 60.0)]);
        world.after_days(28).pairs[0].weekly_minutes
    };
    assert!(with_last_day(1.3).is_some());
    assert_eq!(with_last_day(5.0), None);
}

/// A failure counts as 20 times the usual time on the fastest share, however fast the local disk is.
#[test]
fn times_of_slow_shares_are_not_cut() {
    let mut world = World::new(&[("smb", Role::Share), ("nfs", Role::Share), ("local", Role::Baseline)]);
    world = world
        .simulate(0..28, &|target, day, turn| noisy_time([100.0, 250.0, 0.5][target], target, day, turn));
    let ratio = headline(&world.after_days(28)).ratio.unwrap();
    assert!((ratio.value - 2.5).abs() < 0.05, "{ratio:?}");
}

#[test]
fn task_that_is_no_longer_measured_does_not_stop_the_verdict() {
    let mut world = World::pair()
        .simulate(0..56, &|target, day, turn| times(if day < 14 { 1.0 } else { 2.0 }, (target, day, turn)));
    let is_off = |run: &RunRecord| run.workload == 3 && run.started >= midnight(14);
    world.history.runs.retain(|run| !is_off(run));
    let weekly = world.after_days(56);
    let last = headline(&weekly).days.last().unwrap();
    assert_eq!(last.date, date_of_day(MONDAY + 55).to_string());
    assert_eq!(headline(&weekly).winner().map(ToString::to_string), Some("smb".to_owned()));
}

#[test]
fn runs_from_before_the_first_one_are_named() {
    let mut world = World::pair().simulate(0..14, &|target, day, turn| times(1.0, (target, day, turn)));
    world.round(-3_650, 0, RoundStatus::Ok, &|target, day, turn| times(1.0, (target, day, turn)));
    let weekly = world.after_days(14);
    let reason = "dated before the target's first run: the clock was wrong";
    let found = weekly.excluded.iter().find(|excluded| excluded.reason == reason).unwrap();
    assert_eq!(found.runs, 2 * TASKS.len());
}

#[test]
fn task_that_is_no_longer_measured_does_not_stop_the_minutes() {
    let mut world = World::pair().simulate(0..40, &|target, day, turn| times(2.0, (target, day, turn)));
    let off = TASKS.iter().position(|task| task.name() == "photo-batch").unwrap();
    world.history.runs.retain(|run| run.workload != off || run.started < midnight(10));
    let profile = [("incremental-backup/backup", 7.0), ("photo-batch/photos-cold", 10.0)];
    world.history.settings.usage_profile = profile.map(|(key, count)| (key.to_owned(), count)).into();
    let weekly = world.after_days(40);
    let minutes = weekly.pairs[0].weekly_minutes.unwrap();
    assert_eq!((minutes.days, headline(&weekly).days.len()), (38, 38), "all days after the warm-up");
    assert!((minutes.measured_share - 7.0 / 17.0).abs() < 1e-9, "{minutes:?}");
}

#[test]
fn day_of_an_event_belongs_to_neither_side_of_the_change() {
    let factor = |day| if day == 20 { 100.0 } else { [0.5, 2.0][usize::from(day < 20)] };
    let mut world =
        World::pair().simulate(0..40, &|target, day, turn| times(factor(day), (target, day, turn)));
    let (detail, at_us) = (serde_json::json!({}), midnight(20) + 9 * HOUR);
    world.history.events = vec![Event { target: None, kind: "os-update".to_owned(), detail, at_us }];
    let weekly = world.after_days(40);
    let change = headline(&weekly).change.as_ref().unwrap();
    assert_eq!((&change.date, change.days_before), (&date_of_day(MONDAY + 20).to_string(), 18));
    assert!((change.ratio_before - 2.0).abs() < 0.1, "{change:?}");
}
