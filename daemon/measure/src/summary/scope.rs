//! Which runs speak, and for what the others are left out.

use std::collections::HashMap;

use super::{History, KeptRound, KeptRun, LeftOut};
use crate::model::{Outcome, Role, RoundStatus, Scale};
use crate::stats::median;
use crate::workloads::WORKLOADS;

/// A failed task counts as so many times the usual time...
pub const CAP_FACTOR: f64 = 20.0;
/// ... but as at least and at most so many seconds.
pub const CAP_SECONDS: std::ops::RangeInclusive<f64> = 60.0..=900.0;
/// A day fixes the cap once it has this many times of a target.
const CAP_NEEDS: usize = 3;

/// The part of a history that verdicts are made of: one scale, the newest epochs, settled days, whole rounds.
pub(super) struct Scope<'h> {
    pub(super) history: &'h History,
    /// The scale of all runs in it; `None` if there is no run.
    pub(super) scale: Option<Scale>,
    /// The last day that counts, in days since 1970-01-01.
    pub(super) through: i64,
    /// By target: its newest epoch and the first day that counts; `None` without a run.
    pub(super) lives: Vec<Option<Life>>,
    /// By workload: its rounds, in order.
    pub(super) blocks: Vec<Vec<Block<'h>>>,
    /// What was left out, and why.
    pub(super) left_out: Vec<LeftOut>,
}

/// A target's newest epoch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Life {
    pub(super) epoch: i64,
    /// The first day that counts: the opening day and the first whole day after it burn in.
    pub(super) settled: i64,
}

/// One workload in one round: a run by target.
pub(super) struct Block<'h> {
    pub(super) round: i64,
    pub(super) day: i64,
    pub(super) runs: Vec<Option<&'h KeptRun>>,
}

/// What one run says of one endpoint.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Reading {
    /// It took so many seconds.
    Time(f64),
    /// The target failed.
    Failed,
    /// Nothing: not attempted, unavailable, void, or without this figure.
    Absent,
}

impl Reading {
    fn of(run: Option<&KeptRun>, place: usize) -> Self {
        match run {
            None => Self::Absent,
            Some(run) => match run.outcome {
                Outcome::Ok => run.times.get(place).map_or(Self::Absent, Self::Time),
                Outcome::Error | Outcome::Hung => Self::Failed,
                Outcome::Unavailable | Outcome::Void => Self::Absent,
            },
        }
    }

    /// The seconds that it counts as: a failure as the cap, so that a fast error does not look fast.
    pub(super) fn capped(self, cap: f64) -> Option<f64> {
        match self {
            Self::Time(seconds) => Some(seconds.min(cap)),
            Self::Failed => Some(cap),
            Self::Absent => None,
        }
    }
}

