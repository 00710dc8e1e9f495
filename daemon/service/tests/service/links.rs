//! Simulates a computer whose mount table contains no server addresses, as a Mac, and whose default route is not
//! the way to the NAS.

use std::collections::BTreeSet;
use std::net::IpAddr;

use longhaul_model::{LinkKind, Mount, NetworkLink};

use crate::world::{HOUR, Routes, SimulatedEvent, Simulation, both_shares, folder, rounds};

fn link(name: &str, kind: LinkKind) -> Option<NetworkLink> {
    Some(NetworkLink { name: name.to_owned(), kind, ..NetworkLink::default() })
}

/// Checks that no round is skipped with these routes, although the service starts three times, and that the rounds
/// use `en7` where the link is known.
fn check_no_round_is_skipped(link_to: fn(Option<IpAddr>) -> Option<NetworkLink>) {
    let folder = folder();
    let simulation = || Simulation {
        routes: Some(Routes { server: "192.0.2.5".parse().unwrap(), link_to }),
        ..Simulation::new(folder.path()).lasting(6 * HOUR)
    };
    let mut start = simulation().start;
    for _ in 0..3 {
        start = Simulation { start, ..simulation() }.run();
    }
    let all = rounds(&simulation().database);
    let reasons: Vec<&str> =
        all.iter().filter_map(|round| round.end.as_ref().unwrap().reason.as_deref()).collect();
    assert!(reasons.is_empty() && all.len() >= 15, "{} rounds: {reasons:?}", all.len());
    let links: BTreeSet<String> =
        all.into_iter().filter_map(|round| Some(round.round.before?.link?.name)).collect();
    assert_eq!(links, BTreeSet::from(["en7".to_owned()]));
}

/// After a start the address, and so the interface, can be unknown in the first round.
#[test]
fn restart_after_one_round_keeps_the_usual_interface() {
    let folder = folder();
    let over = |link_to| Simulation {
        routes: Some(Routes { server: "192.0.2.5".parse().unwrap(), link_to }),
        ..Simulation::new(folder.path())
    };
    let cable = || over(|server| server.and(link("en7", LinkKind::Wired)));
    let database = cable().database;
    let mut start = cable().lasting(6 * HOUR).run();
    // Each round begins up to ten minutes before or after its hour, so that two are up to 80 minutes apart.
    start = Simulation { start, ..over(|_| None).lasting(HOUR + HOUR / 2) }.run();
    assert!(rounds(&database).last().unwrap().round.before.as_ref().unwrap().link.is_none());
    let wifi = over(|server| server.and(link("en0", LinkKind::Wireless)));
    Simulation { start, ..wifi.lasting(6 * HOUR) }.run();
    let ends = rounds(&database).into_iter().map(|round| round.end.unwrap().reason);
    let reasons: Vec<String> = ends.flatten().collect();
    assert!(
        reasons.len() >= 4 && reasons.iter().all(|reason| reason.starts_with("other-link")),
        "{reasons:?}"
    );
}

/// Every worker finds the address in the VPN, so that all rounds but the first are skipped.
#[test]
fn remount_lets_no_round_through_a_vpn() {
    let folder = folder();
    let link_to = |server: Option<IpAddr>| {
        server.map_or(link("en7", LinkKind::Wired), |_| link("utun4", LinkKind::Tunnel))
    };
    let remounted =
        both_shares().into_iter().map(|mount| Mount { source: "//nas.local/share".into(), ..mount });
    let simulation = Simulation {
        routes: Some(Routes { server: "100.64.0.5".parse().unwrap(), link_to }),
        ..Simulation::new(folder.path()).lasting(12 * HOUR)
    }
    .then(6 * HOUR, SimulatedEvent::Mounts(remounted.collect()));
    let database = simulation.database.clone();
    simulation.run();
    let ends = rounds(&database).into_iter().map(|round| round.end.unwrap().reason);
    let (skipped, run): (Vec<_>, Vec<_>) = ends.partition(Option::is_some);
    assert!(
        skipped.len() >= 8 && skipped.iter().flatten().all(|reason| reason.starts_with("vpn")),
        "{skipped:?}"
    );
    assert_eq!(run.len(), 1, "the first, before any worker has found the address");
}

#[test]
fn default_route_over_wifi_skips_no_round() {
    check_no_round_is_skipped(|server| match server {
        Some(_) => link("en7", LinkKind::Wired),
        None => link("en0", LinkKind::Wireless),
    });
}

#[test]
fn default_route_through_a_vpn_skips_no_round() {
    check_no_round_is_skipped(|server| match server {
        Some(_) => link("en7", LinkKind::Wired),
        None => link("utun4", LinkKind::Tunnel),
    });
}
