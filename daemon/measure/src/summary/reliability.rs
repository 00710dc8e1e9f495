//! How often targets fail, and how long they made somebody wait.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use super::scope::Scope;
use crate::model::{Outcome, TargetName};
use crate::stats::{Discordant, episodes};

/// One target's failures while it was measured, over all workloads.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Failures {
    /// The target.
    pub target: TargetName,
    /// Rounds in which it was attempted.
    pub rounds: usize,
    /// Rounds in which at least one task failed.
    pub failed_rounds: usize,
    /// Failing rounds in a row are one episode.
    pub episodes: usize,
    /// Runs that hung.
    pub hung_runs: usize,
    /// Runs that ended with an error.
    pub error_runs: usize,
    /// Seconds that hung runs lasted, up to the cap at which they were given up.
    pub hung_seconds: f64,
    /// Rounds in which it was not there.
    pub unavailable_rounds: usize,
}

/// What each round says of a target: `None` where it was not attempted, else whether it failed.
pub(super) type Attempts = BTreeMap<i64, bool>;

/// The attempts on a target, by round, from a day on.
pub(super) fn attempts(scope: &Scope<'_>, target: usize, from: i64) -> Attempts {
    let mut attempts = Attempts::new();
    for block in scope.blocks.iter().flatten().filter(|block| block.day >= from) {
        let Some(run) = block.runs[target] else { continue };
        match run.outcome {
            Outcome::Ok => attempts.entry(block.round).or_insert(false),
            Outcome::Error | Outcome::Hung => {
                attempts.entry(block.round).and_modify(|failed| *failed = true).or_insert(true)
            }
            Outcome::Unavailable | Outcome::Void => continue,
        };
    }
    attempts
}

/// The failures of a target.
pub(super) fn failures(scope: &Scope<'_>, target: usize) -> Failures {
    let attempts = attempts(scope, target, i64::MIN);
    let by_round: Vec<bool> = attempts.values().copied().collect();
    let runs = || scope.blocks.iter().flatten().filter_map(|block| block.runs[target]);
    let count = |outcome| runs().filter(|run| run.outcome == outcome).count();
    let absent: BTreeMap<i64, ()> =
        runs().filter(|run| run.outcome == Outcome::Unavailable).map(|run| (run.round, ())).collect();
    Failures {
        target: scope.history.targets[target].name.clone(),
        rounds: attempts.len(),
        failed_rounds: by_round.iter().filter(|failed| **failed).count(),
        episodes: episodes(&by_round),
        hung_runs: count(Outcome::Hung),
        error_runs: count(Outcome::Error),
        // Not `sum`: that of nothing is -0.
        hung_seconds: runs()
            .filter(|run| run.outcome == Outcome::Hung)
            .fold(0.0, |seconds, run| seconds + run.seconds),
        unavailable_rounds: absent.len(),
    }
}

/// Two targets' failures, compared in the rounds that attempted both.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Reliability {
    /// Episodes in which only the first failed.
    pub only_a: u64,
    /// Episodes in which only the second failed.
    pub only_b: u64,
    /// Whether the difference is proven.
    pub verdict: ReliabilityVerdict,
}

/// What may be said about how often two targets fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReliabilityVerdict {
    /// Neither failed alone.
    NoFailures,
    /// There are failures, but no proof that one fails more.
    NotProven,
    /// The first fails more.
    WorseA,
    /// The second fails more.
    WorseB,
}

/// Compares the failures of a pair. `alpha` is the chance of a false proof.
pub(super) fn reliability(a: &Attempts, b: &Attempts, alpha: f64) -> Reliability {
    let both: Vec<(bool, bool)> =
        a.iter().filter_map(|(round, failed)| Some((*failed, *b.get(round)?))).collect();
    let discordant = Discordant::of(&both);
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
    fn seven_lonely_episodes_prove_what_six_do_not() {
        let attempts = |failing: u64| {
            (0..40).map(|round| (round, (round as u64) < 2 * failing && round % 2 == 0)).collect::<Attempts>()
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
