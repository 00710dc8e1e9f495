//! Counts failures of targets, and compares how often two targets fail (docs/methodology.md#reliability).

use std::collections::BTreeSet;

use serde::Serialize;
use utoipa::ToSchema;

use super::window::{AnalysisWindow, RoundRuns};
use crate::stats::{DiscordantEpisodes, count_episodes};
use longhaul_model::{Outcome, TargetName};

/// Failures of one target, over all workloads.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Failures {
    /// Target that was measured.
    pub target: TargetName,
    /// Number of rounds in which the target was attempted.
    pub rounds: usize,
    /// Number of rounds in which at least one task failed.
    pub failed_rounds: usize,
    /// Number of failure episodes; consecutive failing rounds are one episode.
    pub episodes: usize,
    /// Number of runs that hung.
    pub hung_runs: usize,
    /// Number of runs that ended with an error.
    pub error_runs: usize,
    /// Total duration of the hung runs in seconds; each ends at its cap.
    pub hung_seconds: f64,
    /// Number of rounds in which the target was unavailable for at least one run.
    pub unavailable_rounds: usize,
    /// Number of rounds since the target was last attempted in which it was unavailable and a share was attempted.
    pub unavailable_since_last: usize,
}

/// Round in which a target was attempted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Attempt {
    /// Number of the round.
    round: i64,
    /// Local day of the round, in days since 1970-01-01.
    day: i64,
    /// True if at least one run failed.
    failed: bool,
}

/// Returns the attempts on each target after its warm-up, in the order of the rounds.
pub(super) fn attempts(scope: &AnalysisWindow<'_>) -> Vec<Vec<Attempt>> {
    (0..scope.active_epochs.len()).map(|target| attempts_on(scope, target)).collect()
}

fn attempts_on(scope: &AnalysisWindow<'_>, target: usize) -> Vec<Attempt> {
    let blocks = scope.rounds_by_workload.iter().flatten();
    let attempt = |block: &RoundRuns<'_>| {
        let failed = match block.runs[target]?.outcome {
            Outcome::Ok => false,
            Outcome::Error | Outcome::Hung => true,
            Outcome::Unavailable | Outcome::Void => return None,
        };
        Some(Attempt { round: block.round, day: block.day, failed })
    };
    let mut attempts: Vec<Attempt> = blocks.filter_map(attempt).collect();
    attempts.sort_by_key(|attempt| attempt.round);
    attempts.dedup_by(|later, first| {
        let is_same = later.round == first.round;
        first.failed |= is_same && later.failed;
        is_same
    });
    attempts
}

/// Returns the attempts from a day on.
pub(super) fn since(attempts: &[Attempt], day: i64) -> Vec<Attempt> {
    attempts.iter().copied().filter(|attempt| attempt.day >= day).collect()
}

/// Counts the failures of a target. `attempts` are those on every target.
pub(super) fn failures(scope: &AnalysisWindow<'_>, target: usize, attempts: &[Vec<Attempt>]) -> Failures {
    let own = &attempts[target];
    let by_round: Vec<bool> = own.iter().map(|attempt| attempt.failed).collect();
    let runs = || scope.rounds_by_workload.iter().flatten().filter_map(|block| block.runs[target]);
    let count = |outcome| runs().filter(|run| run.outcome == outcome).count();
    let unavailable: BTreeSet<i64> =
        runs().filter(|run| run.outcome == Outcome::Unavailable).map(|run| run.round).collect();
    let last = own.last().map(|attempt| attempt.round);
    let shares = scope.shares();
    let shares_attempted = |round: &i64| {
        let is_attempted =
            |attempts: &[Attempt]| attempts.binary_search_by_key(round, |one| one.round).is_ok();
        shares.iter().any(|share| is_attempted(&attempts[*share]))
    };
    Failures {
        target: scope.history.targets[target].name.clone(),
        rounds: own.len(),
        failed_rounds: by_round.iter().filter(|failed| **failed).count(),
        episodes: count_episodes(&by_round),
        hung_runs: count(Outcome::Hung),
        error_runs: count(Outcome::Error),
        // `sum` of an empty iterator would give -0.0.
        hung_seconds: runs()
            .filter(|run| run.outcome == Outcome::Hung)
            .fold(0.0, |seconds, run| seconds + run.seconds),
        unavailable_rounds: unavailable.len(),
        unavailable_since_last: unavailable
            .iter()
            .filter(|round| last.is_none_or(|last| **round > last) && shares_attempted(round))
            .count(),
    }
}

