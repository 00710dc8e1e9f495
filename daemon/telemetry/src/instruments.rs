//! The table of instruments: what is told as metrics, pushed to a collector and read by Prometheus alike.

use longhaul_measure::model::{Outcome, Phase, Run, Unit};
use longhaul_store::FinishedRound;

use crate::attributes::{self, Labels};
use crate::now::{Now, TargetNow};
use crate::time::nanoseconds;
use crate::trace::ended;
use crate::values::{Point, Value};

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
    Run(fn(&Run) -> Vec<(Labels, Value)>),
    /// Each stored round, at the instant of its end.
    Round(fn(&FinishedRound) -> Vec<(Labels, Value)>),
    /// What is so just now.
    Now(fn(&Now) -> Vec<(Labels, Value)>),
}

/// Every instrument.
pub const INSTRUMENTS: &[Instrument] = &[
    Instrument {
        name: "longhaul.file.operation.duration",
        unit: "us",
        help: "How long calls took, failed ones included, in the buckets of the store (scale 6).",
        kind: Kind::Histogram,
        source: Source::Run(durations),
    },
    Instrument {
        name: "longhaul.file.operation.errors",
        unit: "{error}",
        help: "Calls that failed.",
        kind: Kind::Counter,
        source: Source::Run(errors),
    },
    Instrument {
        name: "longhaul.file.io",
        unit: "By",
        help: "Bytes that calls read and wrote.",
        kind: Kind::Counter,
        source: Source::Run(bytes),
    },
    Instrument {
        name: "longhaul.runs",
        unit: "{run}",
        help: "Runs, by how they ended.",
        kind: Kind::Counter,
        source: Source::Run(runs),
    },
    Instrument {
        name: "longhaul.workload.duration",
        unit: "s",
        help: "Measured time of the latest run that was ok.",
        kind: Kind::Gauge,
        source: Source::Run(duration),
    },
    Instrument {
        name: "longhaul.figure.time",
        unit: "s",
        help: "Times that the latest run found.",
        kind: Kind::Gauge,
        source: Source::Run(|run| figures(run, Unit::Seconds)),
    },
    Instrument {
        name: "longhaul.figure.throughput",
        unit: "By/s",
        help: "Throughput that the latest run found.",
        kind: Kind::Gauge,
        source: Source::Run(|run| figures(run, Unit::BytesPerSecond)),
    },
    Instrument {
        name: "longhaul.figure.rate",
        unit: "1/s",
        help: "Things a second that the latest run found.",
        kind: Kind::Gauge,
        source: Source::Run(|run| figures(run, Unit::PerSecond)),
    },
    Instrument {
        name: "longhaul.figure.count",
        unit: "{thing}",
        help: "Counts that the latest run found.",
        kind: Kind::Gauge,
        source: Source::Run(|run| figures(run, Unit::Count)),
    },
    Instrument {
        name: "longhaul.figure.share",
        unit: "1",
        help: "Shares between 0 and 1 that the latest run found.",
        kind: Kind::Gauge,
        source: Source::Run(|run| figures(run, Unit::Share)),
    },
    Instrument {
        name: "longhaul.target.available",
        unit: "{target}",
        help: "1 if the latest run reached its target, 0 if the target was not there or did not answer.",
        kind: Kind::Gauge,
        source: Source::Run(available),
    },
    Instrument {
        name: "system.filesystem.usage",
        unit: "By",
        help: "Free bytes on the target when the latest run began.",
        kind: Kind::Gauge,
        source: Source::Run(free),
    },
    Instrument {
        name: "longhaul.rounds",
        unit: "{round}",
        help: "Rounds that were begun, by how they ended.",
        kind: Kind::Counter,
        source: Source::Round(rounds),
    },
    Instrument {
        name: "longhaul.round.ended",
        unit: "s",
        help: "When the latest round ended, in seconds since 1970 UTC.",
        kind: Kind::Gauge,
        source: Source::Round(round_ended),
    },
    Instrument {
        name: "longhaul.target.stuck",
        unit: "s",
        help: "For how long a call on the target has not returned; 0: none is stuck.",
        kind: Kind::Gauge,
        source: Source::Now(|now| of_targets(now, |target| Some(target.stuck_seconds))),
    },
    Instrument {
        name: "longhaul.budget.used",
        unit: "By",
        help: "Bytes read and written on the target in the last 24 hours.",
        kind: Kind::Gauge,
        source: Source::Now(|now| of_targets(now, |target| Some(target.bytes_per_day as f64))),
    },
    Instrument {
        name: "longhaul.budget.limit",
        unit: "By",
        help: "Bytes that may be read and written on the target in 24 hours.",
        kind: Kind::Gauge,
        source: Source::Now(|now| of_targets(now, |target| Some(target.bytes_allowed? as f64))),
    },
    Instrument {
        name: "longhaul.schedule.rounds",
        unit: "{round}",
        help: "Rounds of the schedule so far, by how they ended, skipped ones too.",
        kind: Kind::Gauge,
        source: Source::Now(schedule),
    },
    Instrument {
        name: "longhaul.telemetry.rounds",
        unit: "{round}",
        help: "Rounds by what became of them on their way to the collector.",
        kind: Kind::Gauge,
        source: Source::Now(outboxes),
    },
];

