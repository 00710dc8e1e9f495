//! Checks the histograms against themselves and against the runs.

use std::collections::BTreeMap;

use longhaul_model::{bucket_of, upper_bound_ns};

use crate::share::{SharedHistogram, SharedResults};

/// Number of calls and their total time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Totals {
    calls: u64,
    call_ns: u64,
}

/// Finds histograms that contradict themselves or the runs.
pub(super) fn check(share: &SharedResults) -> Vec<String> {
    let name = |phase: usize| format!("{} of {}", share.phases[phase].phase, share.phases[phase].task);
    if let Some(broken) = share.histograms.iter().find(|histogram| !is_consistent(histogram)) {
        let place = name(broken.phase);
        return vec![format!("the buckets of {} in {place} do not agree with their sum", broken.operation)];
    }
    let (of_runs, of_histograms) = (of_runs(share), of_histograms(share));
    let differs = |key: &&(usize, usize)| of_runs.get(key) != of_histograms.get(key);
    match of_runs.keys().chain(of_histograms.keys()).find(differs) {
        Some((_, phase)) => {
            vec![format!("the histograms of {} do not have the calls of its runs", name(*phase))]
        }
        None => vec![],
    }
}

/// Returns whether the sum, the shortest and the longest latency are possible with the buckets.
fn is_consistent(histogram: &SharedHistogram) -> bool {
    let counted = || (histogram.first..).zip(&histogram.counts).filter(|(_, count)| **count > 0);
    let (Some((first, _)), Some((last, _))) = (counted().next(), counted().last()) else {
        return histogram.sum_ns == 0;
    };
    let sum = |shift: i32| {
        counted().map(|(index, count)| upper_bound_ns(index + shift) * *count as f64).sum::<f64>()
    };
    // Each latency is a whole number of nanoseconds, so it may lie one outside of the bounds that are computed here.
    let calls: u64 = histogram.counts.iter().sum();
    let sum_ns = histogram.sum_ns as f64;
    (sum(-1) - calls as f64..=sum(0) + calls as f64).contains(&sum_ns)
        && bucket_of(histogram.min_ns) == first
        && bucket_of(histogram.max_ns) == last
}

fn of_runs(share: &SharedResults) -> BTreeMap<(usize, usize), Totals> {
    let mut totals: BTreeMap<(usize, usize), Totals> = BTreeMap::new();
    for (_, run) in share.runs() {
        for phase in run.phases.iter().filter(|phase| phase.calls > 0) {
            let known = totals.entry((share.target_of(run), phase.key)).or_default();
            known.calls = known.calls.saturating_add(phase.calls);
            known.call_ns = known.call_ns.saturating_add(phase.call_ns);
        }
    }
    totals
}

fn of_histograms(share: &SharedResults) -> BTreeMap<(usize, usize), Totals> {
    let mut totals: BTreeMap<(usize, usize), Totals> = BTreeMap::new();
    for histogram in &share.histograms {
        let known = totals.entry((histogram.target, histogram.phase)).or_default();
        let calls = histogram.counts.iter().fold(0u64, |sum, count| sum.saturating_add(*count));
        known.calls = known.calls.saturating_add(calls);
        known.call_ns = known.call_ns.saturating_add(histogram.sum_ns);
    }
    totals.retain(|_, totals| totals.calls > 0);
    totals
}
