//! Summarizes the runs of a preset: first the figures that the original benchmark prints, then details that the
//! original does not report.

use serde::Serialize;

use crate::preset::Preset;
use crate::profile::PrintedFigure;
use crate::published::published_figures;
use longhaul_analysis::stats::Steadiness;
use longhaul_measure::workloads::Workload as _;
use longhaul_model::{CacheState, Histogram, Operation, Outcome, Phase, Run, median};

/// Version of the JSON form of [`PresetSummary`].
const SCHEMA: u32 = 1;

/// Summary of all runs of one preset on one target.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PresetSummary {
    /// Version of the JSON form.
    pub schema: u32,
    /// Name of the preset, including the variant that was run.
    pub preset: String,
    /// Name of the original benchmark tool; `None` if the preset replicates no tool.
    pub original: Option<String>,
    /// Number of successful runs.
    pub runs: usize,
    /// Number of other runs; they contribute no figure.
    pub failed: usize,
    /// Figures that the original benchmark prints.
    pub figures: Vec<PresetFigure>,
    /// Details by phase that the original does not report.
    pub phases: Vec<PhaseSummary>,
    /// Result tables in the layout of the original, one for each run.
    pub tables: Vec<String>,
    /// Differences from the original, with their reasons.
    pub differences: Vec<String>,
}

/// One figure of the original benchmark, over all runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PresetFigure {
    /// Name of the figure in the original.
    pub name: String,
    /// Unit of the figure in the original.
    pub unit: &'static str,
    /// Value of each run, in the order of the runs.
    pub values: Vec<f64>,
    /// Median of the values; `None` without a value.
    pub median: Option<f64>,
    /// Smallest and largest value; `None` without a value.
    pub range: Option<(f64, f64)>,
    /// Published values of the same figure.
    pub published: Vec<PublishedComparison>,
}

/// A published value, compared with the measured median.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishedComparison {
    /// Conditions of the published measurement.
    pub setup: &'static str,
    /// Published value, in the unit of the figure.
    pub value: f64,
    /// Measured median divided by the published value; `None` without a measured value.
    pub times_published: Option<f64>,
    /// Note on the published value.
    pub note: Option<&'static str>,
    /// Citation of the source.
    pub citation: &'static str,
}

/// Details of one phase, over all runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhaseSummary {
    /// Name of the phase.
    pub phase: String,
    /// Cache state of the phase.
    pub cache: CacheState,
    /// Number of runs by cold method: how the caches were emptied.
    pub cold_by: Vec<(&'static str, usize)>,
    /// Median over runs of the seconds spent in file operations, including the wait for the next scheduled one.
    pub seconds: Option<f64>,
    /// Median over runs of the seconds between file operations, in which content is generated and verified. Rates
    /// exclude this time.
    pub overhead_seconds: Option<f64>,
    /// Number of runs whose rate became steady, and number of runs long enough to test that; see [`Steadiness`].
    pub steady_runs: (usize, usize),
    /// Median share of the read bytes that this machine's cache served, from 0 to 1; `None` if no run knows it.
    pub cache_share: Option<f64>,
    /// Statistics of each kind of file operation, over all runs.
    pub operations: Vec<OperationSummary>,
}

/// Statistics of one kind of file operation, over all runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OperationSummary {
    /// Kind of file operation.
    pub operation: Operation,
    /// Number of operations, including failed ones.
    pub count: u64,
    /// Number of failed operations.
    pub errors: u64,
    /// Median latency in seconds, including failed operations.
    pub p50: Option<f64>,
    /// 95th percentile of the latency in seconds; `None` with fewer than 20 operations.
    pub p95: Option<f64>,
    /// 99th percentile of the latency in seconds; `None` with fewer than 100 operations.
    pub p99: Option<f64>,
}

/// Option to show published values next to the measured ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishedMode {
    /// Only measured values.
    Hide,
    /// Measured and published values.
    Show,
}

