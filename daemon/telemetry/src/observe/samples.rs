//! What five minutes of samples say.

use longhaul_measure::model::{ProbeStep, Source, Stall, TargetName, TrafficStep};
use longhaul_measure::stats::Histogram;
use longhaul_store::SampledStep;

use super::{Observed, with};
use crate::attributes::Labels;
use crate::values::Value;

fn of_target(target: &TargetName) -> Labels {
    [("longhaul.target".into(), target.to_string())].into()
}

fn of_probe(step: &ProbeStep) -> Labels {
    let labels = with(&of_target(&step.target), "longhaul.probe.kind", step.kind.name());
    with(&labels, "longhaul.probe.beside", step.beside.name())
}

/// Which counter it is; what counts the whole machine has no target.
fn of_counter(step: &TrafficStep) -> Labels {
    let labels = step.target.as_ref().map(of_target).unwrap_or_default();
    let labels = with(&labels, "longhaul.counter.source", &step.traffic.source.name());
    with(&labels, "longhaul.counter.covers", step.traffic.covers.name())
}

/// The answers of the probe.
pub fn probed(step: &SampledStep) -> Observed {
    let answered = step.probes.iter().filter(|probe| probe.latency.count() > 0);
    answered.map(|probe| (of_probe(probe), Value::Histogram(probe.latency.clone()))).collect()
}

/// Its questions that failed; 0 where all were well.
pub fn probe_errors(step: &SampledStep) -> Observed {
    step.probes.iter().map(|probe| (of_probe(probe), Value::Count(probe.errors))).collect()
}

/// Its questions that were not answered in time, likewise.
pub fn lost(step: &SampledStep) -> Observed {
    step.probes.iter().map(|probe| (of_probe(probe), Value::Count(probe.lost))).collect()
}

/// What it cost, in microseconds.
pub fn probe_cost(step: &SampledStep) -> Observed {
    let machine = step.machine.iter();
    machine.map(|machine| (Labels::new(), Value::Count(machine.probe_ns / 1000))).collect()
}

/// Bytes by direction, and by whether they were longhaul's own.
pub fn crossed(step: &SampledStep) -> Observed {
    let of_one = |step: &TrafficStep| {
        let parts = [
            ("read", "user", step.traffic.user_read),
            ("write", "user", step.traffic.user_written),
            ("read", "longhaul", step.traffic.own_read),
            ("write", "longhaul", step.traffic.own_written),
        ];
        let labels = of_counter(step);
        let found = parts.into_iter().filter_map(|(direction, whose, bytes)| {
            let labels = with(&labels, "disk.io.direction", direction);
            Some((with(&labels, "longhaul.io.whose", whose), Value::Count(bytes?)))
        });
        found.collect::<Observed>()
    };
    step.traffic.iter().flat_map(of_one).collect()
}

/// The busiest look.
pub fn peak(step: &SampledStep) -> Observed {
    traffic(step, |step| step.peak.map(Value::Number))
}

/// Requests of everybody.
pub fn requests(step: &SampledStep) -> Observed {
    traffic(step, |step| step.traffic.requests.map(Value::Count))
}

/// What had to be sent again.
pub fn retransmissions(step: &SampledStep) -> Observed {
    traffic(step, |step| step.traffic.retransmissions.map(Value::Count))
}

/// Connections that had to be made again.
pub fn reconnects(step: &SampledStep) -> Observed {
    traffic(step, |step| step.traffic.reconnects.map(Value::Count))
}

/// What a packet takes, in microseconds.
pub fn packet_round_trip(step: &SampledStep) -> Observed {
    traffic(step, |step| step.traffic.packet_round_trip_us.map(|time| Value::Number(time as f64)))
}

fn traffic(step: &SampledStep, value: fn(&TrafficStep) -> Option<Value>) -> Observed {
    step.traffic.iter().filter_map(|step| Some((of_counter(step), value(step)?))).collect()
}

/// Requests of the whole machine, as OpenTelemetry means its counts of NFS clients.
pub fn rpcs(step: &SampledStep) -> Observed {
    let whole = step.traffic.iter().filter(|step| step.traffic.source == Source::Nfsstat);
    whole.filter_map(|step| Some((Labels::new(), Value::Count(step.traffic.requests?)))).take(1).collect()
}

/// Waits that began, by target.
pub fn stalls(step: &SampledStep) -> Observed {
    by_target(step, |_| Some(Value::Count(1)))
}

/// How long they took, those that go on left out.
pub fn stall_time(step: &SampledStep) -> Observed {
    by_target(step, |stall| {
        let took_us = stall.ended_us?.saturating_sub(stall.started_us);
        let mut took = Histogram::new();
        took.record(took_us.max(0).cast_unsigned().saturating_mul(1000));
        Some(Value::Histogram(took))
    })
}

fn by_target(step: &SampledStep, value: fn(&Stall) -> Option<Value>) -> Observed {
    let mut found = Observed::new();
    for (stall, value) in step.stalls.iter().filter_map(|stall| Some((stall, value(stall)?))) {
        let labels = of_target(&stall.target);
        match found.iter_mut().find(|(known, _)| *known == labels) {
            Some((_, sum)) => sum.add(&value),
            None => found.push((labels, value)),
        }
    }
    found
}

/// The share of all processors that was busy.
pub fn processor(step: &SampledStep) -> Observed {
    let share = step.machine.as_ref().and_then(|machine| machine.processor_share);
    share.map(|share| (Labels::new(), Value::Number(share))).into_iter().collect()
}

/// The least memory that was to be had.
pub fn available_memory(step: &SampledStep) -> Observed {
    let least = step.machine.as_ref().and_then(|machine| machine.memory_least);
    least.map(|bytes| (Labels::new(), Value::Number(bytes as f64))).into_iter().collect()
}
