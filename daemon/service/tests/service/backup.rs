//! Backups of the machine while the service measures.

use longhaul_model::MachineSnapshot;
use longhaul_store::RoundStatus;

use crate::world::{HOUR, SECOND, SimulatedEvent, Simulation, folder, normal_machine, rounds};

#[test]
fn backup_that_begins_during_a_round_cuts_it_short() {
    let folder = folder();
    let backup = |running| {
        let machine = MachineSnapshot { backup_running: Some(running), ..normal_machine() };
        SimulatedEvent::Machine(Box::new(machine))
    };
    // The first round begins ten seconds after the start, and each look at the clock takes one.
    let simulation = Simulation::new(folder.path())
        .lasting(2 * HOUR + HOUR / 2)
        .then(0, backup(false))
        .then(20 * SECOND, backup(true))
        .then(HOUR / 2, backup(false));
    let database = simulation.database.clone();
    simulation.run();
    let ends: Vec<_> = rounds(&database).into_iter().map(|round| round.end.unwrap()).collect();
    assert_eq!(ends[0].status, RoundStatus::CutShort, "{ends:?}");
    assert!(ends[0].reason.as_ref().unwrap().starts_with("backup: "), "{ends:?}");
    assert!(ends.len() > 1 && ends[1..].iter().all(|end| end.status == RoundStatus::Ok), "{ends:?}");
}
