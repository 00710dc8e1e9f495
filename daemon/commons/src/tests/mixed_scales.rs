//! Machines with rounds at several scales.

use longhaul_demo::machine::{MachineSpec, made_up_machine};
use longhaul_model::Scale;

use super::machines::{named, share_of};
use crate::merge;

#[test]
fn machine_is_pooled_at_the_scale_of_most_runs() {
    let mut machine = made_up_machine(&MachineSpec::small(7, 0.2));
    machine.rounds.iter_mut().rev().take(7).for_each(|stored| stored.round.scale = Scale::Quick);
    let merged = merge(vec![named("machine", share_of(machine))]);
    let scales: Vec<Scale> = merged.pairs.iter().map(|pair| pair.scale).collect();
    assert_eq!(scales, [Scale::Standard]);
}