impl<'h> Scope<'h> {
    /// The scope of a history up to a day, at a scale or that of the last run.
    pub(super) fn of(history: &'h History, through: i64, scale: Option<Scale>) -> Self {
        let rounds: HashMap<i64, &KeptRound> =
            history.rounds.iter().map(|round| (round.number, round)).collect();
        let day = |run: &KeptRun| rounds.get(&run.round).map(|round| round.day());
        let mut kept: Vec<&KeptRun> =
            history.runs.iter().filter(|run| day(run).is_none_or(|day| day <= through)).collect();
        let scale = scale.or_else(|| kept.last().map(|run| run.scale));
        let mut left_out = vec![];
        let mut leave_out = |kept: &mut Vec<&'h KeptRun>, reason: &str, keep: &dyn Fn(&KeptRun) -> bool| {
            let before = kept.len();
            kept.retain(|run| keep(run));
            let runs = before - kept.len();
            left_out.extend((runs > 0).then(|| LeftOut { runs, reason: reason.to_owned() }));
        };
        leave_out(&mut kept, "of a round that is not there", &|run| day(run).is_some());
        leave_out(&mut kept, "made at another scale", &|run| Some(run.scale) == scale);
        let lives = lives(history.targets.len(), &kept, &day);
        let life = |run: &KeptRun| lives[run.target];
        leave_out(&mut kept, "made before the target's protocol, options or path changed", &|run| {
            life(run).is_some_and(|life| life.epoch == run.epoch)
        });
        leave_out(&mut kept, "of rounds that are void", &|run| {
            rounds.get(&run.round).is_some_and(|round| round.status != Some(RoundStatus::Void))
        });
        leave_out(&mut kept, "of the first days of a target, mount or protocol, which settle in", &|run| {
            life(run).zip(day(run)).is_some_and(|(life, day)| day >= life.settled)
        });
        let blocks = blocks(history, &kept, &rounds);
        Self { history, scale, through, lives, blocks, left_out }
    }

    /// The targets that verdicts are about, by place: shares with at least one run.
    pub(super) fn shares(&self) -> Vec<usize> {
        let is_share = |place: &usize| self.history.targets[*place].role == Role::Share;
        (0..self.lives.len()).filter(is_share).filter(|place| self.lives[*place].is_some()).collect()
    }

    /// What each round says of an endpoint on a target: round, day, reading.
    pub(super) fn readings(
        &self,
        workload: usize,
        place: usize,
        target: usize,
    ) -> impl Iterator<Item = (i64, i64, Reading)> + '_ {
        self.blocks[workload]
            .iter()
            .map(move |block| (block.round, block.day, Reading::of(block.runs[target], place)))
    }

    /// What a failure counts as, in seconds: 20 times the median on the fastest target on the first day that has enough,
    /// clamped. It is fixed by that day, so that later days cannot move it.
    pub(super) fn cap(&self, workload: usize, place: usize) -> f64 {
        let first_day = |target: usize| {
            let times =
                self.readings(workload, place, target).filter_map(|(_, day, reading)| match reading {
                    Reading::Time(seconds) => Some((day, seconds)),
                    Reading::Failed | Reading::Absent => None,
                });
            first_full_day(times)
        };
        let medians: Vec<(i64, f64)> = (0..self.lives.len())
            .filter_map(first_day)
            .filter_map(|(day, times)| Some((day, median(&times)?)))
            .collect();
        let first = medians.iter().map(|(day, _)| *day).min();
        let fastest = medians.iter().filter(|(day, _)| Some(*day) == first).map(|(_, time)| *time);
        let usual = fastest.reduce(f64::min).unwrap_or(0.0);
        (CAP_FACTOR * usual).clamp(*CAP_SECONDS.start(), *CAP_SECONDS.end())
    }

    /// The rounds from a day on that were planned at this scale.
    pub(super) fn planned_from(&self, day: i64) -> impl Iterator<Item = &'h KeptRound> + '_ {
        let within = day..=self.through;
        let rounds = self.history.rounds.iter().filter(|round| Some(round.scale) == self.scale);
        rounds.filter(move |round| within.contains(&round.day()))
    }
}

/// The first day with enough times, and these. Days come in order.
fn first_full_day(times: impl Iterator<Item = (i64, f64)>) -> Option<(i64, Vec<f64>)> {
    let mut found: Option<(i64, Vec<f64>)> = None;
    for (day, seconds) in times {
        match &mut found {
            Some((known, times)) if *known == day => times.push(seconds),
            Some((_, times)) if times.len() >= CAP_NEEDS => break,
            _ => found = Some((day, vec![seconds])),
        }
    }
    found.filter(|(_, times)| times.len() >= CAP_NEEDS)
}

/// The newest epoch of each target, and when it had settled.
fn lives(targets: usize, runs: &[&KeptRun], day: &dyn Fn(&KeptRun) -> Option<i64>) -> Vec<Option<Life>> {
    let mut lives: Vec<Option<Life>> = vec![None; targets];
    for run in runs {
        let Some(day) = day(run) else { continue };
        let life = &mut lives[run.target];
        if life.is_none_or(|life| life.epoch < run.epoch) {
            *life = Some(Life { epoch: run.epoch, settled: day + 2 });
        }
    }
    lives
}

fn blocks<'h>(
    history: &'h History,
    runs: &[&'h KeptRun],
    rounds: &HashMap<i64, &'h KeptRound>,
) -> Vec<Vec<Block<'h>>> {
    let mut blocks: Vec<Vec<Block<'h>>> = WORKLOADS.iter().map(|_| vec![]).collect();
    for run in runs {
        let Some(round) = rounds.get(&run.round) else { continue };
        let of_workload = &mut blocks[run.workload];
        if of_workload.last().is_none_or(|block| block.round != run.round) {
            let runs = vec![None; history.targets.len()];
            of_workload.push(Block { round: run.round, day: round.day(), runs });
        }
        if let Some(block) = of_workload.last_mut() {
            block.runs[run.target] = Some(run);
        }
    }
    blocks
}
