//! Scenarios of shares and tasks that are measured on some of the days only.

use super::*;
use crate::summary::window::AnalysisWindow;

/// Returns six weeks in which `smb` is named `smb3` from day 10 on.
fn renamed_share() -> World {
    let shares = [("smb", Role::Share), ("nfs", Role::Share), ("smb3", Role::Share)];
    let scenario = |target: usize, day, turn| noisy_time([8.0, 10.0, 8.0][target], target, day, turn);
    let mut world = World::new(&shares).simulate(0..42, &scenario);
    world.history.runs.retain(|run| match run.target {
        0 => run.started < midnight(10),
        2 => run.started >= midnight(10),
        _ => true,
    });
    world
}

#[test]
fn renamed_share_does_not_block_the_recommendation() {
    let weekly = renamed_share().after_days(42);
    assert_eq!(weekly.recommendation.target.as_ref().map(ToString::to_string), Some("smb3".to_owned()));
    let left_out: Vec<(&str, &str)> =
        weekly.unmeasured.iter().map(|share| (share.target.as_str(), share.last_day.as_str())).collect();
    assert_eq!(left_out, [("smb", date_of_day(MONDAY + 9).to_string().as_str())]);
    assert_eq!((weekly.pairs.len(), weekly.scores.len()), (1, 2));
    assert!((headline(&weekly).alpha - ALPHA / 3.0).abs() < 1e-12, "the level counts all three shares");
}

#[test]
fn share_is_left_out_only_after_more_than_a_week() {
    let world = renamed_share();
    let after = |days: i64| {
        let mut world = World { history: world.history.clone(), rounds_a_day: 8 };
        world.history.runs.retain(|run| run.started < midnight(days));
        world.after_days(days).unmeasured.len()
    };
    assert_eq!((after(17), after(18)), (0, 1), "days 10 to 16 are seven");
}

/// Returns the shares that are no longer measured, and whether they are left out.
fn no_longer_measured(weekly: &WeeklySummary) -> Vec<(&str, bool)> {
    weekly.unmeasured.iter().map(|share| (share.target.as_str(), share.is_left_out)).collect()
}

#[test]
fn removed_share_does_not_take_the_answer_with_it() {
    let scenario = |target: usize, day, turn| noisy_time([10.0, 8.0][target], target, day, turn);
    let mut world = World::pair().simulate(0..56, &scenario);
    world.history.runs.retain(|run| run.target == 1 || run.started < midnight(42));
    let weekly = world.after_days(56);
    assert_eq!((no_longer_measured(&weekly), weekly.pairs.len()), (vec![("smb", false)], 1));
    let Recommendation { target, confidence, .. } = weekly.recommendation;
    assert_eq!(target.map(|name| name.to_string()), Some("nfs".to_owned()));
    assert_eq!(confidence, Some(Confidence::Decided));
}

#[test]
fn removed_share_is_named_if_it_was_unavailable_before() {
    let scenario = |target: usize, day, turn| match (target, day) {
        (0, 34..) => (Outcome::Unavailable, 0.0),
        _ => noisy_time([10.0, 8.0][target], target, day, turn),
    };
    let mut world = World::pair().simulate(0..56, &scenario);
    world.history.runs.retain(|run| run.target == 1 || run.started < midnight(42));
    assert_eq!(no_longer_measured(&world.after_days(56)), [("smb", false)]);
}

#[test]
fn renamed_share_that_was_measured_alone_is_left_out() {
    let shares = [("smb", Role::Share), ("smb3", Role::Share), ("nfs", Role::Share)];
    let scenario = |target: usize, day, turn| noisy_time([8.0, 8.0, 10.0][target], target, day, turn);
    let mut world = World::new(&shares).simulate(0..49, &scenario);
    world.history.runs.retain(|run| (run.target == 0) == (run.started < midnight(7)));
    let weekly = world.after_days(49);
    assert_eq!(weekly.recommendation.target.as_ref().map(ToString::to_string), Some("smb3".to_owned()));
    assert_eq!(weekly.unmeasured.iter().map(|share| share.target.as_str()).collect::<Vec<_>>(), ["smb"]);
}