/// Summarizes the runs of a preset on one target.
pub fn preset_summary(preset: &Preset, runs: &[&Run], published_mode: PublishedMode) -> PresetSummary {
    let profile = &preset.profile;
    let ok: Vec<&Run> = runs.iter().copied().filter(|run| run.outcome == Outcome::Ok).collect();
    let figure = |print: &PrintedFigure| {
        let mut figure = preset_figure(print, &ok);
        if published_mode == PublishedMode::Show {
            figure.published = published_comparisons(preset.profile_name(), &figure);
        }
        figure
    };
    PresetSummary {
        schema: SCHEMA,
        preset: preset.name().to_owned(),
        original: profile.original.clone(),
        runs: ok.len(),
        failed: runs.len() - ok.len(),
        figures: profile.figures.iter().map(figure).collect(),
        phases: profile.phases.iter().filter_map(|phase| phase_summary(&phase.name, &ok)).collect(),
        tables: ok.iter().filter_map(|run| run.facts.get("table").cloned()).collect(),
        differences: profile.differences.clone(),
    }
}

fn preset_figure(print: &PrintedFigure, runs: &[&Run]) -> PresetFigure {
    let value = |run: &&Run| {
        run.phases.iter().find(|phase| phase.name == print.phase).and_then(|phase| print.value(phase))
    };
    let values: Vec<f64> = runs.iter().filter_map(value).collect();
    let smallest = values.iter().copied().reduce(f64::min);
    PresetFigure {
        name: print.name.clone(),
        unit: print.unit.symbol(),
        median: median(&values),
        range: smallest.zip(values.iter().copied().reduce(f64::max)),
        values,
        published: vec![],
    }
}

fn published_comparisons(base: &str, ours: &PresetFigure) -> Vec<PublishedComparison> {
    let figures = published_figures(base).filter(|figure| figure.figure == ours.name);
    let comparisons = figures.map(|figure| PublishedComparison {
        setup: &figure.setup,
        value: figure.value,
        times_published: ours.median.map(|median| median / figure.value),
        note: figure.note.as_deref(),
        citation: figure.citation(),
    });
    comparisons.collect()
}

fn phase_summary(name: &str, runs: &[&Run]) -> Option<PhaseSummary> {
    let phases: Vec<&Phase> =
        runs.iter().filter_map(|run| run.phases.iter().find(|phase| phase.name == name)).collect();
    let shares: Vec<f64> = phases.iter().filter_map(|phase| phase.client_cache_share()).collect();
    Some(PhaseSummary {
        phase: name.to_owned(),
        cache: phases.first()?.cache,
        cold_by: cold_methods(&phases),
        seconds: figure_median(&phases, "seconds"),
        overhead_seconds: figure_median(&phases, "overhead"),
        steady_runs: count_steady_runs(&phases),
        cache_share: median(&shares),
        operations: Operation::ALL
            .iter()
            .filter_map(|operation| operation_summary(*operation, &phases))
            .collect(),
    })
}

fn figure_value(phase: &Phase, name: &str) -> Option<f64> {
    phase.figures.iter().find(|figure| figure.name == name).map(|figure| figure.value)
}

fn figure_median(phases: &[&Phase], name: &str) -> Option<f64> {
    median(&phases.iter().filter_map(|phase| figure_value(phase, name)).collect::<Vec<_>>())
}

fn cold_methods(phases: &[&Phase]) -> Vec<(&'static str, usize)> {
    let mut methods: Vec<(&'static str, usize)> = vec![];
    for name in phases.iter().filter_map(|phase| phase.cold_by).map(|method| method.name()) {
        match methods.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => methods.push((name, 1)),
        }
    }
    methods
}

fn count_steady_runs(phases: &[&Phase]) -> (usize, usize) {
    let known = phases.iter().filter_map(|phase| {
        Some(Steadiness { spread: figure_value(phase, "spread")?, drift: figure_value(phase, "drift")? })
    });
    known.fold((0, 0), |(steady, long), one| (steady + usize::from(one.is_steady()), long + 1))
}

fn operation_summary(operation: Operation, phases: &[&Phase]) -> Option<OperationSummary> {
    let mut latency = Histogram::new();
    let mut errors = 0;
    for stats in
        phases.iter().flat_map(|phase| &phase.operations).filter(|stats| stats.operation == operation)
    {
        latency.merge(&stats.latency);
        errors += stats.errors;
    }
    let count = latency.count();
    let quantile = |q: f64, needs: u64| latency.quantile_ns(q).filter(|_| count >= needs).map(|ns| ns / 1e9);
    (count > 0).then(|| OperationSummary {
        operation,
        count,
        errors,
        p50: quantile(0.5, 1),
        p95: quantile(0.95, 20),
        p99: quantile(0.99, 100),
    })
}
