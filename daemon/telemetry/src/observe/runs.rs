//! What a stored run or round says.

use longhaul_measure::model::{OperationStats, Outcome, Phase, Run, Unit};
use longhaul_store::FinishedRound;

use super::{Observed, with};
use crate::attributes::{self, Labels};
use crate::values::Value;

/// The calls of a run by kind and by whether they met caches: cold and warm are never merged.
pub fn durations(run: &Run) -> Observed {
    let mut found: Vec<(Labels, Value)> = vec![];
    for (labels, stats) in operations(run).filter(|(_, stats)| stats.latency.count() > 0) {
        match found.iter_mut().find(|(known, _)| *known == labels) {
            Some((_, value)) => value.add(&Value::Histogram(stats.latency.clone())),
            None => found.push((labels, Value::Histogram(stats.latency.clone()))),
        }
    }
    found
}

/// The calls that failed, likewise.
pub fn errors(run: &Run) -> Observed {
    let mut found: Vec<(Labels, Value)> = vec![];
    for (labels, stats) in operations(run) {
        match found.iter_mut().find(|(known, _)| *known == labels) {
            Some((_, value)) => value.add(&Value::Count(stats.errors)),
            None => found.push((labels, Value::Count(stats.errors))),
        }
    }
    found
}

fn operations(run: &Run) -> impl Iterator<Item = (Labels, &OperationStats)> {
    let labels = attributes::of_run(run);
    run.phases.iter().flat_map(move |phase| {
        let labels = with(&labels, "longhaul.cache.state", phase.cache.name());
        phase
            .operations
            .iter()
            .map(move |stats| (with(&labels, "longhaul.file.operation.name", stats.operation.name()), stats))
    })
}

/// Bytes, by their direction.
pub fn bytes(run: &Run) -> Observed {
    let labels = attributes::of_run(run);
    let sum = |part: fn(&Phase) -> u64| run.phases.iter().map(part).fold(0, u64::saturating_add);
    let direction = |name| with(&labels, "disk.io.direction", name);
    vec![
        (direction("read"), Value::Count(sum(|phase| phase.bytes_read))),
        (direction("write"), Value::Count(sum(|phase| phase.bytes_written))),
    ]
}

/// One run, by how it ended.
pub fn runs(run: &Run) -> Observed {
    vec![(with(&attributes::of_run(run), "longhaul.run.outcome", run.outcome.name()), Value::Count(1))]
}

/// What did not end well took as long as it was allowed to, which says nothing.
pub fn duration(run: &Run) -> Observed {
    let is_ok = run.outcome == Outcome::Ok;
    is_ok.then(|| (attributes::of_run(run), Value::Number(run.seconds))).into_iter().collect()
}

/// What a run found in this unit, phase by phase.
pub fn figures(run: &Run, unit: Unit) -> Observed {
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
pub fn available(run: &Run) -> Observed {
    let is_there = match run.outcome {
        Outcome::Ok | Outcome::Error => 1.0,
        Outcome::Hung | Outcome::Unavailable => 0.0,
        Outcome::Void => return vec![],
    };
    vec![(target_of(run), Value::Number(is_there))]
}

/// Free bytes on the target.
pub fn free(run: &Run) -> Observed {
    let labels = with(&target_of(run), "system.filesystem.state", "free");
    run.conditions.free_bytes.map(|bytes| (labels, Value::Number(bytes as f64))).into_iter().collect()
}

/// One round, by how it ended.
pub fn rounds(round: &FinishedRound) -> Observed {
    let status = round.stored.end.as_ref().map(|end| end.status.name());
    let labels = |status: &str| [("longhaul.round.status".into(), status.to_owned())].into();
    status.map(|status| (labels(status), Value::Count(1))).into_iter().collect()
}

/// When it ended.
pub fn round_ended(round: &FinishedRound) -> Observed {
    let ended = round.stored.end.as_ref().map(|end| Value::Number(end.ended_us as f64 / 1e6));
    ended.map(|value| (Labels::new(), value)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::tests::samples;

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
}
