//! Scenarios of rounds that were planned for other targets than those of a pair.

use super::*;

const TARGETS: [(&str, Role); 3] = [("smb", Role::Share), ("nfs", Role::Share), ("local", Role::Baseline)];

/// Adds a round of the third target alone on the third day, the first after the warm-up.
fn add_round_of_another(world: &mut World, status: RoundStatus, outcome: Outcome) {
    world.round(2, 9, status, &|_, _, _| (outcome, 1.0));
    let last = world.history.rounds.last().unwrap().number;
    world.history.runs.retain(|run| run.round != last || run.target == 2);
}

#[test]
fn round_of_another_target_alone_is_not_planned_for_a_pair() {
    let planned = |status, outcome| {
        let mut world =
            World::new(&TARGETS).simulate(0..3, &|target, day, turn| noisy_time(5.0, target, day, turn));
        add_round_of_another(&mut world, status, outcome);
        headline(&world.after_days(3)).rounds.planned
    };
    assert_eq!(planned(RoundStatus::Ok, Outcome::Ok), 8);
    assert_eq!(planned(RoundStatus::Void, Outcome::Unavailable), 8, "no target could be used");
    assert_eq!(planned(RoundStatus::Void, Outcome::Ok), 9, "it may have ended before the turn of the pair");
    assert_eq!(planned(RoundStatus::CutShort, Outcome::Ok), 9);
}

#[test]
fn round_of_another_target_does_not_invalidate_a_day() {
    let few_of_five = |target: usize, day: i64, turn: i64| match (target, turn) {
        (1, 3..) => (Outcome::Unavailable, 0.0),
        _ => noisy_time(5.0, target, day, turn),
    };
    let mut world = World { rounds_a_day: 5, ..World::new(&TARGETS) }.simulate(0..3, &few_of_five);
    let days = |world: &World| headline(&world.after_days(3)).days.len();
    assert_eq!(days(&world), 1, "three of five planned rounds");
    add_round_of_another(&mut world, RoundStatus::Ok, Outcome::Ok);
    assert_eq!(days(&world), 1);
}
