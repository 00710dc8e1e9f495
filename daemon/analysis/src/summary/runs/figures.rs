//! Summarizes a set of runs, figure by figure. Pure: takes runs and returns one serializable value.
//!
//! This summary names no winner; verdicts are made only in [`weekly`](super::super::weekly). Epochs, scales, and cold and warm
//! phases are never pooled. Excluded runs are counted with the reason.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::caching::{ClientCaching, client_caching};
use super::run_selection::{EpochRun, Excluded, RunSelection};
use longhaul_model::{CacheState, Outcome, Phase, Reread, Run, Scale, TargetName, Unit, median, quantile};

/// Version of the serialized form of [`Summary`].
const SCHEMA: u32 = 1;

/// Summary of a set of runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Version of the serialized form.
    pub schema: u32,
    /// Scale of all summarized runs; `None` if there is no run.
    pub scale: Option<Scale>,
    /// Targets, sorted by name.
    pub targets: Vec<TargetSummary>,
    /// Workloads that were run, known ones in the given order, then the user's profiles by name.
    pub workloads: Vec<WorkloadSummary>,
    /// Verdict on client caching of each target.
    pub caching: Vec<ClientCaching>,
    /// Runs that are not in the figures, with the reason.
    pub excluded: Vec<Excluded>,
}

/// Runs on one target.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TargetSummary {
    /// Name of the target.
    pub name: TargetName,
    /// Protocol in the target's newest epoch; `None` if unknown.
    pub protocol: Option<String>,
    /// Number of runs by outcome.
    pub outcomes: BTreeMap<&'static str, usize>,
}

/// Figures of one workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkloadSummary {
    /// Name of the workload.
    pub name: String,
    /// Figures, in the order in which the runs report them.
    pub figures: Vec<FigureSummary>,
}

/// One figure of one workload, with the values of all targets.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FigureSummary {
    /// Name of the figure, unique within the workload: `phase.figure`, plus `.cold` or `.warm` if the phase has a
    /// cache state.
    pub name: String,
    /// Phase that reports the figure; `run` for the run as a whole.
    pub phase: String,
    /// Cache state of the phase.
    pub cache: CacheState,
    /// Name of the figure within its phase.
    pub figure: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Values by target.
    pub by_target: BTreeMap<TargetName, Spread>,
    /// Ratios of each pair of targets, paired by round.
    pub ratios: Vec<Ratio>,
}

/// Distribution of one figure on one target.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spread {
    /// Median; `None` if no run reported the figure.
    pub median: Option<f64>,
    /// 95th percentile by nearest rank; up to 20 values it is the maximum. `None` without a value.
    pub p95: Option<f64>,
    /// First quartile; `None` without a value.
    pub p25: Option<f64>,
    /// Third quartile; `None` without a value.
    pub p75: Option<f64>,
    /// Minimum; `None` without a value.
    pub min: Option<f64>,
    /// Maximum; `None` without a value.
    pub max: Option<f64>,
    /// Number of runs that reported the figure.
    pub n: usize,
    /// Number of failed runs of the workload on this target; they contribute no value.
    pub failed: usize,
    /// Number of phases by cold method: how the caches were emptied.
    pub cold_by: BTreeMap<&'static str, usize>,
}

/// Ratio of one figure between two targets, paired by round.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ratio {
    /// Target in the denominator.
    pub a: TargetName,
    /// Target in the numerator.
    pub b: TargetName,
    /// Median over rounds of the figure of `b` divided by the figure of `a`.
    pub median_ratio: f64,
    /// Smallest and largest ratio of a single round.
    pub range: (f64, f64),
    /// Number of rounds in which both targets reported the figure.
    pub rounds: usize,
}

/// A workload that longhaul itself has: summaries list these first, in the order given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownWorkload {
    /// Name of the workload.
    pub name: &'static str,
    /// True if it waits on a schedule of its own, so that its total duration says nothing about the target.
    pub is_paced: bool,
}

/// Key of a figure within a workload.
#[derive(PartialEq)]
struct FigureKey {
    phase: String,
    cache: CacheState,
    figure: String,
}

/// Values of one figure, by target and round.
#[derive(Default)]
struct FigureSeries {
    unit: Option<Unit>,
    values: BTreeMap<TargetName, BTreeMap<i64, f64>>,
    cold_by: BTreeMap<TargetName, BTreeMap<&'static str, usize>>,
}