/// Number of rounds in a row that a target must fail to be called failing.
pub const FAILING_ROUNDS: usize = 3;

/// Returns true if a task failed on the first target in each of the last [`FAILING_ROUNDS`] rounds that attempted both, and none
/// on the second.
pub(super) fn is_failing_alone(a: &[Attempt], b: &[Attempt]) -> bool {
    let both = both_attempted(a, b);
    let last = both.last_chunk::<FAILING_ROUNDS>();
    last.is_some_and(|last| last.iter().all(|failed| *failed == (true, false)))
}

/// Returns whether a task failed on the first and on the second target, for each round that attempted both.
fn both_attempted(a: &[Attempt], b: &[Attempt]) -> Vec<(bool, bool)> {
    let in_b = |of_a: &Attempt| b.binary_search_by_key(&of_a.round, |of_b| of_b.round).ok().map(|at| b[at]);
    a.iter().filter_map(|of_a| Some((of_a.failed, in_b(of_a)?.failed))).collect()
}

/// Comparison of the failures of two targets, over the rounds that attempted both.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Reliability {
    /// Number of failure episodes of the first target alone.
    pub only_a: u64,
    /// Number of failure episodes of the second target alone.
    pub only_b: u64,
    /// Verdict on the difference.
    pub verdict: ReliabilityVerdict,
}

/// Verdict on how often two targets fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReliabilityVerdict {
    /// Neither target failed alone.
    NoFailures,
    /// There are failures, but neither target is proven to fail more often.
    NotProven,
    /// The first target is proven to fail more often.
    WorseA,
    /// The second target is proven to fail more often.
    WorseB,
}

/// Compares the failures of two targets. `alpha` is the maximum chance that equal targets are ever called different.
pub(super) fn reliability(a: &[Attempt], b: &[Attempt], alpha: f64) -> Reliability {
    let discordant = DiscordantEpisodes::from_rounds(&both_attempted(a, b));
    let is_proven = discordant.ln_e_value() >= -alpha.ln();
    let verdict = match (discordant.first_only, discordant.second_only) {
        (0, 0) => ReliabilityVerdict::NoFailures,
        (only_a, only_b) if is_proven && only_a > only_b => ReliabilityVerdict::WorseA,
        (only_a, only_b) if is_proven && only_b > only_a => ReliabilityVerdict::WorseB,
        _ => ReliabilityVerdict::NotProven,
    };
    Reliability { only_a: discordant.first_only, only_b: discordant.second_only, verdict }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_is_proven_at_seven_to_zero_episodes() {
        let attempts = |failing: i64| {
            let attempt = |round| Attempt { round, day: 0, failed: round < 2 * failing && round % 2 == 0 };
            (0..40).map(attempt).collect::<Vec<_>>()
        };
        let verdict = |failing| reliability(&attempts(0), &attempts(failing), 0.05).verdict;
        assert_eq!(verdict(0), ReliabilityVerdict::NoFailures);
        assert_eq!(verdict(6), ReliabilityVerdict::NotProven);
        assert_eq!(verdict(7), ReliabilityVerdict::WorseB);
        assert_eq!(reliability(&attempts(7), &attempts(0), 0.05).verdict, ReliabilityVerdict::WorseA);
        assert_eq!(
            reliability(&attempts(7), &attempts(0), 0.05 / 3.0).verdict,
            ReliabilityVerdict::NotProven
        );
    }
}
