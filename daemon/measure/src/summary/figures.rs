//! What a few runs say, in all their figures. Pure: runs in, one serialisable value out.
//!
//! Here no winner is named: that is [`weekly`](super::weekly)'s. Epochs are never pooled, nor scales, nor cold with warm; what was left out is counted.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::caching::{Caching, Reread, caching};
use super::samples::{Kept, LeftOut, Sample};
use crate::model::{CacheState, Outcome, Phase, Run, Scale, TargetName, Unit};
use crate::stats::{median, quantile};
use crate::workloads::{everything, workload};

/// Version of the serialised form.
const SCHEMA: u32 = 1;

/// The summary.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Version of this form.
    pub schema: u32,
    /// The scale of all runs in it; `None` if there is no run.
    pub scale: Option<Scale>,
    /// Every target, by name.
    pub targets: Vec<TargetSummary>,
    /// Every workload that was run, in the order of the table.
    pub workloads: Vec<WorkloadSummary>,
    /// Whether each target's protocol is cached by the client.
    pub caching: Vec<Caching>,
    /// What was left out, and why.
    pub left_out: Vec<LeftOut>,
}

/// What was run on a target.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TargetSummary {
    /// Its name.
    pub name: TargetName,
    /// How it is reached in its newest epoch; `None` if that is not known.
    pub protocol: Option<String>,
    /// Runs by outcome.
    pub outcomes: BTreeMap<&'static str, usize>,
}

/// One workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkloadSummary {
    /// Its name.
    pub name: String,
    /// Its figures, in the order in which runs give them.
    pub figures: Vec<FigureSummary>,
}

/// One figure of one workload, target by target.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FigureSummary {
    /// Unique within the workload: phase, figure and, where it applies, cache state.
    pub name: String,
    /// The phase; `run` for the whole.
    pub phase: String,
    /// Whether the phase met caches.
    pub cache: CacheState,
    /// The figure's name in its phase.
    pub figure: String,
    /// Its unit.
    pub unit: Unit,
    /// What each target says.
    pub by_target: BTreeMap<TargetName, Spread>,
    /// Each pair of targets, paired by round.
    pub ratios: Vec<Ratio>,
}

/// The values of one figure on one target.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spread {
    /// The median; `None` if no run gave the figure.
    pub median: Option<f64>,
    /// The 95th percentile by nearest rank: below 20 values it is the maximum.
    pub p95: Option<f64>,
    /// The quartiles.
    pub p25: Option<f64>,
    /// The quartiles.
    pub p75: Option<f64>,
    /// The smallest.
    pub min: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
    /// How many runs gave it.
    pub n: usize,
    /// How many runs of the workload failed here, and gave nothing to the values above.
    pub failed: usize,
    /// How the phases were made cold, and how many each way.
    pub cold_by: BTreeMap<&'static str, usize>,
}

/// Two targets, compared round by round.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ratio {
    /// The denominator.
    pub a: TargetName,
    /// The numerator.
    pub b: TargetName,
    /// The median over rounds of the figure of `b` divided by that of `a`.
    pub median_ratio: f64,
    /// The smallest and largest ratio of a round.
    pub range: (f64, f64),
    /// In how many rounds both gave the figure.
    pub rounds: usize,
}

/// Identifies a figure within a workload; ordered by first appearance through the number.
type Key = (String, CacheState, String);

/// Values of one figure: by target, by round.
#[derive(Default)]
struct Series {
    unit: Option<Unit>,
    values: BTreeMap<TargetName, BTreeMap<i64, f64>>,
    cold_by: BTreeMap<TargetName, BTreeMap<&'static str, usize>>,
}

