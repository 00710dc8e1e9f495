//! Merges samples into time steps until they are stored. Pure.

use std::collections::BTreeMap;

use longhaul_model::{
    CounterScope, CounterSource, LoadContext, MachineStep, PROBE_TIMEOUT_NS, ProbeKind, ProbeSample,
    ProbeStep, Resolution, TargetName, Timestamp, Traffic, TrafficStep,
};
use longhaul_store::Samples;

/// Length of the time steps that samples are merged into: the finest step that is stored.
const STEP: Resolution = Resolution::FiveMinutes;

type ProbeKey = (TargetName, Timestamp, ProbeKind, LoadContext);
type TrafficKey = (Timestamp, (Option<TargetName>, CounterSource, CounterScope));

/// Samples since the last store, merged by time step.
#[derive(Default)]
pub struct SampleAggregator {
    probe_steps: BTreeMap<ProbeKey, ProbeStep>,
    traffic_steps: BTreeMap<TrafficKey, TrafficStep>,
    machine_steps: BTreeMap<Timestamp, MachineStep>,
}

impl SampleAggregator {
    /// Adds one sample of the latency probe.
    pub fn add_probe(&mut self, target: &TargetName, sample: &ProbeSample, load: LoadContext) {
        let mut step = ProbeStep::new(target.clone(), STEP.start(sample.at_us), sample.kind, load);
        match sample.error {
            Some(_) => step.errors = 1,
            None => step.latency.record(sample.latency_ns),
        }
        step.timeouts = u64::from(sample.latency_ns >= PROBE_TIMEOUT_NS);
        self.merge_probe(step);
    }

    fn merge_probe(&mut self, step: ProbeStep) {
        let key = (step.target.clone(), step.at_us, step.kind, step.during);
        match self.probe_steps.get_mut(&key) {
            Some(merged) => merged.merge(&step),
            None => drop(self.probe_steps.insert(key, step)),
        }
    }

    /// Adds the traffic of one counter between two readings, at the time of the later one.
    pub fn add_traffic(&mut self, target: Option<TargetName>, traffic: Traffic, at: Timestamp) {
        self.merge_traffic(TrafficStep::new(target, STEP.start(at), traffic));
    }

    fn merge_traffic(&mut self, step: TrafficStep) {
        let key = (step.at_us, step.key());
        match self.traffic_steps.get_mut(&key) {
            Some(merged) => merged.merge(&step),
            None => drop(self.traffic_steps.insert(key, step)),
        }
    }

    /// Adds a sample of the machine's load, or the CPU cost of the probes.
    pub fn add_machine(&mut self, sample: MachineStep) {
        let sample = MachineStep { at_us: STEP.start(sample.at_us), ..sample };
        match self.machine_steps.get_mut(&sample.at_us) {
            Some(merged) => merged.merge(&sample),
            None => drop(self.machine_steps.insert(sample.at_us, sample)),
        }
    }

    /// Takes all merged samples, to be stored.
    pub fn take(&mut self) -> Samples {
        let all = std::mem::take(self);
        Samples {
            probes: all.probe_steps.into_values().collect(),
            traffic: all.traffic_steps.into_values().collect(),
            machine: all.machine_steps.into_values().collect(),
            ..Samples::default()
        }
    }

    /// Adds samples back that could not be stored.
    pub fn restore(&mut self, samples: Samples) {
        samples.probes.into_iter().for_each(|step| self.merge_probe(step));
        samples.traffic.into_iter().for_each(|step| self.merge_traffic(step));
        samples.machine.into_iter().for_each(|step| self.add_machine(step));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn sample_counts_in_the_step_of_its_scheduled_time() {
        let [before, begin] = [299_999_999, 300_000_000].map(Timestamp::from_us);
        let slot = |at_us, latency_ns, error: Option<&str>| ProbeSample {
            kind: ProbeKind::Read,
            at_us,
            latency_ns,
            call_ns: None,
            error: error.map(str::to_owned),
            during: None,
        };
        let target: TargetName = "smb".parse().unwrap();
        let mut aggregator = SampleAggregator::default();
        let slots = [
            slot(before, 40_000_000_000, None),
            slot(begin, 5, None),
            slot(begin + Duration::from_secs(10), 6, Some("EIO")),
        ];
        slots.iter().for_each(|slot| aggregator.add_probe(&target, slot, LoadContext::Idle));
        let samples = aggregator.take();
        let counts: Vec<_> = samples
            .probes
            .iter()
            .map(|step| (step.at_us, step.latency.count(), step.errors, step.timeouts))
            .collect();
        assert_eq!(counts, [(Timestamp::UNIX_EPOCH, 1, 0, 1), (begin, 1, 1, 0)]);
        aggregator.add_probe(&target, &slots[1], LoadContext::Idle);
        aggregator.restore(samples);
        assert_eq!(aggregator.take().probes[1].latency.count(), 2);
        assert!(aggregator.take().is_empty());
    }
}
