//! The table of instruments: what is told as metrics, pushed to a collector and read by Prometheus alike.

use longhaul_measure::model::{Run, Step, Unit};
use longhaul_store::{FinishedRound, SampledStep};

use crate::now::Now;
use crate::observe::{self, Observed};
use crate::time::nanoseconds;
use crate::trace::ended;
use crate::values::Point;

/// How values of an instrument add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Each value stands for itself.
    Gauge,
    /// Values are added.
    Counter,
    /// Histograms are merged.
    Histogram,
}

/// One line of the table.
pub struct Instrument {
    /// Its name, by OpenTelemetry's rules for names.
    pub name: &'static str,
    /// Its unit, as UCUM writes it.
    pub unit: &'static str,
    /// What it says.
    pub help: &'static str,
    /// How its values add up.
    pub kind: Kind,
    /// Where its values come from.
    pub source: Source,
}

/// Where values come from.
pub enum Source {
    /// Each stored run, at the instant of its end.
    Run(fn(&Run) -> Observed),
    /// Each stored round, at the instant of its end.
    Round(fn(&FinishedRound) -> Observed),
    /// Five minutes of samples, at the instant of their end.
    Step(fn(&SampledStep) -> Observed),
    /// What is so just now.
    Now(fn(&Now) -> Observed),
}

