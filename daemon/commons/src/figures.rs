//! Computes the figures of a file from its rounds, with the code that makes all verdicts.

use longhaul_analysis::stats::DaySeries;
use longhaul_analysis::summary::{Comparison, PairSummary, pair_verdicts};

use longhaul_model::TargetName;

use crate::history::{history, last_day, target_name};
use crate::share::{SharedFigure, SharedResults};

/// Returns the figures of all pairs of shares: first all tasks together, then each metric. The ratios are not adjusted for the
/// round trip time, so that they mean the same on all machines.
pub fn figures(share: &SharedResults) -> Vec<SharedFigure> {
    let pairs = pair_verdicts(&history(share), last_day(share), None);
    pairs.iter().flat_map(|pair| of_pair(share, pair)).collect()
}

fn of_pair(share: &SharedResults, pair: &PairSummary) -> Vec<SharedFigure> {
    let index = |name: &TargetName| (0..share.targets.len()).position(|index| target_name(index) == *name);
    let (Some(a), Some(b)) = (index(&pair.a), index(&pair.b)) else { return vec![] };
    let comparisons = pair.headline.iter().chain(&pair.tasks);
    comparisons.filter_map(|comparison| Some(SharedFigure { a, b, ..figure(comparison)? })).collect()
}

/// Returns the figure of a comparison without its targets; `None` without a valid day.
fn figure(comparison: &Comparison) -> Option<SharedFigure> {
    let days: Vec<(i64, f64)> = comparison.days.iter().map(|day| (day.day, day.ratio.ln())).collect();
    let series = DaySeries::from_days(&days)?;
    let half_width = series.half_width(comparison.alpha);
    let freedom = series.days().saturating_sub(1).max(1) as f64;
    Some(SharedFigure {
        a: 0,
        b: 0,
        key: comparison.subject.key.clone(),
        days: series.days(),
        rounds: comparison.rounds.complete,
        ln_ratio: series.mean(),
        standard_error: (series.variance() * series.variance_inflation() / freedom).sqrt(),
        half_width: Some(half_width).filter(|width| width.is_finite()),
        ln_e: series.ln_e_value(),
        verdict: comparison.verdict,
    })
}
