//! A share that the system unmounts while it is idle, and mounts with the next access.

use longhaul_model::{Mount, Protocol};
use longhaul_store::{Reader, RoundStatus};

use crate::world::{HOUR, SECOND, SimulatedEvent, Simulation, both_shares, folder, mount, rounds};

/// Returns the mount table with an automount at the path of the SMB share, and that share if it is mounted.
fn table(smb: Option<Mount>) -> SimulatedEvent {
    let automount = mount("/m/smb", Protocol::Other("autofs".into()));
    let others = both_shares().into_iter().filter(|other| other.protocol != Protocol::Smb(None));
    SimulatedEvent::Mounts(others.chain([automount]).chain(smb).collect())
}

#[test]
fn share_that_its_first_access_mounts_voids_no_round() {
    let folder = folder();
    let smb = |device: &str| {
        let device = Some(device.to_owned());
        table(Some(Mount { device, ..mount("/m/smb", Protocol::Smb(None)) }))
    };
    let notice = || SimulatedEvent::Call(|handle, _| handle.report_mount_change());
    // The first round begins ten seconds after the start, and each look at the clock takes one.
    let simulation = Simulation::new(folder.path())
        .lasting(2 * HOUR + HOUR / 2)
        .then(0, table(None))
        .then(20 * SECOND, smb("0:51"))
        .then(20 * SECOND, notice())
        .then(25 * SECOND, table(None))
        .then(25 * SECOND, notice())
        .then(30 * SECOND, smb("0:52"))
        .then(30 * SECOND, notice())
        .then(HOUR / 2, table(None));
    let database = simulation.database.clone();
    simulation.run();
    let ends: Vec<_> = rounds(&database).into_iter().map(|round| round.end.unwrap()).collect();
    assert!(ends.len() > 1 && ends.iter().all(|end| end.status == RoundStatus::Ok), "{ends:?}");
    let events = Reader::open(&database).unwrap().events(None).unwrap();
    let kinds: Vec<&str> = events.iter().map(|stored| stored.event.kind.as_str()).collect();
    let changes = ["mount", "unmount", "protocol", "remount", "facts-changed"];
    assert!(!kinds.iter().any(|kind| changes.contains(kind)), "{kinds:?}");
}
