//! A share whose mount vanishes during a round.

use longhaul_measure::worker::FailureReport;
use longhaul_model::{Failure, Outcome, Protocol};
use longhaul_store::{RoundEnd, RoundStatus};

use crate::world::{HOUR, SECOND, SimulatedEvent, Simulation, both_shares, folder, rounds};

fn failure() -> FailureReport {
    let (error, message) = (Some("ETIMEDOUT".to_owned()), "read /m/smb/x: ETIMEDOUT".to_owned());
    let failure = Failure { operation: None, path: None, error, message };
    FailureReport { outcome: Outcome::Error, failure }
}

fn share_dies() -> SimulatedEvent {
    SimulatedEvent::Call(|handle, _| handle.report_dead_share())
}

/// Returns the end of a round whose runs have this failure and in which these things happen, after which the SMB share is not mounted
/// any more.
fn end_after(run_failure: Option<FailureReport>, happens: &[SimulatedEvent]) -> RoundEnd {
    let folder = folder();
    let others = both_shares().into_iter().filter(|mount| mount.protocol != Protocol::Smb(None));
    let unmounted = [
        SimulatedEvent::Mounts(others.collect()),
        SimulatedEvent::Call(|handle, _| handle.report_mount_change()),
    ];
    // The first round begins ten seconds after the start, and each look at the clock takes one: each run looks once.
    let at_once =
        |simulation: Simulation, event: &SimulatedEvent| simulation.then(22 * SECOND, event.clone());
    let simulation = Simulation { run_failure, ..Simulation::new(folder.path()) }.lasting(HOUR / 2);
    let simulation = happens.iter().chain(&unmounted).fold(simulation, at_once);
    let database = simulation.database.clone();
    simulation.run();
    rounds(&database).swap_remove(0).end.unwrap()
}

#[test]
fn share_that_macos_gives_up_cuts_the_round_short() {
    let end = end_after(Some(failure()), &[share_dies()]);
    assert_eq!(end.status, RoundStatus::CutShort, "{end:?}");
    assert!(end.reason.as_ref().unwrap().starts_with("mount: `smb` did not respond"), "{end:?}");
}

#[test]
fn share_that_a_user_unmounts_voids_the_round() {
    let end = end_after(Some(failure()), &[]);
    assert_eq!(end.status, RoundStatus::Void, "{end:?}");
}

#[test]
fn unmount_of_a_share_without_a_failure_voids_the_round() {
    let end = end_after(None, &[share_dies()]);
    assert_eq!(end.status, RoundStatus::Void, "another share may have died: {end:?}");
}