/// Every instrument.
pub const INSTRUMENTS: &[Instrument] = &[
    Instrument {
        name: "longhaul.file.operation.duration",
        unit: "us",
        help: "How long calls took, failed ones included, in the buckets of the store (scale 6).",
        kind: Kind::Histogram,
        source: Source::Run(observe::durations),
    },
    Instrument {
        name: "longhaul.file.operation.errors",
        unit: "{error}",
        help: "Calls that failed.",
        kind: Kind::Counter,
        source: Source::Run(observe::errors),
    },
    Instrument {
        name: "longhaul.file.io",
        unit: "By",
        help: "Bytes that calls read and wrote.",
        kind: Kind::Counter,
        source: Source::Run(observe::bytes),
    },
    Instrument {
        name: "longhaul.runs",
        unit: "{run}",
        help: "Runs, by how they ended.",
        kind: Kind::Counter,
        source: Source::Run(observe::runs),
    },
    Instrument {
        name: "longhaul.workload.duration",
        unit: "s",
        help: "Measured time of the latest run that was ok.",
        kind: Kind::Gauge,
        source: Source::Run(observe::duration),
    },
    Instrument {
        name: "longhaul.figure.time",
        unit: "s",
        help: "Times that the latest run found.",
        kind: Kind::Gauge,
        source: Source::Run(|run| observe::figures(run, Unit::Seconds)),
    },
    Instrument {
        name: "longhaul.figure.throughput",
        unit: "By/s",
        help: "Throughput that the latest run found.",
        kind: Kind::Gauge,
        source: Source::Run(|run| observe::figures(run, Unit::BytesPerSecond)),
    },
    Instrument {
        name: "longhaul.figure.rate",
        unit: "1/s",
        help: "Things a second that the latest run found.",
        kind: Kind::Gauge,
        source: Source::Run(|run| observe::figures(run, Unit::PerSecond)),
    },
    Instrument {
        name: "longhaul.figure.count",
        unit: "{thing}",
        help: "Counts that the latest run found.",
        kind: Kind::Gauge,
        source: Source::Run(|run| observe::figures(run, Unit::Count)),
    },
    Instrument {
        name: "longhaul.figure.share",
        unit: "1",
        help: "Shares between 0 and 1 that the latest run found.",
        kind: Kind::Gauge,
        source: Source::Run(|run| observe::figures(run, Unit::Share)),
    },
    Instrument {
        name: "longhaul.target.available",
        unit: "{target}",
        help: "1 if the latest run reached its target, 0 if the target was not there or did not answer.",
        kind: Kind::Gauge,
        source: Source::Run(observe::available),
    },
    Instrument {
        name: "system.filesystem.usage",
        unit: "By",
        help: "Free bytes on the target when the latest run began.",
        kind: Kind::Gauge,
        source: Source::Run(observe::free),
    },
    Instrument {
        name: "longhaul.rounds",
        unit: "{round}",
        help: "Rounds that were begun, by how they ended.",
        kind: Kind::Counter,
        source: Source::Round(observe::rounds),
    },
    Instrument {
        name: "longhaul.round.ended",
        unit: "s",
        help: "When the latest round ended, in seconds since 1970 UTC.",
        kind: Kind::Gauge,
        source: Source::Round(observe::round_ended),
    },
    Instrument {
        name: "longhaul.probe.duration",
        unit: "us",
        help: "From the instant at which the probe meant to ask until the answer.",
        kind: Kind::Histogram,
        source: Source::Step(observe::probed),
    },
    Instrument {
        name: "longhaul.probe.errors",
        unit: "{error}",
        help: "Questions of the probe that were answered with an error.",
        kind: Kind::Counter,
        source: Source::Step(observe::probe_errors),
    },
    Instrument {
        name: "longhaul.probe.lost",
        unit: "{request}",
        help: "Questions of the probe that were not answered within 30 seconds.",
        kind: Kind::Counter,
        source: Source::Step(observe::lost),
    },
    Instrument {
        name: "longhaul.probe.processor_time",
        unit: "us",
        help: "Processor time that the probes took.",
        kind: Kind::Counter,
        source: Source::Step(observe::probe_cost),
    },
    Instrument {
        name: "longhaul.share.io",
        unit: "By",
        help: "Bytes that crossed the wire, or reached the disk, by whose they were.",
        kind: Kind::Counter,
        source: Source::Step(observe::crossed),
    },
    Instrument {
        name: "longhaul.share.io.peak",
        unit: "By/s",
        help: "The most bytes a second of one look.",
        kind: Kind::Gauge,
        source: Source::Step(observe::peak),
    },
    Instrument {
        name: "longhaul.share.requests",
        unit: "{request}",
        help: "Requests to the server.",
        kind: Kind::Counter,
        source: Source::Step(observe::requests),
    },
    Instrument {
        name: "longhaul.share.retransmissions",
        unit: "{retransmission}",
        help: "Requests or segments that had to be sent again.",
        kind: Kind::Counter,
        source: Source::Step(observe::retransmissions),
    },
    Instrument {
        name: "longhaul.share.reconnects",
        unit: "{connection}",
        help: "Connections that had to be made again.",
        kind: Kind::Counter,
        source: Source::Step(observe::reconnects),
    },
    Instrument {
        name: "longhaul.share.packet.round_trip",
        unit: "us",
        help: "What a packet takes to the server and back, as TCP smooths it; the longest.",
        kind: Kind::Gauge,
        source: Source::Step(observe::packet_round_trip),
    },
    Instrument {
        name: "longhaul.stalls",
        unit: "{stall}",
        help: "Times in which a target began to keep somebody waiting.",
        kind: Kind::Counter,
        source: Source::Step(observe::stalls),
    },
    Instrument {
        name: "longhaul.stall.duration",
        unit: "us",
        help: "How long the waits took that have ended.",
        kind: Kind::Histogram,
        source: Source::Step(observe::stall_time),
    },
    Instrument {
        name: "nfs.client.rpc.count",
        unit: "{request}",
        help: "Requests of this machine to all NFS servers.",
        kind: Kind::Counter,
        source: Source::Step(observe::rpcs),
    },
    Instrument {
        name: "system.cpu.utilization",
        unit: "1",
        help: "Share of all processors that was busy.",
        kind: Kind::Gauge,
        source: Source::Step(observe::processor),
    },
    Instrument {
        name: "longhaul.machine.memory.available",
        unit: "By",
        help: "The least memory that was to be had.",
        kind: Kind::Gauge,
        source: Source::Step(observe::available_memory),
    },
    Instrument {
        name: "longhaul.target.stuck",
        unit: "s",
        help: "For how long a call on the target has not returned; 0: none is stuck.",
        kind: Kind::Gauge,
        source: Source::Now(|now| observe::of_targets(now, |target| Some(target.stuck_seconds))),
    },
    Instrument {
        name: "longhaul.budget.used",
        unit: "By",
        help: "Bytes read and written on the target in the last 24 hours.",
        kind: Kind::Gauge,
        source: Source::Now(|now| observe::of_targets(now, |target| Some(target.bytes_per_day as f64))),
    },
    Instrument {
        name: "longhaul.budget.limit",
        unit: "By",
        help: "Bytes that may be read and written on the target in 24 hours.",
        kind: Kind::Gauge,
        source: Source::Now(|now| observe::of_targets(now, |target| Some(target.bytes_allowed? as f64))),
    },
    Instrument {
        name: "longhaul.schedule.rounds",
        unit: "{round}",
        help: "Rounds of the schedule so far, by how they ended, skipped ones too.",
        kind: Kind::Gauge,
        source: Source::Now(observe::schedule),
    },
    Instrument {
        name: "longhaul.telemetry.items",
        unit: "{item}",
        help: "Rounds, and five minutes of samples, by what became of them on their way to the collector.",
        kind: Kind::Gauge,
        source: Source::Now(observe::outboxes),
    },
];

