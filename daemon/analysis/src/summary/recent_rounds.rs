//! The states of the last rounds on each target, for a strip of marks. Descriptive: no verdict rests on it.

use std::collections::HashMap;

use longhaul_model::{
    History, Outcome, Role, RoundRecord, RoundStatus, RunRecord, Scale, TASKS, TargetName, median,
};

/// A round is slow on a target if its tasks took longer than this multiple of their usual time there.
pub const SLOW_FACTOR: f64 = 1.5;

/// The result of a round on one target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoundState {
    /// All its runs were completed, in their usual time.
    Ok,
    /// All its runs were completed; together they took longer than [`SLOW_FACTOR`] times their usual time.
    Slow,
    /// A run hung or ended with an error.
    Failed,
    /// The target was not measured: the round was skipped or void, or the target was unavailable.
    Missed,
    /// The target had no part in the round: it was added later or removed before, the round ended before its turn, or it is a
    /// baseline, which has a part in few rounds.
    Absent,
}

/// The last rounds on one target, oldest first.
#[derive(Debug, Clone, PartialEq)]
pub struct RecentRounds<'h> {
    /// Name of the target.
    pub target: &'h TargetName,
    /// Each round with its state.
    pub rounds: Vec<(&'h RoundRecord, RoundState)>,
}

/// Returns the last rounds of each target. A round in progress is not among them.
pub fn recent_rounds(history: &History, count: usize) -> Vec<RecentRounds<'_>> {
    let mut rounds: Vec<&RoundRecord> =
        history.rounds.iter().rev().filter(|round| round.status.is_some()).take(count).collect();
    rounds.reverse();
    let first = rounds.first().map_or(i64::MAX, |round| round.number);
    let runs: Vec<&RunRecord> = history.runs.iter().filter(|run| run.round >= first).collect();
    let targets = history.targets.iter().enumerate().map(|(index, target)| {
        let runs = runs.iter().copied().filter(|run| run.target == index).collect();
        let own = TargetRuns { history, index, runs };
        RecentRounds { target: &target.name, rounds: own.states(&rounds) }
    });
    targets.collect()
}

/// The runs of a target in the last rounds.
struct TargetRuns<'h> {
    history: &'h History,
    /// Index of the target.
    index: usize,
    runs: Vec<&'h RunRecord>,
}

impl<'h> TargetRuns<'h> {
    fn states(&self, rounds: &[&'h RoundRecord]) -> Vec<(&'h RoundRecord, RoundState)> {
        let usual = UsualTimes::new(&self.runs);
        let of_round = |round: &RoundRecord| {
            let runs: Vec<&RunRecord> =
                self.runs.iter().copied().filter(|run| run.round == round.number).collect();
            if runs.is_empty() && !self.would_take_part(round) {
                return RoundState::Absent;
            }
            state(round, &runs, &usual)
        };
        rounds.iter().map(|round| (*round, of_round(round))).collect()
    }

    /// Returns whether the target would have taken part in a round in which it has no run.
    fn would_take_part(&self, round: &RoundRecord) -> bool {
        let ended_early = matches!(round.status, Some(RoundStatus::Skipped | RoundStatus::Void));
        let is_baseline = self.history.targets[self.index].role == Role::Baseline;
        // A target with later runs was not removed, so that a round of others by hand tells nothing.
        let first_run = self.history.runs.iter().find(|run| run.target == self.index);
        let has_earlier_run = first_run.is_some_and(|run| run.round < round.number);
        let has_later_run = self.runs.last().is_some_and(|run| run.round > round.number);
        ended_early && !is_baseline && has_earlier_run && (has_later_run || self.took_part_before(round))
    }

    /// Returns whether the target took part in the newest earlier round that shows it: a round with a run of it did, a completed
    /// round without one did not.
    fn took_part_before(&self, round: &RoundRecord) -> bool {
        let History { rounds, runs, .. } = self.history;
        let earlier = &runs[..runs.partition_point(|run| run.round < round.number)];
        let is_completed = |number: i64| {
            let index = rounds.binary_search_by_key(&number, |round| round.number);
            index.is_ok_and(|index| rounds[index].status == Some(RoundStatus::Ok))
        };
        let part = |runs: &[RunRecord]| {
            let has_own = runs.iter().any(|run| run.target == self.index);
            (has_own || is_completed(runs[0].round)).then_some(has_own)
        };
        earlier.chunk_by(|one, next| one.round == next.round).rev().find_map(part).unwrap_or(false)
    }
}

fn state(round: &RoundRecord, runs: &[&RunRecord], usual: &UsualTimes) -> RoundState {
    let is_void = round.status == Some(RoundStatus::Void);
    let is_unmeasured = |run: &&RunRecord| matches!(run.outcome, Outcome::Unavailable | Outcome::Void);
    match () {
        () if is_void => RoundState::Missed,
        () if runs.iter().any(|run| run.outcome.is_failure()) => RoundState::Failed,
        () if runs.iter().all(is_unmeasured) => RoundState::Missed,
        () if usual.is_slow(runs) => RoundState::Slow,
        () => RoundState::Ok,
    }
}

/// Median time of each task at each scale on a target.
struct UsualTimes(HashMap<(usize, Scale), f64>);

impl UsualTimes {
    fn new(runs: &[&RunRecord]) -> Self {
        let mut times: HashMap<(usize, Scale), Vec<f64>> = HashMap::new();
        for run in runs {
            times.entry((run.workload, run.scale)).or_default().extend(waited(run));
        }
        Self(times.into_iter().filter_map(|(task, times)| Some((task, median(&times)?))).collect())
    }

    fn is_slow(&self, runs: &[&RunRecord]) -> bool {
        let usual = |run: &RunRecord| self.0.get(&(run.workload, run.scale)).copied();
        let known = runs.iter().filter_map(|run| Some((waited(run)?, usual(run)?)));
        let (took, usually) =
            known.fold((0.0, 0.0), |(took, usually), (run, task)| (took + run, usually + task));
        took > usually * SLOW_FACTOR
    }
}

/// Returns the sum of the metrics of a run, without those that include pauses; `None` if one is missing.
fn waited(run: &RunRecord) -> Option<f64> {
    let metrics = TASKS.get(run.workload)?.metrics().iter().enumerate();
    let waits = metrics.filter(|(_, metric)| !metric.includes_pauses());
    waits.map(|(index, _)| run.times.get(index)).sum()
}
