//! The table of all metric instruments. The same instruments are sent to a collector and read by Prometheus.

use longhaul_model::{Resolution, Run, Unit};
use longhaul_store::{FinishedRound, SampledStep};

use crate::current_state::CurrentState;
use crate::observations::{self, Observations};
use crate::time::nanoseconds;
use crate::trace::end_ns;
use crate::values::Point;

/// The type of an instrument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A current value; the latest one replaces the previous one.
    Gauge,
    /// A count that only grows; values are summed.
    Counter,
    /// A distribution; histograms are merged.
    Histogram,
}

/// A metric instrument.
pub struct Instrument {
    /// Name in OpenTelemetry's naming convention.
    pub name: &'static str,
    /// Unit in UCUM notation.
    pub unit: &'static str,
    /// Description for users; also the `HELP` text in Prometheus.
    pub help: &'static str,
    /// Type of the instrument.
    pub kind: Kind,
    /// Source of the values.
    pub source: Source,
}

/// The source of an instrument's values.
pub enum Source {
    /// Stored runs; the time of a point is the end of the run.
    Run(fn(&Run) -> Observations),
    /// Stored rounds; the time of a point is the end of the round.
    Round(fn(&FinishedRound) -> Observations),
    /// Five-minute steps of samples; the time of a point is the end of the step.
    Step(fn(&SampledStep) -> Observations),
    /// The current state of the service.
    CurrentState(fn(&CurrentState) -> Observations),
}