/// Summarises runs of one scale: the given one, or else the scale of the last run.
pub fn summarise(samples: &[Sample<'_>], scale: Option<Scale>) -> Summary {
    let scale = scale.or_else(|| samples.last().map(|sample| sample.run.scale));
    let Kept { samples: kept, newest, left_out } = Kept::of(samples, scale);
    let rereads: Vec<Reread> = kept.iter().flat_map(|sample| rereads(sample)).collect();
    let kept: Vec<&Run> = kept.into_iter().map(|sample| sample.run).collect();
    Summary {
        schema: SCHEMA,
        scale,
        targets: newest.keys().map(|name| target_summary(name, &kept)).collect(),
        workloads: everything().filter_map(|workload| workload_summary(workload.name(), &kept)).collect(),
        caching: caching(&rereads),
        left_out,
    }
}

fn rereads(sample: &Sample<'_>) -> impl Iterator<Item = Reread> {
    let Sample { run, epoch, .. } = *sample;
    let phases = run.phases.iter().filter(|_| run.outcome == Outcome::Ok);
    phases.filter_map(move |phase| Reread::of(run, epoch, phase))
}

fn target_summary(name: &TargetName, runs: &[&Run]) -> TargetSummary {
    let mine = || runs.iter().filter(|run| run.target == *name);
    let mut outcomes = BTreeMap::new();
    for run in mine() {
        *outcomes.entry(run.outcome.name()).or_insert(0) += 1;
    }
    let protocol = mine().rev().find_map(|run| run.protocol.as_ref()).map(ToString::to_string);
    TargetSummary { name: name.clone(), protocol, outcomes }
}

fn workload_summary(name: &str, runs: &[&Run]) -> Option<WorkloadSummary> {
    let runs: Vec<&Run> = runs.iter().copied().filter(|run| run.workload == name).collect();
    if runs.is_empty() {
        return None;
    }
    let mut failed: BTreeMap<TargetName, usize> = BTreeMap::new();
    for run in &runs {
        *failed.entry(run.target.clone()).or_default() += usize::from(run.outcome.is_failure());
    }
    let figures = series_of(&runs).into_iter().map(|(key, series)| figure_summary(key, &series, &failed));
    Some(WorkloadSummary { name: name.to_owned(), figures: figures.collect() })
}

/// The figures of all runs that are ok, in the order of their first appearance.
fn series_of(runs: &[&Run]) -> Vec<(Key, Series)> {
    let mut all: Vec<(Key, Series)> = vec![];
    let mut add = |run: &Run, key: Key, (unit, value): (Unit, f64), phase: Option<&Phase>| {
        let place = all.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
            all.push((key, Series::default()));
            all.len() - 1
        });
        let series = &mut all[place].1;
        series.unit = Some(unit);
        series.values.entry(run.target.clone()).or_default().insert(run.round, value);
        if let Some(way) = phase.and_then(|phase| phase.cold_by) {
            *series.cold_by.entry(run.target.clone()).or_default().entry(way.name()).or_default() += 1;
        }
    };
    for run in runs.iter().filter(|run| run.outcome == Outcome::Ok) {
        if !workload(&run.workload).is_some_and(|workload| workload.is_paced()) {
            add(run, total(), (Unit::Seconds, run.seconds), None);
        }
        for phase in &run.phases {
            for figure in &phase.figures {
                let key = (phase.name.clone(), phase.cache, figure.name.clone());
                add(run, key, (figure.unit, figure.value), Some(phase));
            }
        }
    }
    if all.is_empty() {
        // Every run failed: the total stands there without a value, so that the failures are seen.
        all.push((total(), Series::default()));
    }
    all
}

/// The run as a whole.
fn total() -> Key {
    ("run".to_owned(), CacheState::None, "total".to_owned())
}

fn figure_summary(
    (phase, cache, figure): Key,
    series: &Series,
    failed: &BTreeMap<TargetName, usize>,
) -> FigureSummary {
    let suffix = match cache {
        CacheState::None => String::new(),
        state => format!(".{}", state.name()),
    };
    let spreads = failed.iter().map(|(target, failed)| {
        let values = series.values.get(target).map(|by_round| by_round.values().copied().collect());
        let cold_by = series.cold_by.get(target).cloned().unwrap_or_default();
        (target.clone(), spread(values.unwrap_or_default(), *failed, cold_by))
    });
    FigureSummary {
        name: format!("{phase}.{figure}{suffix}"),
        by_target: spreads.collect(),
        ratios: ratios(&series.values),
        unit: series.unit.unwrap_or(Unit::Seconds),
        phase,
        cache,
        figure,
    }
}