#[test]
fn comparisons_of_a_share_that_is_left_out_still_count() {
    let world = renamed_share();
    let all = pair_verdicts(&world.history, MONDAY + 41, None);
    let weekly = world.after_days(42);
    assert_eq!((all.len(), weekly.pairs.len()), (3, 1));
    let same = all.iter().find(|pair| (pair.a.as_str(), pair.b.as_str()) == ("nfs", "smb3")).unwrap();
    let needed = |pair: &PairSummary| -> Vec<Option<f64>> {
        pair.tasks.iter().map(|task| task.detectable_ratio).collect()
    };
    assert_eq!(needed(&weekly.pairs[0]), needed(same));
}

#[test]
fn share_that_waits_for_its_week_is_not_left_out() {
    let shares = [("smb", Role::Share), ("nfs", Role::Share), ("afp", Role::Share)];
    let scenario = |target, day, turn| noisy_time(5.0, target, day, turn);
    let mut world = World::new(&shares).simulate(0..31, &scenario);
    world.round(30, 9, RoundStatus::Ok, &scenario);
    let by_hand = world.history.rounds.len() as i64;
    world = world.simulate(31..42, &scenario);
    let week = |run: &RunRecord| (1..6).filter(|week| run.started >= midnight(7 * week)).count();
    world.history.runs.retain(|run| {
        let is_both_by_hand = run.round == by_hand && run.target < 2;
        is_both_by_hand || run.round != by_hand && run.target == week(run) % 3
    });
    for days in [28, 35, 42] {
        let unmeasured = world.after_days(days).unmeasured;
        assert!(unmeasured.is_empty(), "after {days} days: {unmeasured:?}");
    }
}

/// Returns days of which the first share was measured in the first week and the second one in all others, with one round of both by
/// hand on the first Sunday.
fn in_turns(days: i64) -> World {
    let scenario = |target, day, turn| noisy_time(5.0, target, day, turn);
    let mut world = World::pair().simulate(0..7, &scenario);
    world.round(6, 9, RoundStatus::Ok, &scenario);
    let by_hand = world.history.rounds.len() as i64;
    world = world.simulate(7..days, &scenario);
    world.history.runs.retain(|run| {
        let is_first_week = run.started < midnight(7);
        run.round == by_hand || run.target == usize::from(!is_first_week)
    });
    world
}

/// Returns the number of weeks with only the first and with only the second share.
fn weeks_in_turns(weekly: &WeeklySummary) -> Option<(usize, usize)> {
    weekly.pairs[0].sequential_weeks.first().map(|found| found.weeks)
}

#[test]
fn shares_that_are_measured_in_turns_are_not_left_out() {
    let world = in_turns(29);
    for later in 1..4 {
        let weekly = world.after_days(7 * (later + 1));
        let weeks = weeks_in_turns(&weekly);
        let left_out = weekly.unmeasured.iter().filter(|share| share.is_left_out).count();
        assert_eq!((left_out, weeks), (0, Some((1, later as usize))));
    }
}

#[test]
fn week_that_still_goes_on_is_not_compared() {
    assert_eq!(weeks_in_turns(&in_turns(18).after_days(18)), Some((1, 1)), "Thursday of the third week");
    assert_eq!(weeks_in_turns(&in_turns(21).after_days(21)), Some((1, 1)), "its Sunday");
    assert_eq!(weeks_in_turns(&in_turns(22).after_days(22)), Some((1, 2)));
}

#[test]
fn short_round_after_a_break_does_not_redefine_all_tasks() {
    let scenario = |target, day, turn| noisy_time(if target == 0 { 8.0 } else { 10.0 }, target, day, turn);
    let mut world = World::pair().simulate(0..28, &scenario);
    for run in world.history.runs.iter_mut().filter(|run| (run.target, run.workload) == (1, 0)) {
        for place in 0..TASKS[0].metrics().len() {
            run.times = run.times.with(place, 3.0 * run.seconds);
        }
    }
    let before = headline(&world.after_days(28)).ratio;
    world.round(40, 0, RoundStatus::CutShort, &scenario);
    let last = world.history.rounds.last().unwrap().number;
    world.history.runs.retain(|run| run.round != last || run.workload == 0);
    assert_eq!(headline(&world.after_days(41)).ratio, before);
}

