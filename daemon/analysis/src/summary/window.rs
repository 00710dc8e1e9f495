//! Selects the runs that verdicts use, and counts the excluded ones by reason (docs/methodology.md#which-runs-count).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::RangeInclusive;
use std::time::Duration;

use super::runs::{Excluded, OLDER_EPOCH, OTHER_SCALE, VOID_ROUNDS, exclude};
use longhaul_model::{History, Outcome, Role, RoundRecord, RoundStatus, RunRecord, Scale, TASKS, median};

/// Factor of the failure cap: a failed task counts as this many times its usual time
/// (docs/methodology.md#failures-and-caps).
pub const CAP_FACTOR: f64 = 20.0;
/// Number of days of warm-up: the day of the first run and the next day.
const WARM_UP_DAYS: i64 = 2;
/// Range of the failure cap, in seconds.
pub const CAP_SECONDS: std::ops::RangeInclusive<f64> = 60.0..=900.0;
/// Number of measured times of a target that a day needs to determine the failure cap.
const MIN_TIMES_FOR_CAP: usize = 3;

/// Part of a history that verdicts use: one scale, the newest epochs, days after the warm-up, no void rounds.
pub(super) struct AnalysisWindow<'h> {
    /// Complete history, including excluded runs.
    pub(super) history: &'h History,
    /// Scale of all runs in the window; `None` if there is no run.
    pub(super) scale: Option<Scale>,
    /// Last day of the window, in days since 1970-01-01.
    pub(super) last_day: i64,
    /// Newest epoch of each target, by target index; `None` for a target without a run.
    pub(super) active_epochs: Vec<Option<ActiveEpoch>>,
    /// Rounds of each workload in chronological order, by workload index.
    pub(super) rounds_by_workload: Vec<Vec<RoundRuns<'h>>>,
    /// Like `rounds_by_workload`, with the warm-up: all rounds of the newest epochs.
    pub(super) epoch_rounds_by_workload: Vec<Vec<RoundRuns<'h>>>,
    /// Days on which each target has runs in any epoch, sorted, by target index.
    pub(super) run_days: Vec<Vec<i64>>,
    /// Days with a round that measured two shares. A share that was unavailable was not measured.
    pub(super) shared_days: BTreeSet<i64>,
    /// Days with a round of two shares, measured or not.
    pub(super) common_days: BTreeSet<i64>,
    /// Runs from which the failure caps follow, by workload and target.
    cap_runs: BTreeMap<(usize, usize), Vec<SelectedRun<'h>>>,
    /// Excluded runs, with the reason.
    pub(super) excluded: Vec<Excluded>,
    /// Round trip time that adjusted verdicts are about; `None` for the median over the days of each comparison.
    pub(super) stated_round_trip: Option<Duration>,
    /// True if the times waited are summed up and described. Simulations leave that out, because the bootstrap takes most of
    /// the time of a summary and decides nothing.
    pub(super) describes_waits: bool,
}

/// Newest epoch of a target.
#[derive(Debug, Clone, Copy)]
pub(super) struct ActiveEpoch {
    /// Number of the epoch.
    pub(super) epoch: i64,
    /// First day after the warm-up, in days since 1970-01-01. The day of the first run and the next day are warm-up.
    pub(super) first_counted_day: i64,
}

/// Runs of one workload in one round.
pub(super) struct RoundRuns<'h> {
    /// Number of the round.
    pub(super) round: i64,
    /// Local day of the round, in days since 1970-01-01.
    pub(super) day: i64,
    /// Run of each target, by target index; `None` for a target that was not attempted.
    pub(super) runs: Vec<Option<&'h RunRecord>>,
}

/// Value of one metric in one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Reading {
    /// Measured time in seconds.
    Time(f64),
    /// The run failed: error or hung.
    Failed,
    /// No value: not attempted, unavailable, void, or without this figure.
    Absent,
}

impl Reading {
    fn from_run(run: Option<&RunRecord>, place: usize) -> Self {
        match run {
            None => Self::Absent,
            Some(run) => match run.outcome {
                Outcome::Ok => run.times.get(place).map_or(Self::Absent, Self::Time),
                Outcome::Error | Outcome::Hung => Self::Failed,
                Outcome::Unavailable | Outcome::Void => Self::Absent,
            },
        }
    }

    /// Returns the measured time in seconds; `None` without one.
    pub(super) fn time(self) -> Option<f64> {
        match self {
            Self::Time(seconds) => Some(seconds),
            Self::Failed | Self::Absent => None,
        }
    }

