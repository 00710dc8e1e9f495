//! The checks after the runs of a round.

use longhaul_measure::platform;
use longhaul_model::{Role, Target};
use longhaul_store::{Reader, RoundStatus};

use crate::world::{HOUR, Simulation, folder, rounds};

#[test]
fn each_of_a_hundred_targets_is_checked_once() {
    // Each worker has four descriptors, and a terminal may allow 256.
    platform::raise_descriptor_limit().unwrap();
    let folder = folder();
    let mut simulation = Simulation::new(folder.path()).lasting(2 * HOUR);
    let target = |number: u32| Target {
        name: format!("t{number}").parse().unwrap(),
        path: format!("/m/smb/{number}").into(),
        role: Role::Share,
    };
    simulation.config.targets = (0..100).map(target).collect();
    simulation.config.workloads.truncate(1);
    let database = simulation.database.clone();
    simulation.run();
    let all = rounds(&database);
    assert!(all.len() > 1 && all.iter().all(|round| round.end.as_ref().unwrap().status == RoundStatus::Ok));
    // The last check of each target.
    let checks = Reader::open(&database).unwrap().fidelity().unwrap();
    assert_eq!(checks.len(), 100);
    let second = all[1].round.started;
    assert!(checks.iter().all(|checked| checked.at < second), "after the first round, and not again");
}