fn spread(values: Vec<f64>, failed: usize, cold_by: BTreeMap<&'static str, usize>) -> Spread {
    Spread {
        median: median(&values),
        p95: quantile(&values, 0.95),
        p25: quantile(&values, 0.25),
        p75: quantile(&values, 0.75),
        min: quantile(&values, 0.0),
        max: quantile(&values, 1.0),
        n: values.len(),
        failed,
        cold_by,
    }
}

fn ratios(values: &BTreeMap<TargetName, BTreeMap<i64, f64>>) -> Vec<Ratio> {
    let targets: BTreeSet<&TargetName> = values.keys().collect();
    let pairs = targets.iter().flat_map(|a| targets.iter().filter(move |b| a < b).map(move |b| (*a, *b)));
    pairs.filter_map(|(a, b)| ratio((a, &values[a]), (b, &values[b]))).collect()
}

/// Only rounds in which both gave the figure count: what else differed between rounds differs for both alike.
fn ratio(
    (a, of_a): (&TargetName, &BTreeMap<i64, f64>),
    (b, of_b): (&TargetName, &BTreeMap<i64, f64>),
) -> Option<Ratio> {
    let by_round: Vec<f64> = of_b
        .iter()
        .filter_map(|(round, value)| Some(value / of_a.get(round)?))
        .filter(|ratio| ratio.is_finite() && *ratio > 0.0)
        .collect();
    let logs: Vec<f64> = by_round.iter().map(|ratio| ratio.ln()).collect();
    Some(Ratio {
        a: a.clone(),
        b: b.clone(),
        median_ratio: median(&logs)?.exp(),
        range: (quantile(&by_round, 0.0)?, quantile(&by_round, 1.0)?),
        rounds: by_round.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ColdBy, Conditions, Figure, Protocol};

    fn run(target: &str, round: i64, seconds: f64) -> Run {
        let phase = |cache, cold_by, value| Phase {
            name: "walk".into(),
            cache,
            cold_by,
            began_us: None,
            seconds,
            bytes_read: 0,
            bytes_written: 0,
            complete: true,
            figures: vec![Figure::new("walk", Unit::Seconds, value)],
            operations: vec![],
            calls: vec![],
            wire: None,
        };
        Run {
            round,
            slot: 0,
            target: target.parse().unwrap(),
            protocol: Some(Protocol::Smb(Some("3.1.1".into()))),
            workload: "folder-index".into(),
            scale: Scale::Quick,
            outcome: Outcome::Ok,
            started_us: round,
            utc_offset_seconds: 0,
            seconds,
            phases: vec![
                phase(CacheState::Cold, Some(ColdBy::Unverified), seconds),
                phase(CacheState::Warm, None, seconds / 10.0),
            ],
            failure: None,
            facts: BTreeMap::new(),
            conditions: Conditions::default(),
        }
    }

    fn of(runs: &[Run]) -> Summary {
        let samples: Vec<_> = runs.iter().map(|run| Sample { epoch: 1, is_void: false, run }).collect();
        summarise(&samples, None)
    }

    fn figure<'a>(summary: &'a Summary, name: &str) -> &'a FigureSummary {
        summary.workloads[0].figures.iter().find(|figure| figure.name == name).unwrap()
    }

    #[test]
    fn cold_and_warm_stand_apart() {
        let summary = of(&[run("smb", 1, 10.0), run("smb", 2, 20.0)]);
        let median = |name: &str| figure(&summary, name).by_target[&"smb".parse().unwrap()].median;
        assert_eq!((median("walk.walk.cold"), median("walk.walk.warm")), (Some(15.0), Some(1.5)));
        let cold = &figure(&summary, "walk.walk.cold").by_target[&"smb".parse().unwrap()].cold_by;
        assert_eq!(cold.get("unverified"), Some(&2));
    }

    #[test]
    fn a_ratio_pairs_by_round_and_leaves_unpaired_rounds_out() {
        // Each round is ten times slower than the last; within a round nfs always takes twice as long.
        let mut runs = vec![];
        for round in 0..4 {
            runs.push(run("nfs", round, 2.0 * 10f64.powi(round as i32)));
            runs.push(run("smb", round, 10f64.powi(round as i32)));
        }
        runs.push(run("nfs", 9, 1000.0));
        let summary = of(&runs);
        let ratio = &figure(&summary, "run.total").ratios[0];
        assert_eq!((ratio.a.as_str(), ratio.b.as_str(), ratio.rounds), ("nfs", "smb", 4));
        assert!((ratio.median_ratio - 0.5).abs() < 1e-12);
    }

    #[test]
    fn failures_are_counted_and_give_no_value() {
        let mut failed = run("smb", 2, 0.001);
        failed.outcome = Outcome::Hung;
        let mut void = run("smb", 3, 0.001);
        void.outcome = Outcome::Void;
        let summary = of(&[run("smb", 1, 10.0), failed, void]);
        let spread = &figure(&summary, "run.total").by_target[&"smb".parse().unwrap()];
        assert_eq!((spread.n, spread.failed, spread.median), (1, 1, Some(10.0)));
        assert_eq!(summary.targets[0].outcomes, BTreeMap::from([("hung", 1), ("ok", 1), ("void", 1)]));
    }

    #[test]
    fn a_workload_that_only_failed_is_still_seen() {
        let mut failed = run("smb", 1, 1.0);
        failed.outcome = Outcome::Error;
        let summary = of(&[failed]);
        let spread = &figure(&summary, "run.total").by_target[&"smb".parse().unwrap()];
        assert_eq!((spread.n, spread.failed, spread.median), (0, 1, None));
    }

    #[test]
    fn epochs_and_scales_are_never_pooled_and_what_is_left_out_is_said() {
        let (old, new) = (run("smb", 1, 100.0), run("smb", 2, 1.0));
        let mut large = run("smb", 3, 5.0);
        large.scale = Scale::Large;
        let samples = [
            Sample { epoch: 1, is_void: false, run: &old },
            Sample { epoch: 2, is_void: false, run: &large },
            Sample { epoch: 2, is_void: false, run: &new },
        ];
        let summary = summarise(&samples, None);
        assert_eq!(figure(&summary, "run.total").by_target[&"smb".parse().unwrap()].median, Some(1.0));
        assert_eq!(summary.left_out.iter().map(|left| left.runs).collect::<Vec<_>>(), [1, 1]);
        assert_eq!(summarise(&[], None).workloads, []);
    }

    #[test]
    fn slices_are_never_pooled_with_the_whole_and_failures_stay() {
        let (whole, mut slice, mut hung) = (run("smb", 1, 8.0), run("smb", 2, 1.0), run("smb", 3, 9.0));
        slice.facts.insert(Run::SLICE.to_owned(), "1 of 8".to_owned());
        hung.outcome = Outcome::Hung;
        let mut other_scale = run("smb", 4, 0.1);
        other_scale.scale = Scale::Large;
        let samples =
            [&whole, &slice, &hung, &other_scale].map(|run| Sample { epoch: 1, is_void: false, run });
        let summary = summarise(&samples, Some(slice.scale));
        let spread = &figure(&summary, "run.total").by_target[&"smb".parse().unwrap()];
        assert_eq!((spread.median, spread.n, spread.failed), (Some(1.0), 1, 1));
        assert_eq!(summary.left_out.iter().map(|left_out| left_out.runs).collect::<Vec<_>>(), [1, 1]);
    }

    #[test]
    fn a_round_in_which_the_machine_slept_is_left_out_for_all() {
        let (good, slept) = (run("smb", 1, 1.0), run("smb", 2, 9.0));
        let samples = [
            Sample { epoch: 1, is_void: false, run: &good },
            Sample { epoch: 1, is_void: true, run: &slept },
        ];
        let summary = summarise(&samples, None);
        assert_eq!(figure(&summary, "run.total").by_target[&"smb".parse().unwrap()].n, 1);
        assert_eq!((summary.left_out.len(), summary.left_out[0].runs), (1, 1));
    }
}