    /// Returns the seconds that the reading counts as: `cap` for a failure, so that a fast error does not look fast; `None` for
    /// an absent reading.
    pub(super) fn seconds(self, cap: f64) -> Option<f64> {
        if self == Self::Failed { Some(cap) } else { self.time() }
    }
}

impl<'h> AnalysisWindow<'h> {
    /// Selects the runs of a history in a range of days (since 1970-01-01), at the given scale, or else the configured one if
    /// there are runs at it, or else that of most runs: a single run at another scale must not hide weeks of results. Earlier
    /// runs only tell when the warm-up was, what a failure counts as, and which shares are no longer measured.
    pub(super) fn new(history: &'h History, days: RangeInclusive<i64>, scale: Option<Scale>) -> Self {
        let mut selected = runs_until(history, *days.end());
        let scale = scale.or_else(|| scale_of(history, &selected, *days.start()));
        let is_from =
            |selected: &SelectedRun<'_>, day: i64| selected.round.is_some_and(|round| round.day >= day);
        // The order of the exclusions is part of the method, because each run is counted under the first reason.
        let missing = exclude(&mut selected, "of a round that is missing from the history", |selected| {
            selected.round.is_some()
        });
        let other_scale = exclude(&mut selected, OTHER_SCALE, |found| Some(found.run.scale) == scale);
        let (run_days, cap_runs) = (run_days(history.targets.len(), &selected), cap_runs(history, &selected));
        let is_measured = |run: &RunRecord| run.outcome != Outcome::Unavailable;
        let shared_days = days_with_two_shares(history, &selected, is_measured);
        let common_days = days_with_two_shares(history, &selected, |_| true);
        let active_epochs = active_epochs(history.targets.len(), &selected);
        let older = exclude(&mut selected, OLDER_EPOCH, |SelectedRun { run, .. }| {
            active_epochs[run.target].is_some_and(|active| active.epoch == run.epoch)
        });
        let void = exclude(&mut selected, VOID_ROUNDS, |selected| {
            selected.round.is_some_and(|round| !round.is_void)
        });
        // The first run of the epoch was stored on the first day of its warm-up.
        let clock = "dated before the target's first run: the clock was wrong";
        let clock = exclude(&mut selected, clock, |selected| {
            let active = active_epochs[selected.run.target];
            active.is_some_and(|active| is_from(selected, active.first_counted_day - WARM_UP_DAYS))
        });
        let early = exclude(&mut selected, "made before the first day of the report", |selected| {
            is_from(selected, *days.start())
        });
        let active_epochs = counted_from(*days.start(), active_epochs);
        let epoch_rounds_by_workload = round_runs(history, &selected);
        let warm_up = "in the warm-up (first days of a target, mount or protocol)";
        let warm_up = exclude(&mut selected, warm_up, |selected| {
            let active = active_epochs[selected.run.target];
            active.is_some_and(|active| is_from(selected, active.first_counted_day))
        });
        let excluded = [missing, other_scale, older, void, clock, early, warm_up];
        let rounds_by_workload = round_runs(history, &selected);
        Self {
            history,
            scale,
            last_day: *days.end(),
            active_epochs,
            rounds_by_workload,
            epoch_rounds_by_workload,
            run_days,
            shared_days,
            common_days,
            cap_runs,
            excluded: excluded.into_iter().flatten().collect(),
            stated_round_trip: None,
            describes_waits: true,
        }
    }

    /// Returns the indices of the shares that ever had a run.
    pub(super) fn shares(&self) -> Vec<usize> {
        let is_share = |place: &usize| self.history.targets[*place].role == Role::Share;
        (0..self.active_epochs.len())
            .filter(is_share)
            .filter(|place| self.active_epochs[*place].is_some())
            .collect()
    }