/// What a round says of each instrument, by its place in the table, in the order of time.
pub fn of_round(round: &FinishedRound) -> Vec<(usize, Point)> {
    let started_us = round.stored.round.started_us;
    let ended_us = round.stored.end.as_ref().map_or(started_us, |end| end.ended_us.max(started_us));
    let over = (nanoseconds(started_us), nanoseconds(ended_us));
    let runs = round.runs.iter().flat_map(|stored| of_run(&stored.run));
    let whole = INSTRUMENTS.iter().enumerate().flat_map(|(place, instrument)| match instrument.source {
        Source::Round(observe) => points(place, observe(round), over),
        Source::Run(_) | Source::Now(_) => vec![],
    });
    runs.chain(whole).collect()
}

fn of_run(run: &Run) -> Vec<(usize, Point)> {
    let over = (nanoseconds(run.started_us), ended(run));
    let observed = INSTRUMENTS.iter().enumerate().map(|(place, instrument)| match instrument.source {
        Source::Run(observe) => points(place, observe(run), over),
        Source::Round(_) | Source::Now(_) => vec![],
    });
    observed.flatten().collect()
}

/// What is so just now, likewise.
pub fn of_now(now: &Now) -> Vec<(usize, Point)> {
    let at_ns = nanoseconds(now.at_us);
    let observed = INSTRUMENTS.iter().enumerate().map(|(place, instrument)| match instrument.source {
        Source::Now(observe) => points(place, observe(now), (at_ns, at_ns)),
        Source::Round(_) | Source::Run(_) => vec![],
    });
    observed.flatten().collect()
}

fn points(
    place: usize,
    observed: Vec<(Labels, Value)>,
    (began_ns, at_ns): (u64, u64),
) -> Vec<(usize, Point)> {
    observed.into_iter().map(|(labels, value)| (place, Point { labels, value, began_ns, at_ns })).collect()
}

fn with(labels: &Labels, key: &'static str, value: &str) -> Labels {
    let mut labels = labels.clone();
    labels.insert(key.into(), value.to_owned());
    labels
}

/// The calls of a run by kind and by whether they met caches: cold and warm are never merged.
fn durations(run: &Run) -> Vec<(Labels, Value)> {
    let mut found: Vec<(Labels, Value)> = vec![];
    for (labels, stats) in operations(run).filter(|(_, stats)| stats.latency.count() > 0) {
        match found.iter_mut().find(|(known, _)| *known == labels) {
            Some((_, value)) => value.add(&Value::Histogram(stats.latency.clone())),
            None => found.push((labels, Value::Histogram(stats.latency.clone()))),
        }
    }
    found
}

fn errors(run: &Run) -> Vec<(Labels, Value)> {
    let mut found: Vec<(Labels, Value)> = vec![];
    for (labels, stats) in operations(run) {
        match found.iter_mut().find(|(known, _)| *known == labels) {
            Some((_, value)) => value.add(&Value::Count(stats.errors)),
            None => found.push((labels, Value::Count(stats.errors))),
        }
    }
    found
}

fn operations(run: &Run) -> impl Iterator<Item = (Labels, &longhaul_measure::model::OperationStats)> {
    let labels = attributes::of_run(run);
    run.phases.iter().flat_map(move |phase| {
        let labels = with(&labels, "longhaul.cache.state", phase.cache.name());
        phase
            .operations
            .iter()
            .map(move |stats| (with(&labels, "longhaul.file.operation.name", stats.operation.name()), stats))
    })
}

fn bytes(run: &Run) -> Vec<(Labels, Value)> {
    let labels = attributes::of_run(run);
    let sum = |part: fn(&Phase) -> u64| run.phases.iter().map(part).fold(0, u64::saturating_add);
    let direction = |name| with(&labels, "disk.io.direction", name);
    vec![
        (direction("read"), Value::Count(sum(|phase| phase.bytes_read))),
        (direction("write"), Value::Count(sum(|phase| phase.bytes_written))),
    ]
}

fn runs(run: &Run) -> Vec<(Labels, Value)> {
    vec![(with(&attributes::of_run(run), "longhaul.run.outcome", run.outcome.name()), Value::Count(1))]
}