/// Summarizes the runs of one scale: the given scale, or else that of most runs.
pub fn summarize(samples: &[EpochRun<'_>], scale: Option<Scale>, known: &[KnownWorkload]) -> Summary {
    let scale = scale.or_else(|| Scale::most_frequent(samples.iter().map(|sample| sample.run.scale)));
    let RunSelection { runs: selected, targets, excluded } = RunSelection::select(samples, scale);
    let rereads: Vec<Reread> = selected.iter().flat_map(|sample| rereads(sample)).collect();
    let runs: Vec<&Run> = selected.into_iter().map(|sample| sample.run).collect();
    Summary {
        schema: SCHEMA,
        scale,
        targets: targets.iter().map(|name| target_summary(name, &runs)).collect(),
        workloads: workload_names(known, &runs)
            .filter_map(|name| workload_summary(name, known, &runs))
            .collect(),
        caching: client_caching(&rereads),
        excluded,
    }
}

/// Returns the names of the known workloads in the given order, then the sorted names of the user's
/// profiles that occur in these runs.
fn workload_names<'a>(known: &[KnownWorkload], runs: &[&'a Run]) -> impl Iterator<Item = &'a str> {
    let is_known = |name: &&str| known.iter().any(|workload| workload.name == *name);
    let profiles: BTreeSet<&str> =
        runs.iter().map(|run| run.workload.as_str()).filter(|name| !is_known(name)).collect();
    known.iter().map(|workload| workload.name).chain(profiles)
}

fn rereads(sample: &EpochRun<'_>) -> impl Iterator<Item = Reread> {
    let EpochRun { run, epoch, .. } = *sample;
    let phases = run.phases.iter().filter(|_| run.outcome == Outcome::Ok);
    phases.filter_map(move |phase| Reread::from_phase(run, epoch, phase))
}

fn target_summary(name: &TargetName, runs: &[&Run]) -> TargetSummary {
    let own_runs = || runs.iter().filter(|run| run.target == *name);
    let mut outcomes = BTreeMap::new();
    for run in own_runs() {
        *outcomes.entry(run.outcome.name()).or_insert(0) += 1;
    }
    let protocol = own_runs().rev().find_map(|run| run.protocol.as_ref()).map(ToString::to_string);
    TargetSummary { name: name.clone(), protocol, outcomes }
}

fn workload_summary(name: &str, known: &[KnownWorkload], runs: &[&Run]) -> Option<WorkloadSummary> {
    let runs: Vec<&Run> = runs.iter().copied().filter(|run| run.workload == name).collect();
    if runs.is_empty() {
        return None;
    }
    let workload = known.iter().find(|workload| workload.name == name);
    let mut failed: BTreeMap<TargetName, usize> = BTreeMap::new();
    for run in &runs {
        *failed.entry(run.target.clone()).or_default() += usize::from(run.outcome.is_failure());
    }
    let figures = collect_series(&runs, workload)
        .into_iter()
        .map(|(key, series)| figure_summary(key, &series, &failed));
    Some(WorkloadSummary { name: name.to_owned(), figures: figures.collect() })
}

/// Collects the figures of all successful runs, in the order in which they first appear.
fn collect_series(runs: &[&Run], workload: Option<&KnownWorkload>) -> Vec<(FigureKey, FigureSeries)> {
    let is_paced = workload.is_some_and(|workload| workload.is_paced);
    let mut all: Vec<(FigureKey, FigureSeries)> = vec![];
    let mut add = |run: &Run, key: FigureKey, (unit, value): (Unit, f64), phase: Option<&Phase>| {
        let place = all.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
            all.push((key, FigureSeries::default()));
            all.len() - 1
        });
        let series = &mut all[place].1;
        series.unit = Some(unit);
        series.values.entry(run.target.clone()).or_default().insert(run.round, value);
        if let Some(method) = phase.and_then(|phase| phase.cold_by) {
            *series.cold_by.entry(run.target.clone()).or_default().entry(method.name()).or_default() += 1;
        }
    };
    for run in runs.iter().filter(|run| run.outcome == Outcome::Ok) {
        // The duration of a paced workload follows from its schedule and says nothing about the target.
        if !is_paced {
            add(run, total_key(), (Unit::Seconds, run.seconds), None);
        }
        for phase in &run.phases {
            for figure in &phase.figures {
                let (name, figure_name) = (phase.name.clone(), figure.name.clone());
                let key = FigureKey { phase: name, cache: phase.cache, figure: figure_name };
                add(run, key, (figure.unit, figure.value), Some(phase));
            }
        }
    }
    if all.is_empty() {
        // All runs failed: list the total without a value, so that the failures are shown.
        all.push((total_key(), FigureSeries::default()));
    }
    all
}

/// Returns the key of the run's total duration.
fn total_key() -> FigureKey {
    FigureKey { phase: "run".to_owned(), cache: CacheState::None, figure: "total".to_owned() }
}

fn figure_summary(
    key: FigureKey,
    series: &FigureSeries,
    failed: &BTreeMap<TargetName, usize>,
) -> FigureSummary {
    let FigureKey { phase, cache, figure } = key;
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
    pairs.filter_map(|(a, b)| ratio(a, b, values)).collect()
}

