//! What the runs of a classic say: the original's figures first, then what the original does not tell.

use serde::Serialize;

use crate::model::{CacheState, Operation, Outcome, Phase, Run};
use crate::profile::{Print, Profile, published};
use crate::stats::{Histogram, Steadiness, median};

/// The schema of this value as JSON.
const SCHEMA: u32 = 1;

/// All runs of one classic on one target.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassicSummary {
    /// The schema of this value.
    pub schema: u32,
    /// The classic's name, which says in which manner it was run.
    pub classic: String,
    /// What it reproduces.
    pub original: Option<String>,
    /// Runs that are ok.
    pub runs: usize,
    /// Runs that are not, which give no figure.
    pub failed: usize,
    /// The original's figures.
    pub figures: Vec<FigureOfRuns>,
    /// What the original does not tell, by phase.
    pub phases: Vec<PhaseOfRuns>,
    /// Tables that the original prints, one for each run.
    pub tables: Vec<String>,
    /// What differs from the original and why.
    pub differs: Vec<String>,
}

/// One figure of the original, of all runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FigureOfRuns {
    /// Its name there.
    pub name: String,
    /// Its unit there.
    pub unit: &'static str,
    /// Of each run, in their order.
    pub values: Vec<f64>,
    /// The median; `None` without a value.
    pub median: Option<f64>,
    /// The smallest and the largest; `None` without a value.
    pub range: Option<(f64, f64)>,
    /// What was published of it.
    pub published: Vec<Beside>,
}

/// A published figure beside ours.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Beside {
    /// What was measured there.
    pub under: &'static str,
    /// The figure, in the same unit.
    pub value: f64,
    /// How many times the published one our median is; `None` without one.
    pub multiple: Option<f64>,
    /// What has to be said of it.
    pub note: Option<&'static str>,
    /// Where it stands.
    pub citation: &'static str,
}

/// One phase, of all runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhaseOfRuns {
    /// Its name.
    pub phase: String,
    /// Whether it met caches.
    pub cache: CacheState,
    /// How it was made cold, for each way the number of runs.
    pub cold_by: Vec<(&'static str, usize)>,
    /// Seconds in calls and of waiting for the next turn, the median.
    pub seconds: Option<f64>,
    /// Seconds between calls, in which content is made and checked; they are left out of all rates: the median.
    pub own_seconds: Option<f64>,
    /// Runs whose rate settled, and runs that were long enough to say; see [`Steadiness`].
    pub steady: (usize, usize),
    /// The share of what was read that this machine's cache served, the median of the runs where it is known.
    pub cache_share: Option<f64>,
    /// The calls of all runs together.
    pub operations: Vec<OperationOfRuns>,
}

/// One kind of call, of all runs together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OperationOfRuns {
    /// The call.
    pub operation: Operation,
    /// How many there were.
    pub count: u64,
    /// How many failed.
    pub errors: u64,
    /// Half took no longer, in seconds.
    pub p50: Option<f64>,
    /// 95 of 100 took no longer; `None` with fewer than 20.
    pub p95: Option<f64>,
    /// 99 of 100 took no longer; `None` with fewer than 100.
    pub p99: Option<f64>,
}

/// Whether published figures are set beside ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beforehand {
    /// Only ours.
    Ours,
    /// Published ones too.
    WithPublished,
}

/// Sums up the runs of a classic on one target. `base` is the name of its profile, under which figures are published.
pub fn classic(
    (name, base): (&str, &str),
    profile: &Profile,
    runs: &[&Run],
    beforehand: Beforehand,
) -> ClassicSummary {
    let ok: Vec<&Run> = runs.iter().copied().filter(|run| run.outcome == Outcome::Ok).collect();
    let figure = |print: &Print| {
        let mut figure = figure_of(print, &ok);
        if beforehand == Beforehand::WithPublished {
            figure.published = beside(base, &figure);
        }
        figure
    };
    ClassicSummary {
        schema: SCHEMA,
        classic: name.to_owned(),
        original: profile.original.clone(),
        runs: ok.len(),
        failed: runs.len() - ok.len(),
        figures: profile.figures.iter().map(figure).collect(),
        phases: profile.phases.iter().filter_map(|phase| phase_of(&phase.name, &ok)).collect(),
        tables: ok.iter().filter_map(|run| run.facts.get("table").cloned()).collect(),
        differs: profile.differs.clone(),
    }
}

fn figure_of(print: &Print, runs: &[&Run]) -> FigureOfRuns {
    let phase = |run: &&Run| {
        run.phases.iter().find(|phase| phase.name == print.phase).and_then(|phase| print.value(phase))
    };
    let values: Vec<f64> = runs.iter().filter_map(phase).collect();
    let smallest = values.iter().copied().reduce(f64::min);
    FigureOfRuns {
        name: print.name.clone(),
        unit: print.unit.symbol(),
        median: median(&values),
        range: smallest.zip(values.iter().copied().reduce(f64::max)),
        values,
        published: vec![],
    }
}

fn beside(base: &str, ours: &FigureOfRuns) -> Vec<Beside> {
    let figures = published(base).filter(|figure| figure.figure == ours.name);
    let beside = figures.map(|figure| Beside {
        under: &figure.under,
        value: figure.value,
        multiple: ours.median.map(|median| median / figure.value),
        note: figure.note.as_deref(),
        citation: figure.citation(),
    });
    beside.collect()
}

fn phase_of(name: &str, runs: &[&Run]) -> Option<PhaseOfRuns> {
    let phases: Vec<&Phase> =
        runs.iter().filter_map(|run| run.phases.iter().find(|phase| phase.name == name)).collect();
    let shares: Vec<f64> = phases.iter().filter_map(|phase| phase.served_by_client()).collect();
    Some(PhaseOfRuns {
        phase: name.to_owned(),
        cache: phases.first()?.cache,
        cold_by: ways(&phases),
        seconds: median_of(&phases, "seconds"),
        own_seconds: median_of(&phases, "own"),
        steady: steady(&phases),
        cache_share: median(&shares),
        operations: Operation::ALL.iter().filter_map(|operation| operation_of(*operation, &phases)).collect(),
    })
}

fn value(phase: &Phase, name: &str) -> Option<f64> {
    phase.figures.iter().find(|figure| figure.name == name).map(|figure| figure.value)
}

fn median_of(phases: &[&Phase], name: &str) -> Option<f64> {
    median(&phases.iter().filter_map(|phase| value(phase, name)).collect::<Vec<_>>())
}

fn ways(phases: &[&Phase]) -> Vec<(&'static str, usize)> {
    let mut ways: Vec<(&'static str, usize)> = vec![];
    for name in phases.iter().filter_map(|phase| phase.cold_by).map(|way| way.name()) {
        match ways.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => ways.push((name, 1)),
        }
    }
    ways
}

fn steady(phases: &[&Phase]) -> (usize, usize) {
    let known = phases.iter().filter_map(|phase| {
        Some(Steadiness { spread: value(phase, "spread")?, drift: value(phase, "drift")? })
    });
    known.fold((0, 0), |(steady, long), one| (steady + usize::from(one.is_steady()), long + 1))
}

fn operation_of(operation: Operation, phases: &[&Phase]) -> Option<OperationOfRuns> {
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
    (count > 0).then(|| OperationOfRuns {
        operation,
        count,
        errors,
        p50: quantile(0.5, 1),
        p95: quantile(0.95, 20),
        p99: quantile(0.99, 100),
    })
}