    /// Iterates over the rounds with the reading of one metric on one target: round number, day, reading. `place` is
    /// the index of the metric within the workload.
    pub(super) fn readings(
        &self,
        workload: usize,
        place: usize,
        target: usize,
    ) -> impl Iterator<Item = (i64, i64, Reading)> + '_ {
        readings_in(&self.rounds_by_workload[workload], place, target)
    }

    /// Returns the failure cap of a metric in seconds: 20 times the median of the fastest share on the first day with
    /// enough times, clamped to 60 to 900 s (docs/methodology.md#failures-and-caps). Only that day determines the cap, in
    /// whatever epoch it is, so that neither later days nor a new epoch move it.
    pub(super) fn failure_cap(&self, workload: usize, place: usize) -> f64 {
        let usual = self.usual_seconds(workload, place).unwrap_or(0.0);
        (CAP_FACTOR * usual).clamp(*CAP_SECONDS.start(), *CAP_SECONDS.end())
    }

    /// Returns the median time in seconds of the fastest share on the first day with enough times; `None` if there is
    /// no such day. The first day is the one that began with the earliest round, whatever its date: a clock may have been wrong.
    fn usual_seconds(&self, workload: usize, place: usize) -> Option<f64> {
        let of_workload = self.cap_runs.range((workload, 0)..(workload + 1, 0));
        let full_days: Vec<FullDay> =
            of_workload.filter_map(|(_, runs)| first_full_day(runs, place)).collect();
        let first = full_days.iter().min_by_key(|full| full.first_round)?.day;
        let usual = full_days.iter().filter(|full| full.day == first).filter_map(|full| median(&full.times));
        usual.reduce(f64::min)
    }

    /// Iterates over the rounds that were planned at the window's scale, from a day to the window's last day.
    pub(super) fn planned_rounds_from(&self, day: i64) -> impl Iterator<Item = &'h RoundRecord> + '_ {
        let within = day..=self.last_day;
        let rounds = self.history.rounds.iter().filter(|round| Some(round.scale) == self.scale);
        rounds.filter(move |round| within.contains(&round.day()))
    }
}

/// Iterates over rounds with the reading of one metric on one target: round number, day, reading.
pub(super) fn readings_in<'r>(
    rounds: &'r [RoundRuns<'_>],
    place: usize,
    target: usize,
) -> impl Iterator<Item = (i64, i64, Reading)> + 'r {
    rounds.iter().map(move |round| (round.round, round.day, Reading::from_run(round.runs[target], place)))
}

/// A day with enough times of one metric on one target to determine the failure cap.
struct FullDay {
    /// Local day, in days since 1970-01-01.
    day: i64,
    /// Number of the first round of the day that has a time.
    first_round: i64,
    /// Times in seconds.
    times: Vec<f64>,
}

/// Returns the first day with at least [`MIN_TIMES_FOR_CAP`] times of the metric at `place`. `runs` must be in the order in which
/// they were made. A date that comes back after another one, because the clock was wrong, is another day, as in
/// `daemon/fleet/sql/days_with.sql`.
fn first_full_day(runs: &[SelectedRun<'_>], place: usize) -> Option<FullDay> {
    let mut found: Option<FullDay> = None;
    for SelectedRun { run, round } in runs {
        let (Some(round), Some(seconds)) = (round, run.times.get(place)) else { continue };
        match &mut found {
            Some(known) if known.day == round.day => known.times.push(seconds),
            Some(known) if known.times.len() >= MIN_TIMES_FOR_CAP => break,
            _ => found = Some(FullDay { day: round.day, first_round: run.round, times: vec![seconds] }),
        }
    }
    found.filter(|known| known.times.len() >= MIN_TIMES_FOR_CAP)
}

/// A run with what is known about its round.
#[derive(Clone, Copy)]
struct SelectedRun<'h> {
    run: &'h RunRecord,
    /// `None`: the round is missing from the history.
    round: Option<RoundDay>,
}

/// Part of a round that decides whether its runs count.
#[derive(Clone, Copy)]
struct RoundDay {
    /// Local day of the round, in days since 1970-01-01.
    day: i64,
    is_void: bool,
}

/// Returns the runs up to the day `through`, with those of unknown rounds.
fn runs_until(history: &History, through: i64) -> Vec<SelectedRun<'_>> {
    let round_day =
        |round: &RoundRecord| RoundDay { day: round.day(), is_void: round.status == Some(RoundStatus::Void) };
    let rounds: HashMap<i64, RoundDay> =
        history.rounds.iter().map(|round| (round.number, round_day(round))).collect();
    let runs = history.runs.iter().map(|run| SelectedRun { run, round: rounds.get(&run.round).copied() });
    runs.filter(|selected| selected.round.is_none_or(|round| round.day <= through)).collect()
}

