//! Medians over the rounds, and the layer that stands out.

use std::collections::BTreeMap;

use longhaul_model::{PhaseTimes, TASKS, TargetName, Task, WaitMetric, median};

use super::bandwidth::Bandwidth;
use super::estimate::BoundedSeconds;
use super::layer::{Attribution, Layer, Part};
use super::metric_parts::{MetricParts, RunInput, metric_parts};

/// Least share of the time that would be saved on good equipment for a layer to stand out.
const MIN_SAVED_SHARE: f64 = 0.25;
/// Least time that would be saved for a layer to stand out, in seconds: less is not felt.
const MIN_SAVED_SECONDS: f64 = 0.1;
/// Least number of rounds for an interval from order statistics; with fewer it spans all rounds.
const MIN_ROUNDS: usize = 6;

/// Attributes the time of every metric of every network target to layers. `disk_seconds` is what each NAS reported, by
/// number of the run. Local file systems are left out: they have no wire and no server.
pub fn attribute(phases: &[PhaseTimes], disk_seconds: &BTreeMap<i64, f64>) -> Vec<Attribution> {
    let mut targets: BTreeMap<&TargetName, Vec<&PhaseTimes>> = BTreeMap::new();
    for phase in phases.iter().filter(|phase| phase.is_on_network()) {
        targets.entry(&phase.target).or_default().push(phase);
    }
    targets.values().flat_map(|phases| of_target(phases, disk_seconds)).collect()
}

fn of_target(phases: &[&PhaseTimes], disk_seconds: &BTreeMap<i64, f64>) -> Vec<Attribution> {
    let bandwidth = Bandwidth::of(phases);
    let runs: Vec<&[&PhaseTimes]> = phases.chunk_by(|one, next| one.run == next.run).collect();
    let of_task = |task: &'static Task| {
        let runs: Vec<RunInput<'_>> = runs
            .iter()
            .filter(|phases| phases[0].workload == task.name())
            .map(|phases| {
                let disk_seconds = disk_seconds.get(&phases[0].run).copied();
                RunInput { phases, task, bandwidth, disk_seconds }
            })
            .collect();
        task.metrics().iter().filter_map(|metric| of_metric(&runs, metric)).collect::<Vec<_>>()
    };
    TASKS.iter().flat_map(of_task).collect()
}

fn of_metric(runs: &[RunInput<'_>], metric: &'static WaitMetric) -> Option<Attribution> {
    let found: Vec<MetricParts> = runs.iter().filter_map(|run| metric_parts(*run, metric)).collect();
    let last = runs.last()?.phases.last()?;
    let seconds = median_of(found.iter().map(|parts| parts.seconds))?;
    let parts = scaled(Layer::ALL.map(|layer| part(&found, layer)), seconds);
    Some(Attribution {
        target: last.target.clone(),
        protocol: last.protocol.as_ref().map(ToString::to_string),
        task: runs.last()?.task.name(),
        metric: metric.name,
        rounds: found.len(),
        seconds,
        largest: standing_out(&parts, &found, seconds),
        parts: parts.to_vec(),
        round_trips: median_of(found.iter().filter_map(|parts| parts.round_trips)),
    })
}

/// Returns the median part of a layer over the rounds in which it is known; unknown if that is less than half of them.
fn part(rounds: &[MetricParts], layer: Layer) -> Part {
    let known: Vec<BoundedSeconds> = rounds.iter().filter_map(|round| round.parts[layer as usize]).collect();
    if known.is_empty() || known.len() * 2 < rounds.len() {
        return Part { layer, seconds: None, low: None, high: None };
    }
    let sorted = |end: fn(&BoundedSeconds) -> f64| {
        let mut ends: Vec<f64> = known.iter().map(end).collect();
        ends.sort_unstable_by(f64::total_cmp);
        ends
    };
    let rank = lower_rank(known.len());
    let high = sorted(|estimate| estimate.high);
    Part {
        layer,
        seconds: median_of(known.iter().map(|estimate| estimate.value)),
        low: Some(sorted(|estimate| estimate.low)[rank]),
        high: Some(high[high.len() - 1 - rank]),
    }
}

/// Returns the rank, from 0, of the order statistic at the lower end of a 95 % interval of the median.
fn lower_rank(values: usize) -> usize {
    if values < MIN_ROUNDS {
        return 0;
    }
    let n = values as f64;
    (n / 2.0 - 0.98 * n.sqrt()).floor().max(1.0) as usize - 1
}

/// Scales parts so that they add up to the median time: medians of parts need not. Not done while the largest parts are
/// unknown.
fn scaled(parts: [Part; Layer::ALL.len()], seconds: f64) -> [Part; Layer::ALL.len()] {
    let sum: f64 = parts.iter().filter_map(|part| part.seconds).sum();
    let is_known =
        parts[Layer::Client as usize].seconds.is_some() && parts[Layer::Server as usize].seconds.is_some();
    if !is_known || sum <= 0.0 {
        return parts;
    }
    let scale = |value: Option<f64>| value.map(|value| value * seconds / sum);
    parts.map(|part| Part {
        seconds: scale(part.seconds),
        low: scale(part.low),
        high: scale(part.high),
        ..part
    })
}

/// Returns the layer that stands out: the one with most time above what good equipment takes, if at least a quarter of the
/// whole time, and so much that it is felt, would be saved.
fn standing_out(parts: &[Part], rounds: &[MetricParts], seconds: f64) -> Option<Layer> {
    let saved = |part: &Part| {
        let usual = median_of(rounds.iter().map(|round| round.usual[part.layer as usize]))?;
        Some((part.layer, part.seconds? - usual))
    };
    let most = parts.iter().filter_map(saved).max_by(|one, other| one.1.total_cmp(&other.1));
    let least = MIN_SAVED_SECONDS.max(MIN_SAVED_SHARE * seconds);
    most.filter(|(_, saved)| *saved >= least).map(|(layer, _)| layer)
}

fn median_of(values: impl Iterator<Item = f64>) -> Option<f64> {
    median(&values.collect::<Vec<_>>())
}
