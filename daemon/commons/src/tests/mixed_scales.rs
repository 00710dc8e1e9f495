//! Machines with rounds at several scales, and with epochs that the figures are not about.

use longhaul_demo::machine::{MachineSpec, synthetic_machine};
use longhaul_model::{Protocol, Scale};

use super::machines::{named, share_of};
use crate::{ProtocolLabel, merge};

#[test]
fn machine_is_pooled_at_the_scale_of_most_runs() {
    let mut machine = synthetic_machine(&MachineSpec::small(7, 0.2));
    machine.rounds.iter_mut().rev().take(7).for_each(|stored| stored.round.scale = Scale::Quick);
    let merged = merge(vec![named("machine", share_of(machine))]);
    let scales: Vec<Scale> = merged.pairs.iter().map(|pair| pair.scale).collect();
    assert_eq!(scales, [Scale::Standard]);
}

#[test]
fn machine_is_pooled_under_the_protocols_of_its_figures() {
    let mut machine = synthetic_machine(&MachineSpec::small(8, 0.2));
    // The first target was mounted anew, and no shared run was made since.
    let mut newer = machine.epochs[0].clone();
    newer.number = 3;
    newer.protocol = Some(Protocol::Nfs(Some("4.2".to_owned())));
    machine.epochs.push(newer);
    let merged = merge(vec![named("machine", share_of(machine))]);
    let protocols: Vec<_> = merged.pairs.iter().map(|pair| (pair.a, pair.b)).collect();
    assert_eq!(protocols, [(ProtocolLabel::Nfs4, ProtocolLabel::Smb3)]);
}