/// All instruments. Their index in this table identifies them elsewhere.
pub const INSTRUMENTS: &[Instrument] = &[
    Instrument {
        name: "longhaul.file.operation.duration",
        unit: "us",
        help: "Duration of file operations, including failed ones.",
        kind: Kind::Histogram,
        source: Source::Run(observations::durations),
    },
    Instrument {
        name: "longhaul.file.operation.errors",
        unit: "{error}",
        help: "Failed file operations.",
        kind: Kind::Counter,
        source: Source::Run(observations::errors),
    },
    Instrument {
        name: "longhaul.file.io",
        unit: "By",
        help: "Bytes read and written by file operations.",
        kind: Kind::Counter,
        source: Source::Run(observations::bytes),
    },
    Instrument {
        name: "longhaul.runs",
        unit: "{run}",
        help: "Runs by outcome.",
        kind: Kind::Counter,
        source: Source::Run(observations::runs),
    },
    Instrument {
        name: "longhaul.workload.duration",
        unit: "s",
        help: "Duration of the latest successful run.",
        kind: Kind::Gauge,
        source: Source::Run(observations::duration),
    },
    Instrument {
        name: "longhaul.figure.time",
        unit: "s",
        help: "Times measured by the latest run.",
        kind: Kind::Gauge,
        source: Source::Run(|run| observations::figures(run, Unit::Seconds)),
    },
    Instrument {
        name: "longhaul.figure.throughput",
        unit: "By/s",
        help: "Throughput measured by the latest run.",
        kind: Kind::Gauge,
        source: Source::Run(|run| observations::figures(run, Unit::BytesPerSecond)),
    },
    Instrument {
        name: "longhaul.figure.rate",
        unit: "1/s",
        help: "Rates per second measured by the latest run, such as files per second.",
        kind: Kind::Gauge,
        source: Source::Run(|run| observations::figures(run, Unit::PerSecond)),
    },
    Instrument {
        name: "longhaul.figure.count",
        unit: "{item}",
        help: "Counts measured by the latest run.",
        kind: Kind::Gauge,
        source: Source::Run(|run| observations::figures(run, Unit::Count)),
    },
    Instrument {
        name: "longhaul.figure.share",
        unit: "1",
        help: "Shares from 0 to 1 measured by the latest run.",
        kind: Kind::Gauge,
        source: Source::Run(|run| observations::figures(run, Unit::Share)),
    },
    Instrument {
        name: "longhaul.target.available",
        unit: "{target}",
        help: "1 if the latest run reached the target, 0 if the target was unavailable or hung.",
        kind: Kind::Gauge,
        source: Source::Run(observations::availability),
    },
    Instrument {
        name: "system.filesystem.usage",
        unit: "By",
        help: "Free bytes on the target at the start of the latest run.",
        kind: Kind::Gauge,
        source: Source::Run(observations::free_bytes),
    },
    Instrument {
        name: "longhaul.rounds",
        unit: "{round}",
        help: "Started rounds by status.",
        kind: Kind::Counter,
        source: Source::Round(observations::rounds),
    },
    Instrument {
        name: "longhaul.round.end_time",
        unit: "s",
        help: "End of the latest round, in seconds since 1970 UTC.",
        kind: Kind::Gauge,
        source: Source::Round(observations::round_end_time),
    },
    Instrument {
        name: "longhaul.probe.duration",
        unit: "us",
        help: "Latency of probe requests, measured from the scheduled time to the response.",
        kind: Kind::Histogram,
        source: Source::Step(observations::probe_latency),
    },
    Instrument {
        name: "longhaul.probe.errors",
        unit: "{error}",
        help: "Probe requests that failed with an error.",
        kind: Kind::Counter,
        source: Source::Step(observations::probe_errors),
    },
    Instrument {
        name: "longhaul.probe.timeouts",
        unit: "{request}",
        help: "Probe requests without a response within 30 seconds.",
        kind: Kind::Counter,
        source: Source::Step(observations::probe_timeouts),
    },
    Instrument {
        name: "longhaul.probe.processor_time",
        unit: "us",
        help: "CPU time used by the latency probes.",
        kind: Kind::Counter,
        source: Source::Step(observations::probe_cpu_time),
    },
    Instrument {
        name: "longhaul.share.io",
        unit: "By",
        help: "Bytes transferred over the network or to the disk, by direction and origin (user or longhaul).",
        kind: Kind::Counter,
        source: Source::Step(observations::traffic_bytes),
    },
    Instrument {
        name: "longhaul.share.io.peak",
        unit: "By/s",
        help: "Peak throughput in the sampled step, in bytes per second.",
        kind: Kind::Gauge,
        source: Source::Step(observations::peak_throughput),
    },
    Instrument {
        name: "longhaul.share.requests",
        unit: "{request}",
        help: "Requests sent to the server.",
        kind: Kind::Counter,
        source: Source::Step(observations::requests),
    },
    Instrument {
        name: "longhaul.share.retransmits",
        unit: "{retransmission}",
        help: "Retransmitted requests or TCP segments.",
        kind: Kind::Counter,
        source: Source::Step(observations::retransmits),
    },
    Instrument {
        name: "longhaul.share.reconnects",
        unit: "{connection}",
        help: "Reconnects to the server.",
        kind: Kind::Counter,
        source: Source::Step(observations::reconnects),
    },
    Instrument {
        name: "longhaul.share.tcp.rtt",
        unit: "us",
        help: "Smoothed TCP round-trip time to the server, the maximum over the connections.",
        kind: Kind::Gauge,
        source: Source::Step(observations::tcp_round_trip),
    },
    Instrument {
        name: "longhaul.stalls",
        unit: "{stall}",
        help: "Stalls that started: periods in which an operation waited for more than a second or failed.",
        kind: Kind::Counter,
        source: Source::Step(observations::stalls),
    },
    Instrument {
        name: "longhaul.stall.duration",
        unit: "us",
        help: "Duration of stalls that have ended.",
        kind: Kind::Histogram,
        source: Source::Step(observations::stall_time),
    },
    Instrument {
        name: "system.cpu.utilization",
        unit: "1",
        help: "CPU utilization over all processors, from 0 to 1.",
        kind: Kind::Gauge,
        source: Source::Step(observations::cpu_utilization),
    },
    Instrument {
        name: "longhaul.machine.memory.available",
        unit: "By",
        help: "Lowest available memory in the sampled step, in bytes.",
        kind: Kind::Gauge,
        source: Source::Step(observations::available_memory),
    },
    Instrument {
        name: "longhaul.target.stuck.duration",
        unit: "s",
        help: "Time for which a call on the target has been stuck; 0 if no call is stuck.",
        kind: Kind::Gauge,
        source: Source::CurrentState(|now| {
            observations::per_target(now, |target| Some(target.stuck_seconds))
        }),
    },
    Instrument {
        name: "longhaul.budget.used",
        unit: "By",
        help: "Bytes read and written on the target in the last 24 hours.",
        kind: Kind::Gauge,
        source: Source::CurrentState(|now| {
            observations::per_target(now, |target| Some(target.bytes_used as f64))
        }),
    },
    Instrument {
        name: "longhaul.budget.limit",
        unit: "By",
        help: "Maximum number of bytes that may be read and written on the target in 24 hours.",
        kind: Kind::Gauge,
        source: Source::CurrentState(|now| {
            observations::per_target(now, |target| Some(target.bytes_allowed? as f64))
        }),
    },
    Instrument {
        name: "longhaul.schedule.rounds",
        unit: "{round}",
        help: "Scheduled rounds so far by status, including skipped ones.",
        kind: Kind::Gauge,
        source: Source::CurrentState(observations::scheduled_rounds),
    },
    Instrument {
        name: "longhaul.freshness.changes",
        unit: "{change}",
        help: "Changes made elsewhere in the last 28 days by kind and visibility.",
        kind: Kind::Gauge,
        source: Source::CurrentState(observations::freshness_changes),
    },
    Instrument {
        name: "longhaul.integrity.verified",
        unit: "By",
        help: "Bytes read back and compared with what was written so far.",
        kind: Kind::Gauge,
        source: Source::CurrentState(observations::verified_bytes),
    },
    Instrument {
        name: "longhaul.integrity.mismatches",
        unit: "{range}",
        help: "Ranges of files that differed from what was written so far.",
        kind: Kind::Gauge,
        source: Source::CurrentState(observations::mismatches),
    },
    Instrument {
        name: "longhaul.fidelity.properties",
        unit: "{property}",
        help: "Properties of files by the result of the last check.",
        kind: Kind::Gauge,
        source: Source::CurrentState(observations::fidelity_properties),
    },
    Instrument {
        name: "longhaul.telemetry.items",
        unit: "{item}",
        help: "Rounds and five-minute steps of samples by delivery status.",
        kind: Kind::Gauge,
        source: Source::CurrentState(observations::outbox_items),
    },
];