#[test]
fn failure_cap_does_not_move_with_a_new_epoch() {
    let scenario = |target: usize, day, turn| noisy_time([10.0, 100.0][target], target, day, turn);
    let mut world = World::pair().simulate(0..40, &scenario);
    let cap = |world: &World, day: i64| {
        AnalysisWindow::new(&world.history, i64::MIN..=MONDAY + day, None).failure_cap(0, 0)
    };
    let (first, before) = (cap(&world, 0), cap(&world, 39));
    world.history.epochs.push(EpochRecord { number: 9, ..world.history.epochs[0].clone() });
    for run in world.history.runs.iter_mut().filter(|run| run.target == 0 && run.started >= midnight(30)) {
        run.epoch = 9;
    }
    assert_eq!((first, before), (before, cap(&world, 39)));
    assert!((190.0..210.0).contains(&before), "{before}");
}

#[test]
fn failure_cap_ignores_void_rounds_and_a_wrong_clock() {
    let scenario = |_, _, _| (Outcome::Ok, 10.0);
    let mut world = World::pair().simulate(0..3, &scenario);
    let cap =
        |world: &World| AnalysisWindow::new(&world.history, i64::MIN..=MONDAY + 9, None).failure_cap(0, 0);
    for turn in 0..3 {
        world.round(-900, turn, RoundStatus::Ok, &|_, _, _| (Outcome::Ok, 40.0));
    }
    assert_eq!(cap(&world), 200.0, "later runs that are dated earlier");
    world.history.rounds.iter_mut().take(8).for_each(|round| round.status = Some(RoundStatus::Void));
    for run in world.history.runs.iter_mut().filter(|run| run.round <= 8) {
        run.times = run.times.with(0, 40.0);
    }
    assert_eq!(cap(&world), 200.0, "the first day is void");
}

#[test]
fn failure_cap_ignores_an_epoch_that_began_with_a_wrong_clock() {
    let mut world = World::pair().simulate(0..3, &|_, _, _| (Outcome::Ok, 10.0));
    world.history.runs.retain(|run| run.target == 0);
    world = world.simulate(-900..-899, &|_, _, _| (Outcome::Ok, 40.0));
    let window = AnalysisWindow::new(&world.history, i64::MIN..=MONDAY + 9, None);
    assert_eq!(window.failure_cap(0, 0), 200.0, "the second share was measured later, on an earlier date");
}

/// The clock is ahead in the third of five rounds on one date. `daemon/fleet/sql/days_with.sql` answers the same.
#[test]
fn date_that_comes_back_is_another_day_for_the_failure_cap() {
    let mut world = World::pair();
    for (day, turn) in [(0, 0), (0, 1), (20, 2), (0, 3), (0, 4)] {
        world.round(day, turn, RoundStatus::Ok, &|_, _, _| (Outcome::Ok, 40.0));
    }
    world = world.simulate(1..2, &|_, _, _| (Outcome::Ok, 10.0));
    let window = AnalysisWindow::new(&world.history, i64::MIN..=MONDAY + 30, None);
    assert_eq!(window.failure_cap(0, 0), 200.0, "no three rounds in a row have the first date");
}

/// A replay waits 10 s, once 18 s, and pauses for 50 s.
#[test]
fn pauses_of_a_recording_do_not_hide_a_slow_round() {
    let scenario = |_, _, turn| (Outcome::Ok, if turn == 5 { 18.0 } else { 10.0 });
    let mut world = World::pair().simulate(0..1, &scenario);
    let own = longhaul_model::TASKS.iter().position(|task| task.name() == "your-day").unwrap();
    world.history.runs.retain(|run| run.workload == 0);
    for run in &mut world.history.runs {
        run.workload = own;
        run.times = longhaul_model::MetricTimes::NONE.with(0, 50.0 + run.seconds).with(1, run.seconds);
    }
    let shown = recent_rounds(&world.history, 8);
    assert_eq!(shown[0].rounds[5].1, RoundState::Slow);
    assert_eq!(shown[0].rounds[4].1, RoundState::Ok);
}