/// What a round says of each instrument, by its place in the table, in the order of time.
pub fn of_round(round: &FinishedRound) -> Vec<(usize, Point)> {
    let started_us = round.stored.round.started_us;
    let ended_us = round.stored.end.as_ref().map_or(started_us, |end| end.ended_us.max(started_us));
    let over = (nanoseconds(started_us), nanoseconds(ended_us));
    let runs = round.runs.iter().flat_map(|stored| of_run(&stored.run));
    let whole = observed(over, |source| match source {
        Source::Round(observe) => Some(observe(round)),
        Source::Run(_) | Source::Step(_) | Source::Now(_) => None,
    });
    runs.chain(whole).collect()
}

fn of_run(run: &Run) -> Vec<(usize, Point)> {
    observed((nanoseconds(run.started_us), ended(run)), |source| match source {
        Source::Run(observe) => Some(observe(run)),
        Source::Round(_) | Source::Step(_) | Source::Now(_) => None,
    })
}

/// What five minutes of samples say, likewise.
pub fn of_step(step: &SampledStep) -> Vec<(usize, Point)> {
    let ended_us = step.at_us + Step::FiveMinutes.seconds() * 1_000_000;
    observed((nanoseconds(step.at_us), nanoseconds(ended_us)), |source| match source {
        Source::Step(observe) => Some(observe(step)),
        Source::Run(_) | Source::Round(_) | Source::Now(_) => None,
    })
}

/// What is so just now, likewise.
pub fn of_now(now: &Now) -> Vec<(usize, Point)> {
    let at_ns = nanoseconds(now.at_us);
    observed((at_ns, at_ns), |source| match source {
        Source::Now(observe) => Some(observe(now)),
        Source::Run(_) | Source::Round(_) | Source::Step(_) => None,
    })
}

/// What each instrument observes, as points that count from a begin up to an instant.
fn observed(
    (began_ns, at_ns): (u64, u64),
    observe: impl Fn(&Source) -> Option<Observed>,
) -> Vec<(usize, Point)> {
    let point = |(labels, value)| Point { labels, value, began_ns, at_ns };
    let all = INSTRUMENTS.iter().enumerate();
    all.flat_map(|(place, instrument)| {
        observe(&instrument.source).unwrap_or_default().into_iter().map(move |found| (place, point(found)))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::tests::samples;

    #[test]
    fn the_table_is_well_formed() {
        let names: BTreeSet<&str> = INSTRUMENTS.iter().map(|instrument| instrument.name).collect();
        assert_eq!(names.len(), INSTRUMENTS.len());
        for instrument in INSTRUMENTS {
            let is_fine = |c: char| c.is_ascii_lowercase() || matches!(c, '.' | '_');
            assert!(instrument.name.chars().all(is_fine), "{}", instrument.name);
            assert!(instrument.help.ends_with('.'), "{}", instrument.name);
        }
    }

    #[test]
    fn every_point_of_a_run_is_at_its_end() {
        let round = samples::round(1);
        for (place, point) in of_run(&round.runs[0].run) {
            assert_eq!(point.at_ns, ended(&round.runs[0].run), "{}", INSTRUMENTS[place].name);
            assert!(point.began_ns <= point.at_ns);
        }
    }
}
