//! Metric values of a five-minute step of samples.

use longhaul_model::Histogram;
use longhaul_model::{ProbeStep, Stall, TrafficStep};
use longhaul_store::SampledStep;

use super::labelled::{Observations, merged, target_labels, with_label};
use crate::attributes::Labels;
use crate::values::Value;

fn probe_labels(step: &ProbeStep) -> Labels {
    let labels = with_label(&target_labels(&step.target), "longhaul.probe.kind", step.kind.name());
    with_label(&labels, "longhaul.probe.during", step.during.name())
}

/// Returns the labels of a counter. A counter for the whole machine has no target label.
fn counter_labels(step: &TrafficStep) -> Labels {
    let labels = step.target.as_ref().map(target_labels).unwrap_or_default();
    let labels = with_label(&labels, "longhaul.counter.source", &step.traffic.source.name());
    with_label(&labels, "longhaul.counter.scope", step.traffic.scope.name())
}

/// Returns the latency histograms of the probe, by target, kind and load.
pub fn probe_latency(step: &SampledStep) -> Observations {
    let answered = step.probes.iter().filter(|probe| probe.latency.count() > 0);
    answered.map(|probe| (probe_labels(probe), Value::Histogram(probe.latency.clone()))).collect()
}

/// Returns the number of failed probe requests; 0 if none failed.
pub fn probe_errors(step: &SampledStep) -> Observations {
    step.probes.iter().map(|probe| (probe_labels(probe), Value::Count(probe.errors))).collect()
}

/// Returns the number of probe requests that timed out; 0 if none did.
pub fn probe_timeouts(step: &SampledStep) -> Observations {
    step.probes.iter().map(|probe| (probe_labels(probe), Value::Count(probe.timeouts))).collect()
}

/// Returns the CPU time used by the probes, in microseconds.
pub fn probe_cpu_time(step: &SampledStep) -> Observations {
    let machine = step.machine.iter();
    machine.map(|machine| (Labels::new(), Value::Count(machine.probe_cpu_ns / 1000))).collect()
}

/// Returns the bytes of each counter by direction and by origin (user or longhaul).
pub fn traffic_bytes(step: &SampledStep) -> Observations {
    let of_one = |step: &TrafficStep| {
        let parts = [
            ("read", "user", step.traffic.user_read),
            ("write", "user", step.traffic.user_written),
            ("read", "longhaul", step.traffic.longhaul_read),
            ("write", "longhaul", step.traffic.longhaul_written),
        ];
        let labels = counter_labels(step);
        let found = parts.into_iter().filter_map(|(direction, origin, bytes)| {
            let labels = with_label(&labels, "disk.io.direction", direction);
            Some((with_label(&labels, "longhaul.io.origin", origin), Value::Count(bytes?)))
        });
        found.collect::<Observations>()
    };
    step.traffic.iter().flat_map(of_one).collect()
}

/// Returns the peak throughput of each counter, in bytes per second.
pub fn peak_throughput(step: &SampledStep) -> Observations {
    per_counter(step, |step| step.peak_bytes_per_second.map(Value::Number))
}

/// Returns the number of requests of each counter, by the user and by longhaul together.
pub fn requests(step: &SampledStep) -> Observations {
    per_counter(step, |step| step.traffic.requests.map(Value::Count))
}

/// Returns the number of retransmits of each counter.
pub fn retransmits(step: &SampledStep) -> Observations {
    per_counter(step, |step| step.traffic.retransmits.map(Value::Count))
}

/// Returns the number of reconnects of each counter.
pub fn reconnects(step: &SampledStep) -> Observations {
    per_counter(step, |step| step.traffic.reconnects.map(Value::Count))
}

/// Returns the smoothed TCP round-trip time of each counter's fastest connection, in microseconds.
pub fn tcp_round_trip(step: &SampledStep) -> Observations {
    per_counter(step, |step| step.traffic.tcp_rtt_us.map(|time| Value::Number(time as f64)))
}

fn per_counter(step: &SampledStep, value: fn(&TrafficStep) -> Option<Value>) -> Observations {
    step.traffic.iter().filter_map(|step| Some((counter_labels(step), value(step)?))).collect()
}

/// Returns the number of stalls that started in this step, by target.
pub fn stalls(step: &SampledStep) -> Observations {
    by_target(step, |_| Some(Value::Count(1)))
}

/// Returns the duration histogram of the stalls that have ended, by target.
pub fn stall_time(step: &SampledStep) -> Observations {
    by_target(step, |stall| {
        let length = stall.ended_us?.since(stall.started_us);
        let mut duration = Histogram::new();
        duration.record(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX));
        Some(Value::Histogram(duration))
    })
}

fn by_target(step: &SampledStep, value: fn(&Stall) -> Option<Value>) -> Observations {
    merged(step.stalls.iter().filter_map(|stall| Some((target_labels(&stall.target), value(stall)?))))
}

/// Returns the CPU utilization over all processors, from 0 to 1.
pub fn cpu_utilization(step: &SampledStep) -> Observations {
    let share = step.machine.as_ref().and_then(|machine| machine.processor_share);
    share.map(|share| (Labels::new(), Value::Number(share))).into_iter().collect()
}

/// Returns the lowest amount of available memory, in bytes.
pub fn available_memory(step: &SampledStep) -> Observations {
    let least = step.machine.as_ref().and_then(|machine| machine.memory_available_min);
    least.map(|bytes| (Labels::new(), Value::Number(bytes as f64))).into_iter().collect()
}
