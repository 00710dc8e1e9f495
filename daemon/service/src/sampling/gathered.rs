//! Samples that wait to be stored, merged by step. Pure.

use std::collections::BTreeMap;

use longhaul_measure::model::{
    Beside, Covers, LOST_NS, MachineStep, ProbeKind, ProbeStep, Probed, Source, Step, TargetName, Traffic,
    TrafficStep,
};
use longhaul_store::Samples;

/// The step that everything is gathered in: the finest that is kept.
const STEP: Step = Step::FiveMinutes;

type ProbePlace = (TargetName, i64, ProbeKind, Beside);
type TrafficPlace = (i64, (Option<TargetName>, Source, Covers));

/// See the module.
#[derive(Default)]
pub struct Gathered {
    probes: BTreeMap<ProbePlace, ProbeStep>,
    traffic: BTreeMap<TrafficPlace, TrafficStep>,
    machine: BTreeMap<i64, MachineStep>,
}

impl Gathered {
    /// A slot of the probe.
    pub fn probe(&mut self, target: &TargetName, slot: &Probed, beside: Beside) {
        let mut step = ProbeStep::new(target.clone(), STEP.begin(slot.at_us), slot.kind, beside);
        match slot.error {
            Some(_) => step.errors = 1,
            None => step.latency.record(slot.latency_ns),
        }
        step.lost = u64::from(slot.latency_ns >= LOST_NS);
        self.probe_step(step);
    }

    fn probe_step(&mut self, step: ProbeStep) {
        let place = (step.target.clone(), step.at_us, step.kind, step.beside);
        match self.probes.get_mut(&place) {
            Some(before) => before.merge(&step),
            None => drop(self.probes.insert(place, step)),
        }
    }

    /// What a source counted between two looks.
    pub fn traffic(&mut self, target: Option<TargetName>, traffic: Traffic, at_us: i64) {
        self.traffic_step(TrafficStep::of(target, STEP.begin(at_us), traffic));
    }

    fn traffic_step(&mut self, step: TrafficStep) {
        let place = (step.at_us, step.place());
        match self.traffic.get_mut(&place) {
            Some(before) => before.merge(&step),
            None => drop(self.traffic.insert(place, step)),
        }
    }

    /// A look at the machine, or what the probes cost.
    pub fn machine(&mut self, look: MachineStep) {
        let look = MachineStep { at_us: STEP.begin(look.at_us), ..look };
        match self.machine.get_mut(&look.at_us) {
            Some(before) => before.merge(&look),
            None => drop(self.machine.insert(look.at_us, look)),
        }
    }

    /// Everything, to be stored.
    pub fn take(&mut self) -> Samples {
        let all = std::mem::take(self);
        Samples {
            probes: all.probes.into_values().collect(),
            traffic: all.traffic.into_values().collect(),
            machine: all.machine.into_values().collect(),
            ..Samples::default()
        }
    }

    /// Brings back what could not be stored.
    pub fn bring_back(&mut self, samples: Samples) {
        samples.probes.into_iter().for_each(|step| self.probe_step(step));
        samples.traffic.into_iter().for_each(|step| self.traffic_step(step));
        samples.machine.into_iter().for_each(|step| self.machine(step));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_belongs_to_the_step_in_which_it_was_meant_to_be_asked() {
        let slot = |at_us, latency_ns, error: Option<&str>| Probed {
            kind: ProbeKind::Read,
            at_us,
            latency_ns,
            call_ns: None,
            error: error.map(str::to_owned),
            beside: None,
        };
        let target: TargetName = "smb".parse().unwrap();
        let mut gathered = Gathered::default();
        let slots = [
            slot(299_999_999, 40_000_000_000, None),
            slot(300_000_000, 5, None),
            slot(310_000_000, 6, Some("EIO")),
        ];
        slots.iter().for_each(|slot| gathered.probe(&target, slot, Beside::Calm));
        let samples = gathered.take();
        let counts: Vec<_> = samples
            .probes
            .iter()
            .map(|step| (step.at_us, step.latency.count(), step.errors, step.lost))
            .collect();
        assert_eq!(counts, [(0, 1, 0, 1), (300_000_000, 1, 1, 0)]);
        gathered.probe(&target, &slots[1], Beside::Calm);
        gathered.bring_back(samples);
        assert_eq!(gathered.take().probes[1].latency.count(), 2);
        assert!(gathered.take().is_empty());
    }
}
