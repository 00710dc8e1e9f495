//! Parts of the time of one metric in one run.

use longhaul_model::{PhaseTimes, Task, WaitMetric};

use super::bandwidth::Bandwidth;
use super::estimate::BoundedSeconds;
use super::layer::Layer;
use super::phase_parts::{PhaseInput, PhaseParts, phase_parts};

/// Parts of the time of a metric in a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MetricParts {
    /// Time of the metric, in seconds.
    pub seconds: f64,
    /// Parts in the order of [`Layer::ALL`]; `None` if a part is unknown.
    pub parts: [Option<BoundedSeconds>; Layer::ALL.len()],
    /// Round trips; `None` if no source counts them.
    pub round_trips: Option<f64>,
    /// Time that each layer would take on good equipment, in seconds, in the order of [`Layer::ALL`].
    pub usual: [f64; Layer::ALL.len()],
}

/// A run of a target, with what is known about it.
#[derive(Clone, Copy)]
pub struct RunInput<'a> {
    /// All phases of the run.
    pub phases: &'a [&'a PhaseTimes],
    /// The task of the run.
    pub task: &'static Task,
    /// Bandwidth of the network to its target.
    pub bandwidth: Bandwidth,
    /// Seconds in which the disk of the NAS was busy; `None` if the NAS does not report it.
    pub disk_seconds: Option<f64>,
}

/// Returns the parts of a metric's time in a run; `None` if the run has no such time, or no phase of it, or if the metric includes
/// the pauses of its task.
pub fn metric_parts(run: RunInput<'_>, metric: &WaitMetric) -> Option<MetricParts> {
    (!metric.includes_pauses()).then_some(())?;
    let felt = run.phases.first()?.metrics.iter().find(|known| known.metric == metric.name)?.seconds;
    let own = run.phases.iter().filter(|phase| metric.covers(&phase.phase, phase.cache));
    let own: Vec<PhaseParts> = own.map(|phase| split(run, phase)).collect();
    let split_seconds: f64 = own.iter().map(|parts| parts.seconds).sum();
    (split_seconds > 0.0).then_some(())?;
    // A metric may be a part of its phase, such as the median of many switches.
    let scale = felt / split_seconds;
    let sum = |part: fn(&PhaseParts) -> Option<BoundedSeconds>| {
        let mut parts = own.iter().map(part);
        let sum = parts.try_fold(BoundedSeconds::ZERO, |sum, part| Some(sum.plus(part?)));
        sum.map(|sum| sum.times(scale))
    };
    let (server, disk) = split_server(run, sum(|parts| parts.server), scale * split_seconds);
    let trips = own.iter().map(|parts| parts.round_trips).sum::<Option<f64>>();
    Some(MetricParts {
        seconds: felt,
        parts: [sum(|parts| parts.client), sum(|parts| parts.queue), sum(|parts| parts.wire), server, disk],
        round_trips: trips.map(|trips| if metric.is_one_of_many() { trips * scale } else { trips }),
        usual: usual_seconds(&own).map(|seconds| seconds * scale),
    })
}

fn split(run: RunInput<'_>, phase: &PhaseTimes) -> PhaseParts {
    phase_parts(PhaseInput { phase, is_paced: run.task.is_paced(), bandwidth: run.bandwidth })
}

/// Splits the time of the server into that of its disk and the rest. The NAS reports the use of its disk for the whole run:
/// the metric gets its share of the server's time, and the interval covers all ways to distribute it.
fn split_server(
    run: RunInput<'_>,
    server: Option<BoundedSeconds>,
    felt: f64,
) -> (Option<BoundedSeconds>, Option<BoundedSeconds>) {
    let (Some(own), Some(busy)) = (server, run.disk_seconds) else {
        return (server, None);
    };
    let all: Option<f64> =
        run.phases.iter().map(|phase| split(run, phase).server.map(|part| part.value)).sum();
    let all = all.unwrap_or(own.value).max(own.value);
    if all <= 0.0 {
        return (server, Some(BoundedSeconds::new(0.0, 0.0, busy.min(felt))));
    }
    let disk = own.value * (busy / all).min(1.0);
    let disk = BoundedSeconds::new(disk, busy - (all - own.value), busy).at_most(own.high);
    (Some(BoundedSeconds::new(own.value - disk.value, own.low - disk.high, own.high - disk.low)), Some(disk))
}

/// Time of one round trip on a good home network: Gigabit Ethernet has 0.2 to 0.5 ms, good Wi-Fi 2 ms.
const USUAL_ROUND_TRIP: f64 = 0.001;
/// Time for which a NAS with disks works on one request, on average: most are answered from its memory.
const USUAL_SERVICE: f64 = 0.002;
/// Time for which a computer works on one call.
const USUAL_CALL: f64 = 0.001;
/// Bytes per second of Gigabit Ethernet, which a NAS with disks and a computer also reach.
const USUAL_RATE: f64 = 110e6;

/// Returns the time of each layer on good equipment.
fn usual_seconds(phases: &[PhaseParts]) -> [f64; Layer::ALL.len()] {
    let sum = |value: fn(&PhaseParts) -> f64| phases.iter().map(value).sum::<f64>();
    let trips = sum(|parts| parts.round_trips.unwrap_or(0.0));
    let transfer = sum(|parts| parts.bytes) / USUAL_RATE;
    let client = sum(|parts| parts.calls) * USUAL_CALL + sum(|parts| parts.decode_seconds) + transfer;
    let requests = sum(|parts| parts.requests.or(parts.round_trips).unwrap_or(0.0));
    let server = requests * USUAL_SERVICE + transfer;
    [client, 0.0, trips * USUAL_ROUND_TRIP + transfer, server, server]
}
