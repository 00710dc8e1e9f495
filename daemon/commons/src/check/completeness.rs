//! Checks that no run is missing, repeated, or overlaps another.

use std::collections::BTreeMap;

use longhaul_model::{Outcome, RoundStatus};

use crate::share::{SharedResults, SharedRun};

/// Largest share of runs and rounds that may contradict each other because the clock of the machine was set.
const MAX_CLOCK_STEPS: f64 = 0.02;
/// Rounding of the starts of runs in seconds.
const ROUNDING: f64 = 0.01;

/// Finds missing, repeated and overlapping runs.
pub(super) fn check(share: &SharedResults) -> Vec<String> {
    let problems = [missing(share), repeated(share), overlapping(share), backward(share)];
    problems.into_iter().flatten().collect()
}

fn missing(share: &SharedResults) -> Option<String> {
    if share.rounds.is_empty() {
        return Some("it has no round".to_owned());
    }
    let is_unexplained =
        |run: &SharedRun| run.outcome == Outcome::Ok && (run.phases.is_empty() || run.times.is_empty());
    let unexplained = share.runs().filter(|(_, run)| is_unexplained(run)).count();
    if unexplained > 0 {
        return Some(format!("complete runs without phases or times: {unexplained}"));
    }
    let skipped = share.rounds.iter().filter(|round| round.status == RoundStatus::Skipped);
    let made: usize = skipped.map(|round| round.runs.len()).sum();
    (made > 0).then(|| format!("skipped rounds have {made} runs"))
}

/// Finds two runs with the same durations of all phases to the nanosecond. A run that was copied over another looks like this.
fn repeated(share: &SharedResults) -> Option<String> {
    let mut seen: BTreeMap<Vec<u64>, usize> = BTreeMap::new();
    for (_, run) in share.runs().filter(|(_, run)| run.phases.len() >= 2) {
        *seen.entry(run.phases.iter().map(|phase| phase.seconds.to_bits()).collect()).or_default() += 1;
    }
    let repeated: usize = seen.values().filter(|count| **count > 1).sum();
    (repeated > 0).then(|| format!("{repeated} runs have the same times to the nanosecond"))
}

fn overlapping(share: &SharedResults) -> Option<String> {
    let pairs = || share.rounds.iter().flat_map(|round| round.runs.windows(2));
    let end = |run: &SharedRun| run.at_ms as f64 / 1000.0 + run.seconds;
    let overlaps = |pair: &&[SharedRun]| (pair[1].at_ms as f64) / 1000.0 + ROUNDING < end(&pair[0]);
    let (count, all) = (pairs().filter(overlaps).count(), pairs().count());
    let is_found = count > 1 && count as f64 > MAX_CLOCK_STEPS * all as f64;
    is_found
        .then(|| format!("{count} of {all} runs that follow another in their round started before it ended"))
}

fn backward(share: &SharedResults) -> Option<String> {
    let minutes: Vec<u64> =
        share.rounds.iter().map(|round| u64::from(round.day) * 1440 + u64::from(round.minute)).collect();
    let count = minutes.windows(2).filter(|pair| pair[1] < pair[0]).count();
    let is_found = count > 2 && count as f64 > MAX_CLOCK_STEPS * minutes.len() as f64;
    is_found.then(|| format!("{count} rounds started before the one before them"))
}
