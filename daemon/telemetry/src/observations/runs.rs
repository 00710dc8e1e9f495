//! Metric values of a stored run or round.

use longhaul_model::{OperationStats, Outcome, Phase, Run, Timestamp, Unit};
use longhaul_store::FinishedRound;

use super::labelled::{Observations, merged, target_labels, with_label};
use crate::attributes::{self, Labels};
use crate::values::Value;

/// Returns the latency histograms of a run by operation and cache state; cold and warm calls are never merged.
pub fn durations(run: &Run) -> Observations {
    let called = operations(run).filter(|(_, stats)| stats.latency.count() > 0);
    merged(called.map(|(labels, stats)| (labels, Value::Histogram(stats.latency.clone()))))
}

/// Returns the number of failed calls of a run by operation and cache state.
pub fn errors(run: &Run) -> Observations {
    merged(operations(run).map(|(labels, stats)| (labels, Value::Count(stats.errors))))
}

fn operations(run: &Run) -> impl Iterator<Item = (Labels, &OperationStats)> {
    let labels = attributes::run_labels(run);
    run.phases.iter().flat_map(move |phase| {
        let labels = with_label(&labels, "longhaul.cache.state", phase.cache.name());
        phase.operations.iter().map(move |stats| {
            (with_label(&labels, "longhaul.file.operation.name", stats.operation.name()), stats)
        })
    })
}

/// Returns the bytes that a run read and wrote, by direction.
pub fn bytes(run: &Run) -> Observations {
    let labels = attributes::run_labels(run);
    let sum = |value: fn(&Phase) -> u64| attributes::sum_over_phases(run, value);
    let direction = |name| with_label(&labels, "disk.io.direction", name);
    vec![
        (direction("read"), Value::Count(sum(|phase| phase.bytes_read))),
        (direction("write"), Value::Count(sum(|phase| phase.bytes_written))),
    ]
}

/// Returns a count of one run, labelled with its outcome.
pub fn runs(run: &Run) -> Observations {
    vec![(
        with_label(&attributes::run_labels(run), "longhaul.run.outcome", run.outcome.name()),
        Value::Count(1),
    )]
}

/// Returns the duration of a successful run, in seconds. Other runs have no value, because the duration of a
/// hung run is only its timeout.
pub fn duration(run: &Run) -> Observations {
    let is_ok = run.outcome == Outcome::Ok;
    is_ok.then(|| (attributes::run_labels(run), Value::Number(run.seconds))).into_iter().collect()
}

/// Returns the figures of a run that have this unit, by phase.
pub fn figures(run: &Run, unit: Unit) -> Observations {
    let labels = attributes::run_labels(run);
    let of_phase = |phase: &Phase| {
        let labels = with_label(&labels, "longhaul.phase", &phase.name);
        let labels = with_label(&labels, "longhaul.cache.state", phase.cache.name());
        let wanted = phase.figures.iter().filter(|figure| figure.unit == unit);
        let found = wanted.map(|figure| {
            (with_label(&labels, "longhaul.figure", &figure.name), Value::Number(figure.value))
        });
        found.collect::<Vec<_>>()
    };
    run.phases.iter().flat_map(of_phase).collect()
}

/// Returns 1 if the run reached its target and 0 if the target hung or was unavailable. A void run has no
/// value.
pub fn availability(run: &Run) -> Observations {
    let available = match run.outcome {
        Outcome::Ok | Outcome::Error => 1.0,
        Outcome::Hung | Outcome::Unavailable => 0.0,
        Outcome::Void => return vec![],
    };
    vec![(target_labels(&run.target), Value::Number(available))]
}

/// Returns the free bytes on the target. No value if the run did not record them.
pub fn free_bytes(run: &Run) -> Observations {
    let labels = with_label(&target_labels(&run.target), "system.filesystem.state", "free");
    run.conditions.free_bytes.map(|bytes| (labels, Value::Number(bytes as f64))).into_iter().collect()
}

/// Returns a count of one round, labelled with its status.
pub fn rounds(round: &FinishedRound) -> Observations {
    let status = round.stored.end.as_ref().map(|end| end.status.name());
    let labels = |status: &str| [("longhaul.round.status".into(), status.to_owned())].into();
    status.map(|status| (labels(status), Value::Count(1))).into_iter().collect()
}

/// Returns the end of a round, in seconds since 1970 UTC.
pub fn round_end_time(round: &FinishedRound) -> Observations {
    let ended =
        round.stored.end.as_ref().map(|end| Value::Number(end.ended.seconds_since(Timestamp::UNIX_EPOCH)));
    ended.map(|value| (Labels::new(), value)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::tests::samples;

    #[test]
    fn calls_are_merged_per_cache_state() {
        let round = samples::round(1);
        let run = &round.runs[0].run;
        let found = durations(run);
        let states: BTreeSet<&String> =
            found.iter().map(|(labels, _)| &labels["longhaul.cache.state"]).collect();
        assert_eq!(states.len(), 2, "{states:?}");
        let count = |value: &Value| if let Value::Histogram(found) = value { found.count() } else { 0 };
        let counted: u64 = found.iter().map(|(_, value)| count(value)).sum();
        let stored = run.phases.iter().flat_map(|phase| &phase.operations);
        assert_eq!(counted, stored.map(|stats| stats.latency.count()).sum::<u64>());
    }

    #[test]
    fn unknown_values_give_no_point() {
        let mut round = samples::round(1);
        let run = &mut round.runs[0].run;
        run.conditions.free_bytes = None;
        run.outcome = Outcome::Void;
        assert_eq!((free_bytes(run).len(), availability(run).len(), duration(run).len()), (0, 0, 0));
    }
}