/// What did not end well took as long as it was allowed to, which says nothing.
fn duration(run: &Run) -> Vec<(Labels, Value)> {
    let is_ok = run.outcome == Outcome::Ok;
    is_ok.then(|| (attributes::of_run(run), Value::Number(run.seconds))).into_iter().collect()
}

fn figures(run: &Run, unit: Unit) -> Vec<(Labels, Value)> {
    let labels = attributes::of_run(run);
    let of_phase = |phase: &Phase| {
        let labels = with(&labels, "longhaul.phase", &phase.name);
        let labels = with(&labels, "longhaul.cache.state", phase.cache.name());
        let wanted = phase.figures.iter().filter(|figure| figure.unit == unit);
        let found = wanted
            .map(|figure| (with(&labels, "longhaul.figure", &figure.name), Value::Number(figure.value)));
        found.collect::<Vec<_>>()
    };
    run.phases.iter().flat_map(of_phase).collect()
}

fn target_of(run: &Run) -> Labels {
    [("longhaul.target".into(), run.target.to_string())].into()
}

/// A run that was void says nothing of its target.
fn available(run: &Run) -> Vec<(Labels, Value)> {
    let is_there = match run.outcome {
        Outcome::Ok | Outcome::Error => 1.0,
        Outcome::Hung | Outcome::Unavailable => 0.0,
        Outcome::Void => return vec![],
    };
    vec![(target_of(run), Value::Number(is_there))]
}

fn free(run: &Run) -> Vec<(Labels, Value)> {
    let labels = with(&target_of(run), "system.filesystem.state", "free");
    run.conditions.free_bytes.map(|bytes| (labels, Value::Number(bytes as f64))).into_iter().collect()
}

fn rounds(round: &FinishedRound) -> Vec<(Labels, Value)> {
    let status = round.stored.end.as_ref().map(|end| end.status.name());
    let labels = |status: &str| [("longhaul.round.status".into(), status.to_owned())].into();
    status.map(|status| (labels(status), Value::Count(1))).into_iter().collect()
}

fn round_ended(round: &FinishedRound) -> Vec<(Labels, Value)> {
    let ended = round.stored.end.as_ref().map(|end| Value::Number(end.ended_us as f64 / 1e6));
    ended.map(|value| (Labels::new(), value)).into_iter().collect()
}

fn of_targets(now: &Now, value: fn(&TargetNow) -> Option<f64>) -> Vec<(Labels, Value)> {
    let labels = |target: &TargetNow| [("longhaul.target".into(), target.name.to_string())].into();
    let targets = now.targets.iter();
    targets.filter_map(|target| Some((labels(target), Value::Number(value(target)?)))).collect()
}

fn schedule(now: &Now) -> Vec<(Labels, Value)> {
    let Some(rounds) = now.rounds else { return vec![] };
    let counts = [
        ("ok", rounds.ok),
        ("void", rounds.void),
        ("cut-short", rounds.cut_short),
        ("skipped", rounds.skipped),
    ];
    let labels = |status: &str| [("longhaul.round.status".into(), status.to_owned())].into();
    counts.into_iter().map(|(status, count)| (labels(status), Value::Number(count as f64))).collect()
}

fn outboxes(now: &Now) -> Vec<(Labels, Value)> {
    let of_signal = |signal: &crate::status::SignalStatus| {
        let fates = [
            ("waiting", signal.waiting),
            ("sent", signal.sent),
            ("rejected", signal.rejected),
            ("expired", signal.expired),
        ];
        let labels = |fate: &str| -> Labels {
            [("longhaul.signal", signal.name.as_str()), ("longhaul.fate", fate)]
                .map(|(key, value)| (key.into(), value.to_owned()))
                .into()
        };
        fates.map(|(fate, count)| (labels(fate), Value::Number(count as f64)))
    };
    now.signals.iter().flat_map(of_signal).collect()
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
    fn cold_and_warm_calls_are_never_merged_and_phases_of_one_state_are() {
        let round = samples::round(1);
        let run = &round.runs[0].run;
        let found = durations(run);
        let states: BTreeSet<&String> =
            found.iter().map(|(labels, _)| &labels["longhaul.cache.state"]).collect();
        assert_eq!(states.len(), 2, "{states:?}");
        let counted: u64 = found.iter().map(|(_, value)| value.count()).sum();
        let stored = run.phases.iter().flat_map(|phase| &phase.operations);
        assert_eq!(counted, stored.map(|stats| stats.latency.count()).sum::<u64>());
    }

    #[test]
    fn what_is_not_known_is_no_point() {
        let mut round = samples::round(1);
        let run = &mut round.runs[0].run;
        run.conditions.free_bytes = None;
        run.outcome = Outcome::Void;
        assert_eq!((free(run).len(), available(run).len(), duration(run).len()), (0, 0, 0));
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
