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

macro_rules! instruments {
    ($($name:literal, $unit:literal, $kind:ident, $source:ident($observe:expr), $help:literal;)*) => {
        /// All instruments. Their index in this table identifies them elsewhere.
        pub const INSTRUMENTS: &[Instrument] = &[$(Instrument {
            name: $name,
            unit: $unit,
            help: $help,
            kind: Kind::$kind,
            source: Source::$source($observe),
        }),*];
    };
}

instruments! {
    "longhaul.file.operation.duration", "us", Histogram, Run(observations::durations), "Duration of file operations, including failed ones.";
    "longhaul.file.operation.errors", "{error}", Counter, Run(observations::errors), "Failed file operations.";
    "longhaul.file.io", "By", Counter, Run(observations::bytes), "Bytes read and written by file operations.";
    "longhaul.runs", "{run}", Counter, Run(observations::runs), "Runs by outcome.";
    "longhaul.workload.duration", "s", Gauge, Run(observations::duration), "Duration of the latest successful run.";
    "longhaul.figure.time", "s", Gauge, Run(|run| observations::figures(run, Unit::Seconds)), "Times measured by the latest run.";
    "longhaul.figure.throughput", "By/s", Gauge, Run(|run| observations::figures(run, Unit::BytesPerSecond)), "Throughput measured by the latest run.";
    "longhaul.figure.rate", "1/s", Gauge, Run(|run| observations::figures(run, Unit::PerSecond)), "Rates per second measured by the latest run, such as files per second.";
    "longhaul.figure.count", "{item}", Gauge, Run(|run| observations::figures(run, Unit::Count)), "Counts measured by the latest run.";
    "longhaul.figure.share", "1", Gauge, Run(|run| observations::figures(run, Unit::Share)), "Shares from 0 to 1 measured by the latest run.";
    "longhaul.target.available", "{target}", Gauge, Run(observations::availability), "1 if the latest run reached the target, 0 if the target was unavailable or hung.";
    "system.filesystem.usage", "By", Gauge, Run(observations::free_bytes), "Free bytes on the target at the start of the latest run.";
    "longhaul.rounds", "{round}", Counter, Round(observations::rounds), "Started rounds by status.";
    "longhaul.round.end_time", "s", Gauge, Round(observations::round_end_time), "End of the latest round, in seconds since 1970 UTC.";
    "longhaul.probe.duration", "us", Histogram, Step(observations::probe_latency), "Latency of probe requests, measured from the scheduled time to the response.";
    "longhaul.probe.errors", "{error}", Counter, Step(observations::probe_errors), "Probe requests that failed with an error.";
    "longhaul.probe.timeouts", "{request}", Counter, Step(observations::probe_timeouts), "Probe requests without a response within 30 seconds.";
    "longhaul.probe.processor_time", "us", Counter, Step(observations::probe_cpu_time), "CPU time used by the latency probes.";
    "longhaul.share.io", "By", Counter, Step(observations::traffic_bytes), "Bytes transferred over the network or to the disk, by direction and origin (user or longhaul).";
    "longhaul.share.io.peak", "By/s", Gauge, Step(observations::peak_throughput), "Peak throughput in the sampled step, in bytes per second.";
    "longhaul.share.requests", "{request}", Counter, Step(observations::requests), "Requests sent to the server.";
    "longhaul.share.retransmits", "{retransmission}", Counter, Step(observations::retransmits), "Retransmitted requests or TCP segments.";
    "longhaul.share.reconnects", "{connection}", Counter, Step(observations::reconnects), "Reconnects to the server.";
    "longhaul.share.tcp.rtt", "us", Gauge, Step(observations::tcp_round_trip), "Smoothed TCP round-trip time of the fastest connection to the server, the maximum over the readings in the sampled step.";
    "longhaul.stalls", "{stall}", Counter, Step(observations::stalls), "Stalls that started: periods in which an operation waited for more than a second or failed.";
    "longhaul.stall.duration", "us", Histogram, Step(observations::stall_time), "Duration of stalls that have ended.";
    "system.cpu.utilization", "1", Gauge, Step(observations::cpu_utilization), "CPU utilization over all processors, from 0 to 1.";
    "longhaul.machine.memory.available", "By", Gauge, Step(observations::available_memory), "Lowest available memory in the sampled step, in bytes.";
    "longhaul.target.stuck.duration", "s", Gauge, CurrentState(|now| observations::per_target(now, |target| Some(target.stuck_seconds))), "Time for which a call on the target has been stuck; 0 if no call is stuck.";
    "longhaul.budget.used", "By", Gauge, CurrentState(|now| observations::per_target(now, |target| Some(target.bytes_used as f64))), "Bytes read and written on the target in the last 24 hours.";
    "longhaul.budget.limit", "By", Gauge, CurrentState(|now| observations::per_target(now, |target| Some(target.bytes_allowed? as f64))), "Maximum number of bytes that may be read and written on the target in 24 hours.";
    "longhaul.schedule.rounds", "{round}", Gauge, CurrentState(observations::scheduled_rounds), "Scheduled rounds so far by status, including skipped ones.";
    "longhaul.freshness.changes", "{change}", Gauge, CurrentState(observations::freshness_changes), "Changes made elsewhere in the last 28 days by kind and visibility.";
    "longhaul.integrity.verified", "By", Gauge, CurrentState(observations::verified_bytes), "Bytes read back and compared with what was written so far.";
    "longhaul.integrity.mismatches", "{range}", Gauge, CurrentState(observations::mismatches), "Ranges of files that differed from what was written so far.";
    "longhaul.fidelity.properties", "{property}", Gauge, CurrentState(observations::fidelity_properties), "Properties of files by the result of the last check.";
    "longhaul.telemetry.items", "{item}", Gauge, CurrentState(observations::outbox_items), "Rounds and five-minute steps of samples by delivery status.";
}

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