/// Returns the data points of a round and its runs, each with the index of its instrument, in chronological
/// order.
pub fn round_points(round: &FinishedRound) -> Vec<(usize, Point)> {
    let started = round.stored.round.started;
    let ended = round.stored.end.as_ref().map_or(started, |end| end.ended.max(started));
    let runs = round.runs.iter().flat_map(|stored| run_points(&stored.run));
    let round_level = collect_points(nanoseconds(started), nanoseconds(ended), |source| match source {
        Source::Round(observe) => Some(observe(round)),
        Source::Run(_) | Source::Step(_) | Source::CurrentState(_) => None,
    });
    runs.chain(round_level).collect()
}

fn run_points(run: &Run) -> Vec<(usize, Point)> {
    collect_points(nanoseconds(run.started_us), end_ns(run), |source| match source {
        Source::Run(observe) => Some(observe(run)),
        Source::Round(_) | Source::Step(_) | Source::CurrentState(_) => None,
    })
}

/// Returns the data points of a five-minute step of samples, each with the index of its instrument.
pub fn step_points(step: &SampledStep) -> Vec<(usize, Point)> {
    let ended = step.at + Resolution::FiveMinutes.length();
    collect_points(nanoseconds(step.at), nanoseconds(ended), |source| match source {
        Source::Step(observe) => Some(observe(step)),
        Source::Run(_) | Source::Round(_) | Source::CurrentState(_) => None,
    })
}

/// Returns the data points of the current state, each with the index of its instrument.
pub fn current_state_points(now: &CurrentState) -> Vec<(usize, Point)> {
    let at_ns = nanoseconds(now.at);
    collect_points(at_ns, at_ns, |source| match source {
        Source::CurrentState(observe) => Some(observe(now)),
        Source::Run(_) | Source::Round(_) | Source::Step(_) => None,
    })
}

/// Calls `observe` for the source of every instrument and returns the values as data points for the period from
/// `began_ns` to `at_ns` (nanoseconds since 1970 UTC).
fn collect_points(
    began_ns: u64,
    at_ns: u64,
    observe: impl Fn(&Source) -> Option<Observations>,
) -> Vec<(usize, Point)> {
    let point = |(labels, value)| Point { labels, value, began_ns, at_ns };
    let all = INSTRUMENTS.iter().enumerate();
    all.flat_map(|(index, instrument)| {
        observe(&instrument.source).unwrap_or_default().into_iter().map(move |found| (index, point(found)))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::tests::samples;

    #[test]
    fn names_are_unique_and_help_ends_with_a_period() {
        let names: BTreeSet<&str> = INSTRUMENTS.iter().map(|instrument| instrument.name).collect();
        assert_eq!(names.len(), INSTRUMENTS.len());
        for instrument in INSTRUMENTS {
            let is_allowed = |c: char| c.is_ascii_lowercase() || matches!(c, '.' | '_');
            assert!(instrument.name.chars().all(is_allowed), "{}", instrument.name);
            assert!(instrument.help.ends_with('.'), "{}", instrument.name);
        }
    }

    #[test]
    fn points_of_a_run_have_the_time_of_its_end() {
        let round = samples::round(1);
        for (index, point) in run_points(&round.runs[0].run) {
            assert_eq!(point.at_ns, end_ns(&round.runs[0].run), "{}", INSTRUMENTS[index].name);
            assert!(point.began_ns <= point.at_ns);
        }
    }
}