/// Returns the ratio of two targets over the rounds in which both reported the figure. Pairing by round cancels
/// differences between rounds that affect both targets.
fn ratio(a: &TargetName, b: &TargetName, values: &BTreeMap<TargetName, BTreeMap<i64, f64>>) -> Option<Ratio> {
    let of_a = values.get(a)?;
    let by_round: Vec<f64> = values
        .get(b)?
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
pub(super) mod tests {
    use super::*;
    use longhaul_model::{ColdMethod, Figure, Protocol, Timestamp};

    pub fn run(target: &str, round: i64, seconds: f64) -> Run {
        let phase = |cache, cold_by, value| Phase {
            cold_by,
            seconds,
            figures: vec![Figure::new("walk", Unit::Seconds, value)],
            ..Phase::new("walk", cache)
        };
        let cold = phase(CacheState::Cold, Some(ColdMethod::Unverified), seconds);
        Run {
            protocol: Some(Protocol::Smb(Some("3.1.1".into()))),
            seconds,
            phases: vec![cold, phase(CacheState::Warm, None, seconds / 10.0)],
            ..Run::new(round, target.parse().unwrap(), "folder-index", Timestamp::from_us(round))
        }
    }

    pub fn summary_of(runs: &[Run]) -> Summary {
        let samples: Vec<_> = runs.iter().map(|run| EpochRun { epoch: 1, is_void: false, run }).collect();
        summarize(&samples, None, &tasks())
    }

    pub fn figure<'a>(summary: &'a Summary, name: &str) -> &'a FigureSummary {
        summary.workloads[0].figures.iter().find(|figure| figure.name == name).unwrap()
    }

    pub fn tasks() -> Vec<KnownWorkload> {
        longhaul_model::TASKS
            .iter()
            .map(|task| KnownWorkload { name: task.name(), is_paced: task.is_paced() })
            .collect()
    }

    #[test]
    fn cold_and_warm_are_separate() {
        let summary = summary_of(&[run("smb", 1, 10.0), run("smb", 2, 20.0)]);
        let median = |name: &str| figure(&summary, name).by_target[&"smb".parse().unwrap()].median;
        assert_eq!((median("walk.walk.cold"), median("walk.walk.warm")), (Some(15.0), Some(1.5)));
        let cold = &figure(&summary, "walk.walk.cold").by_target[&"smb".parse().unwrap()].cold_by;
        assert_eq!(cold.get("unverified"), Some(&2));
    }

    #[test]
    fn ratio_pairs_by_round_and_ignores_unpaired_rounds() {
        // Each round is ten times slower than the previous one; within a round nfs always takes twice as long.
        let mut runs = vec![];
        for round in 0..4 {
            runs.push(run("nfs", round, 2.0 * 10f64.powi(round as i32)));
            runs.push(run("smb", round, 10f64.powi(round as i32)));
        }
        runs.push(run("nfs", 9, 1000.0));
        let summary = summary_of(&runs);
        let ratio = &figure(&summary, "run.total").ratios[0];
        assert_eq!((ratio.a.as_str(), ratio.b.as_str(), ratio.rounds), ("nfs", "smb", 4));
        assert!((ratio.median_ratio - 0.5).abs() < 1e-12);
    }

    #[test]
    fn failures_are_counted_without_a_value() {
        let mut failed = run("smb", 2, 0.001);
        failed.outcome = Outcome::Hung;
        let mut void = run("smb", 3, 0.001);
        void.outcome = Outcome::Void;
        let summary = summary_of(&[run("smb", 1, 10.0), failed, void]);
        let spread = &figure(&summary, "run.total").by_target[&"smb".parse().unwrap()];
        assert_eq!((spread.n, spread.failed, spread.median), (1, 1, Some(10.0)));
        assert_eq!(summary.targets[0].outcomes, BTreeMap::from([("hung", 1), ("ok", 1), ("void", 1)]));
    }

    #[test]
    fn workload_with_only_failed_runs_is_listed() {
        let mut failed = run("smb", 1, 1.0);
        failed.outcome = Outcome::Error;
        let summary = summary_of(&[failed]);
        let spread = &figure(&summary, "run.total").by_target[&"smb".parse().unwrap()];
        assert_eq!((spread.n, spread.failed, spread.median), (0, 1, None));
    }

    #[test]
    fn epochs_and_scales_are_not_pooled() {
        let (old, new) = (run("smb", 1, 100.0), run("smb", 2, 1.0));
        let mut large = run("smb", 3, 5.0);
        large.scale = Scale::Large;
        let samples = [
            EpochRun { epoch: 1, is_void: false, run: &old },
            EpochRun { epoch: 2, is_void: false, run: &large },
            EpochRun { epoch: 2, is_void: false, run: &new },
        ];
        let summary = summarize(&samples, None, &tasks());
        assert_eq!(figure(&summary, "run.total").by_target[&"smb".parse().unwrap()].median, Some(1.0));
        assert_eq!(summary.excluded.iter().map(|excluded| excluded.runs).collect::<Vec<_>>(), [1, 1]);
        assert_eq!(summarize(&[], None, &tasks()).workloads, []);
    }

    #[test]
    fn void_round_is_excluded_for_all_targets() {
        let (good, slept) = (run("smb", 1, 1.0), run("smb", 2, 9.0));
        let samples = [
            EpochRun { epoch: 1, is_void: false, run: &good },
            EpochRun { epoch: 1, is_void: true, run: &slept },
        ];
        let summary = summarize(&samples, None, &tasks());
        assert_eq!(figure(&summary, "run.total").by_target[&"smb".parse().unwrap()].n, 1);
        assert_eq!((summary.excluded.len(), summary.excluded[0].runs), (1, 1));
    }
}