/// Returns the configured scale if there are runs at it from a day on, or else that of most of them; `None` without a run.
fn scale_of(history: &History, runs: &[SelectedRun<'_>], first_day: i64) -> Option<Scale> {
    let is_meant = |selected: &&SelectedRun<'_>| selected.round.is_none_or(|round| round.day >= first_day);
    let scales = runs.iter().filter(is_meant).map(|selected| selected.run.scale);
    let configured =
        history.settings.scale.filter(|configured| scales.clone().any(|scale| scale == *configured));
    configured.or_else(|| Scale::most_frequent(scales))
}

/// Returns the days with runs of each target, sorted.
fn run_days(targets: usize, runs: &[SelectedRun<'_>]) -> Vec<Vec<i64>> {
    let mut found: Vec<Vec<i64>> = vec![vec![]; targets];
    for SelectedRun { run, round } in runs {
        let days = &mut found[run.target];
        let new = round.map(|round| round.day).filter(|day| days.last() != Some(day));
        days.extend(new);
    }
    // A clock that was set back.
    found.iter_mut().for_each(|days| days.sort_unstable());
    found
}

/// Returns the days with a round in which runs of two shares count.
fn days_with_two_shares(
    history: &History,
    runs: &[SelectedRun<'_>],
    counts: impl Fn(&RunRecord) -> bool,
) -> BTreeSet<i64> {
    let rounds = runs.chunk_by(|one, next| one.run.round == next.run.round);
    let shared_day = |round: &[SelectedRun<'_>]| {
        let is_counted = |run: &RunRecord| history.targets[run.target].role == Role::Share && counts(run);
        let mut counted = round.iter().filter(|selected| is_counted(selected.run));
        let first = counted.next()?;
        counted.any(|other| other.run.target != first.run.target).then_some(first.round?.day)
    };
    rounds.filter_map(shared_day).collect()
}

/// Returns the runs that may determine failure caps: completed ones on shares in any epoch, but not those of void rounds or dated
/// before the first run of their epoch. `daemon/fleet/sql/days_with.sql` uses the same ones.
fn cap_runs<'h>(
    history: &History,
    runs: &[SelectedRun<'h>],
) -> BTreeMap<(usize, usize), Vec<SelectedRun<'h>>> {
    let mut first_days: HashMap<(usize, i64), i64> = HashMap::new();
    let mut is_usable = |SelectedRun { run, round }: &SelectedRun<'h>| {
        let Some(RoundDay { day, is_void }) = *round else { return false };
        let first_day = *first_days.entry((run.target, run.epoch)).or_insert(day);
        let is_of_share = history.targets[run.target].role == Role::Share;
        is_of_share && run.outcome == Outcome::Ok && !is_void && day >= first_day
    };
    let mut found: BTreeMap<(usize, usize), Vec<SelectedRun<'h>>> = BTreeMap::new();
    for selected in runs.iter().filter(|selected| is_usable(selected)) {
        found.entry((selected.run.workload, selected.run.target)).or_default().push(*selected);
    }
    found
}

/// Returns the newest epoch of each target, with the first day after its warm-up.
fn active_epochs(targets: usize, runs: &[SelectedRun<'_>]) -> Vec<Option<ActiveEpoch>> {
    let mut active_epochs: Vec<Option<ActiveEpoch>> = vec![None; targets];
    for SelectedRun { run, round } in runs {
        let Some(RoundDay { day, .. }) = round else { continue };
        let active = &mut active_epochs[run.target];
        if active.is_none_or(|active| active.epoch < run.epoch) {
            *active = Some(ActiveEpoch { epoch: run.epoch, first_counted_day: day + WARM_UP_DAYS });
        }
    }
    active_epochs
}

/// Returns the epochs without the counted days before a day.
fn counted_from(day: i64, epochs: Vec<Option<ActiveEpoch>>) -> Vec<Option<ActiveEpoch>> {
    let later =
        |active: ActiveEpoch| ActiveEpoch { first_counted_day: active.first_counted_day.max(day), ..active };
    epochs.into_iter().map(|active| active.map(later)).collect()
}

/// Groups runs by workload and round.
fn round_runs<'h>(history: &History, runs: &[SelectedRun<'h>]) -> Vec<Vec<RoundRuns<'h>>> {
    let mut blocks: Vec<Vec<RoundRuns<'h>>> = TASKS.iter().map(|_| vec![]).collect();
    for SelectedRun { run, round } in runs {
        let Some(RoundDay { day, .. }) = *round else { continue };
        let of_workload = &mut blocks[run.workload];
        if of_workload.last().is_none_or(|block| block.round != run.round) {
            let runs = vec![None; history.targets.len()];
            of_workload.push(RoundRuns { round: run.round, day, runs });
        }
        if let Some(block) = of_workload.last_mut() {
            block.runs[run.target] = Some(run);
        }
    }
    blocks
}
